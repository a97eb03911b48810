"""Kernels of real runtimes beside groups of a plan, over the nodes of one model: which were joined, and by whom."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fusetui.accelerator.graph import Graph
from fusetui.accelerator.plan import Plan

Nodes = frozenset[int]


@dataclass(frozen=True)
class Kernel:
    """One launch: what it is called and which nodes of the model it computes; none of a node that was added."""

    name: str
    nodes: Nodes


@dataclass(frozen=True)
class Difference:
    """Nodes that two partitions cut differently, with the kernels of each that hold them."""

    theirs: tuple[Kernel, ...]
    ours: tuple[Kernel, ...]
    why: str


def profile_kernels(path: Path) -> list[dict[str, Any]]:
    """Kernel events of the first run of an ONNX Runtime profile, in the order they ran."""
    events = json.loads(path.read_text())
    kernels = [e for e in events if e.get("cat") == "Node" and e["name"].endswith("_kernel_time")]
    first: dict[str, dict[str, Any]] = {}
    for event in kernels:
        first.setdefault(event["args"]["node_index"], event)
    return list(first.values())


def kernels_per_run(path: Path) -> float:
    """Kernel events of a profile over its runs."""
    events = json.loads(path.read_text())
    runs = sum(e["name"] == "model_run" for e in events)
    return sum(e.get("cat") == "Node" and e["name"].endswith("_kernel_time") for e in events) / runs


def runtime_kernels(graph: Graph, off: Sequence[Mapping[str, Any]], level: Sequence[Mapping[str, Any]]) -> list[Kernel]:
    """What each kernel of a profile at some level computes, by nodes of the model that the `off` profile ran.

    A node that is still there keeps its number. A new one computes nodes that are gone: those whose name is in its
    own, with what is connected to them, else the first that are connected and make a result of its shape. What is
    gone without a new kernel went into a neighbour whose inputs have changed.
    """
    was = {int(e["args"]["node_index"]): e for e in off}
    now = {int(e["args"]["node_index"]): e for e in level}
    parts = _gone(graph, sorted(set(was) - set(now)), [e for i, e in now.items() if i not in was], was)
    found: dict[int, set[int]] = {i: {i} if i in was else set() for i in now}
    for part in parts:
        fresh = [(i, e) for i, e in now.items() if i not in was and not found[i]]
        fresh.sort(key=lambda pair: part.isdisjoint(_named(pair[1], was)))
        new = next((i for i, e in fresh if _makes(e, part, was)), None)
        if new is None:
            new = next((i for i in _around(graph, part) if i in now and _inputs(now[i]) != _inputs(was[i])), None)
        if new is not None:
            found[new] |= part
    return [Kernel(str(e["args"]["op_name"]), frozenset(found[i])) for i, e in now.items()]


def _inputs(event: Mapping[str, Any]) -> Any:
    return event["args"]["input_type_shape"]


def _named(event: Mapping[str, Any], was: Mapping[int, Mapping[str, Any]]) -> list[int]:
    """Nodes of the model whose name is part of a new kernel's name."""
    name = event["name"].removesuffix("_kernel_time").lower().replace("/", "_") + "_"
    return [i for i, e in was.items() if e["name"].removesuffix("kernel_time").lower() in name]


def _makes(event: Mapping[str, Any], part: set[int], was: Mapping[int, Mapping[str, Any]]) -> bool:
    named = _named(event, was)
    if named:
        return not part.isdisjoint(named)
    return bool(len(part) > 1 and event["args"]["output_type_shape"] == was[max(part)]["args"]["output_type_shape"])


def _gone(
    graph: Graph, gone: Sequence[int], new: Sequence[Mapping[str, Any]], was: Mapping[int, Mapping[str, Any]]
) -> list[set[int]]:
    """Connected sets of nodes that are gone, cut behind a node that a new kernel is named after when there are two."""
    parts: list[set[int]] = []
    for i in gone:
        touching = [part for part in parts if graph.predecessors[i] & sum(1 << j for j in part)]
        parts = [part for part in parts if part not in touching] + [{i}.union(*touching)]
    named = sorted(i for event in new for i in _named(event, was))
    cut: list[set[int]] = []
    for part in parts:
        ends = [i for i in named if i in part]
        if len(ends) < 2:
            cut.append(part)
            continue
        start = -1
        for end in ends:
            last = max(part) if end == ends[-1] else end
            cut.append({i for i in part if start < i <= last})
            start = last
    return sorted(cut, key=min)


def _around(graph: Graph, part: set[int]) -> list[int]:
    """Nodes that read from a set or that it reads from, readers first."""
    mask = sum(1 << i for i in part)
    readers = [i for i, preds in enumerate(graph.predecessors) if preds & mask and i not in part]
    return readers + [j for i in part for j in range(i) if graph.predecessors[i] >> j & 1 and j not in part]


def plan_kernels(graph: Graph, plan: Plan) -> list[Kernel]:
    """The launches of a plan; a view alone is none."""
    index = {op.name: i for i, op in enumerate(graph.operators)}
    return [Kernel(g.pattern, frozenset(index[op] for op in g.ops)) for g in plan.groups if g.pattern != "view"]


def differences(graph: Graph, theirs: Sequence[Kernel], ours: Sequence[Kernel]) -> list[Difference]:
    """Where two partitions differ, smallest sets of nodes that both cut whole. Kernels in equal sets are left out, so
    the sum of ``len(theirs) - len(ours)`` is the difference of the counts."""
    found = []
    for left, right in _blocks(theirs, ours):
        if {k.nodes for k in left} != {k.nodes for k in right}:
            found.append(Difference(left, right, _why(graph, left, right)))
    return found


def _blocks(
    theirs: Sequence[Kernel], ours: Sequence[Kernel]
) -> Iterator[tuple[tuple[Kernel, ...], tuple[Kernel, ...]]]:
    blocks: list[tuple[set[int], list[Kernel], list[Kernel]]] = []
    for side, kernels in ((1, theirs), (2, ours)):
        for kernel in kernels:
            touching = [b for b in blocks if not b[0].isdisjoint(kernel.nodes)]
            merged: tuple[set[int], list[Kernel], list[Kernel]] = (set(kernel.nodes), [], [])
            for b in touching:
                merged[0].update(b[0])
                merged[1].extend(b[1])
                merged[2].extend(b[2])
            (merged[1] if side == 1 else merged[2]).append(kernel)
            blocks = [b for b in blocks if b not in touching] + [merged]
    for _, left, right in sorted(blocks, key=lambda b: min(b[0], default=1 << 30)):
        yield tuple(left), tuple(right)


def _why(graph: Graph, theirs: Sequence[Kernel], ours: Sequence[Kernel]) -> str:
    """What the model's nodes say about the difference: who joined what."""
    reasons = []
    if not ours:
        names = {op.name.rstrip("0123456789") for k in theirs for i in k.nodes for op in [graph.operators[i]]}
        return f"a view to us: {', '.join(sorted(names))}" if names else "layout changes that the runtime adds"
    apart = [i for k in theirs for i in k.nodes]
    views = sum(graph.operators[i].is_view for i in apart if len(_holding(theirs, i)) == 1)
    if views:
        reasons.append(f"views that are nodes to the runtime: {views}")
    gone = {i for k in ours for i in k.nodes} - set(apart)
    if gone:
        reasons.append(f"removed by the runtime: {len(gone)}")
    products = [k for k in ours if len(k.nodes) > 1 and _has(graph, k, ("matmul", "conv"))]
    if any(k.name == "attention" for k in products):
        reasons.append("scores stay on chip through softmax and both products")
    if any(k.name != "attention" for k in products):
        reasons.append("we take a product's neighbours into its kernel")
    vectors = [k for k in ours if len(k.nodes) > 1 and not _has(graph, k, ("matmul", "conv"))]
    if any(sum(not kernel.nodes.isdisjoint(k.nodes) for kernel in theirs) > 1 for k in vectors):
        reasons.append("we join vector operators and copies that the runtime has no fused kernel for")
    for kernel in theirs:
        apart_here = [k.nodes & kernel.nodes for k in ours if k.nodes & kernel.nodes]
        if len(apart_here) > 1:
            heads = " | ".join(" + ".join(graph.operators[i].name for i in sorted(part)) for part in apart_here)
            reasons.append(f"only the runtime joins {heads} ({kernel.name})")
    return "; ".join(reasons)


def _holding(kernels: Sequence[Kernel], node: int) -> Nodes:
    return next((k.nodes for k in kernels if node in k.nodes), frozenset())


def _has(graph: Graph, kernel: Kernel, kinds: Sequence[str]) -> bool:
    return any(graph.operators[i].kind in kinds for i in kernel.nodes)
