"""Measured rows to calibrate the model with, from the operators of a capture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from fusetui.accelerator.graph import Graph, Operator, matmul_shape
from fusetui.accelerator.rows import FAMILIES, MeasuredRows
from fusetui.analysis.recover.recovery import Recovery
from fusetui.analysis.recover.sequence import Ints

_ATTENTION: Final = ("scores", "softmax", "values")
_VECTOR: Final = frozenset({"elementwise", "reduction", "layout"})


def halves(recovery: Recovery) -> tuple[list[MeasuredRows], list[MeasuredRows]]:
    """A row per operator and family from the first half of its runs, and one from the second: their median times.

    Operators that ran only once, convolutions, gathers and fused kernels other than attention are left out.
    """
    captured, graph = recovery.captured, recovery.captured.graph
    joint = {names[0]: names for names in captured.together}
    index = {op.name: op for op in graph.operators}
    found: dict[str, list[tuple[str, dict[str, float], Ints]]] = {}
    for name, times in recovery.samples.items():
        row = _row(graph, [index[n] for n in joint.get(name, (name,))])
        if row is not None and len(times) > 1:
            family, op, values = row
            found.setdefault(family, []).append((op, values, times))
    return _taken(found, captured.dtype, _first), _taken(found, captured.dtype, _second)


def _first(times: Ints) -> float:
    return float(np.median(times[: len(times) // 2]))


def _second(times: Ints) -> float:
    return float(np.median(times[len(times) // 2 :]))


def _taken(
    found: Mapping[str, list[tuple[str, dict[str, float], Ints]]], dtype: str, take: Callable[[Ints], float]
) -> list[MeasuredRows]:
    groups = []
    for family, rows in found.items():
        columns = {
            name: np.array([values.get(name, default or 0.0) for _, values, _ in rows])
            for name, default in FAMILIES[family].items()
        }
        latency = np.array([max(1.0, take(times)) for _, _, times in rows])
        groups.append(MeasuredRows(family, dtype, np.array([op for op, _, _ in rows]), columns, latency))
    return groups


def _row(graph: Graph, ops: list[Operator]) -> tuple[str, str, dict[str, float]] | None:
    op = ops[0]
    if len(ops) > 1:
        is_attention = tuple(o.name.rsplit(".", 1)[-1] for o in ops) == _ATTENTION
        return ("attention", "attention", _attention(graph, ops)) if is_attention else None
    if op.kind == "matmul":
        sizes = matmul_shape(graph, op)
        return "matmul", "matmul", dict(zip(("batch", "m", "n", "k"), map(float, sizes), strict=True))
    if op.kind not in _VECTOR or op.is_view:
        return None
    out = graph.tensor_bytes(op.output)
    points = graph.points(graph.loops(op))
    rows = points / graph.points(op.reduced) if op.kind == "reduction" else 0.0
    return "vector", op.cost_class, {"bytes_in": graph.op_bytes(op) - out, "bytes_out": out, "rows": rows}


def _attention(graph: Graph, ops: list[Operator]) -> dict[str, float]:
    """Heads that share keys are rows of the scores that the keys do not have."""
    scores, values = ops[0], ops[-1]
    batch, m, kv_len, head = matmul_shape(graph, scores)
    queries, keys = (set(graph.tensors[name].dims) for name in scores.inputs)
    shared = [d for d in graph.tensors[scores.output].dims if d in queries and d in keys]
    own = [d for d in graph.tensors[scores.output].dims if d in queries and d not in keys]
    q_len = graph.sizes[own[-1]] if own else 1
    count = graph.sizes[shared[0]] if len(shared) > 1 else 1
    kv_heads = batch / count
    return {
        "batch": float(count),
        "q_heads": kv_heads * m / q_len,
        "kv_heads": kv_heads,
        "q_len": float(q_len),
        "kv_len": float(kv_len if values.reduced else 1),
        "head_dim": float(head),
        "causal": 0.0,
    }
