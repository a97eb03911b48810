"""Price of groups with attention in one kernel, in the form that is faster for their shape.

Online: tiles of queries pass over the keys and rescale what they have so far; `attention.py`. Streamed: where all
queries that share keys fit one tile (decode), the two products run over the same stretch of keys one after the other,
as each would alone, and only the scores between them stay on chip; stretches meet as the parts of a split do.
Once attention kernels were measured, what was measured is what a kernel costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from fusetui.accelerator import bottleneck
from fusetui.accelerator.attention import price_attention
from fusetui.accelerator.constants import Constants
from fusetui.accelerator.fusion import bits
from fusetui.accelerator.graph import Graph, matmul_shape
from fusetui.accelerator.group import Group
from fusetui.accelerator.hardware import Hardware, dtype_bytes
from fusetui.accelerator.matmul import MatmulPrices, price_matmuls
from fusetui.accelerator.price import REGISTERS_PER_VALUE, Price, Tile
from fusetui.accelerator.work import Work

Floats = npt.NDArray[np.float64]

_SIDE: Final = 128  # queries of a tile, and keys of one step, where they fit
_LEAST_SIDE: Final = 16
_SCORE_BYTES: Final = 4
_REGISTERS: Final = 160.0  # score and output tile of a thread


@dataclass(frozen=True, slots=True)
class _Asked:
    """Arrays (Q,): the shape with the batch folded into the heads, and what neighbours add."""

    q_heads: Floats
    kv_heads: Floats
    q_len: Floats
    kv_len: Floats
    head: Floats
    causal: list[float]
    hot: Sequence[float]
    extra_bytes: Floats
    extra_registers: list[float]


def price_fused_attention(
    graph: Graph,
    hw: Hardware,
    constants: Constants,
    dtype: str,
    groups: Sequence[Group],
    works: Sequence[Work],
    hot_bytes: Sequence[float],
) -> list[Price]:
    """The price of each group; `hot_bytes` are operand bytes that the shared cache may still hold."""
    q_heads, kv_heads, q_len, kv_len, head = np.array([_shape(graph, g) for g in groups], dtype=np.float64).T
    own = dtype_bytes(dtype) * head * 2 * (q_heads * q_len + kv_heads * kv_len)
    asked = _Asked(
        q_heads, kv_heads, q_len, kv_len, head,
        causal=[float(any(graph.operators[i].causal for i in bits(g.mask))) for g in groups],
        hot=hot_bytes,
        extra_bytes=np.array([w.read_bytes + w.write_bytes for w in works]) - own,
        extra_registers=[REGISTERS_PER_VALUE * max(0, w.live - 3) for w in works],
    )  # fmt: skip
    inside = np.array([_inside_flops(graph, g) for g in groups])
    beside = np.maximum(0.0, np.array([w.vector_flops for w in works]) - inside)
    beside_ns = beside / (hw.vector_rate(dtype) * constants.eta_matrix) * 1e9
    prices = _online(hw, constants, dtype, asked, works, beside_ns)
    if "attention" in constants.fitted:
        return prices
    one_tile = np.flatnonzero(q_heads / kv_heads * q_len <= _SIDE)
    for i, streamed in zip(
        one_tile.tolist(), _streamed(hw, constants, dtype, asked, works, one_tile, inside, beside_ns), strict=True
    ):
        prices[i] = min(prices[i], streamed, key=lambda price: price.time_ns)
    return prices


def _online(
    hw: Hardware, constants: Constants, dtype: str, a: _Asked, works: Sequence[Work], beside_ns: Floats
) -> list[Price]:
    p = price_attention(
        hw, constants, 1, a.q_heads, a.kv_heads, a.q_len, a.kv_len, a.head, dtype=dtype,
        causal=a.causal, hot_bytes=a.hot, extra_bytes=a.extra_bytes, extra_registers=a.extra_registers,
    )  # fmt: skip
    sides = [_sides(hw, dtype, float(width)) for width in a.head]
    return [
        Price(
            time_ns=float(p.time_ns[i] + beside_ns[i]) if queries else float("inf"),
            dram_bytes=float(p.dram_bytes[i]),
            served_bytes=w.served_bytes,
            filled_bytes=max(0.0, float(p.dram_bytes[i]) - w.write_bytes),
            spill_bytes=float(p.spill_bytes[i]),
            workspace_bytes=_parts_bytes(a, i, int(p.split_kv[i])),
            sram_bytes=_tile_bytes(queries, keys, float(a.head[i]), dtype),
            occupancy=float(p.occupancy[i]),
            waves=int(p.waves[i]),
            bottleneck=bottleneck.NAMES[int(p.bottleneck[i])],
            tile=Tile(queries, keys, int(a.head[i]), int(p.split_kv[i]), 2),
            flops=float(p.flops[i]) + w.vector_flops,
            repeated_flops=w.repeated_flops,
            registers=_REGISTERS + a.extra_registers[i] if hw.registers_per_core else None,
        )
        for i, (w, (queries, keys)) in enumerate(zip(works, sides, strict=True))
    ]


def _streamed(
    hw: Hardware,
    constants: Constants,
    dtype: str,
    a: _Asked,
    works: Sequence[Work],
    at: npt.NDArray[np.int64],
    inside: Floats,
    beside_ns: Floats,
) -> list[Price]:
    """Prices of the groups `at`: scores, softmax on them, values, in one launch."""
    if not at.size:
        return []
    heads, keys, head = a.kv_heads[at], a.kv_len[at], a.head[at]
    rows = a.q_heads[at] / heads * a.q_len[at]
    scores = heads * rows * keys * dtype_bytes(dtype)
    kept = np.ceil(rows / _LEAST_SIDE) * _LEAST_SIDE * _SIDE * _SCORE_BYTES
    registers = np.array(a.extra_registers)[at]
    hot = np.array(a.hot, dtype=np.float64)[at]
    first = price_matmuls(
        hw, constants, heads, rows, keys, head, dtype=dtype, reserved_sram=kept, extra_registers=registers,
        extra_bytes=-scores, epilogue_flops=inside[at], hot_bytes=hot / 2,
    )  # fmt: skip
    second = price_matmuls(
        hw, constants, heads, rows, head, keys, dtype=dtype, reserved_sram=kept, extra_registers=registers,
        extra_bytes=a.extra_bytes[at] - scores, hot_bytes=hot / 2,
    )  # fmt: skip
    return [_both(hw, constants, a, works[i], int(i), j, first, second, float(beside_ns[i])) for j, i in enumerate(at)]


def _both(
    hw: Hardware, c: Constants, a: _Asked, w: Work, i: int, j: int, s: MatmulPrices, v: MatmulPrices, beside_ns: float
) -> Price:
    moved = float(s.dram_bytes[j] + v.dram_bytes[j])
    longer = s if s.time_ns[j] > v.time_ns[j] else v
    split = int(v.split_k[j])
    return Price(
        time_ns=float(s.time_ns[j] + v.time_ns[j]) - c.start_ns + beside_ns,
        dram_bytes=moved,
        served_bytes=w.served_bytes,
        filled_bytes=max(0.0, moved - w.write_bytes),
        spill_bytes=float(s.spill_bytes[j] + v.spill_bytes[j]),
        workspace_bytes=_parts_bytes(a, i, split),
        sram_bytes=float(max(s.sram_bytes[j], v.sram_bytes[j])),
        occupancy=float(min(s.occupancy[j], v.occupancy[j])),
        waves=int(max(s.waves[j], v.waves[j])),
        bottleneck=bottleneck.NAMES[int(longer.bottleneck[j])],
        tile=Tile(int(s.tile_m[j]), int(s.tile_n[j]), int(a.head[i]), split, int(min(s.stages[j], v.stages[j]))),
        flops=float(s.flops[j] + v.flops[j]) + w.vector_flops,
        repeated_flops=w.repeated_flops,
        registers=_REGISTERS + a.extra_registers[i] if hw.registers_per_core else None,
    )


def _parts_bytes(a: _Asked, i: int, split: int) -> float:
    """Device memory for the parts of a split: one fp32 output each."""
    return float(_SCORE_BYTES * split * a.q_heads[i] * a.q_len[i] * a.head[i]) if split > 1 else 0.0


def _sides(hw: Hardware, dtype: str, head: float) -> tuple[int, int]:
    """(queries, keys) of the largest tile that fits the on-chip memory; zeros where none does."""
    sides = [_SIDE >> i for i in range(_SIDE.bit_length()) if _SIDE >> i >= _LEAST_SIDE]
    fitting = (
        (queries, keys)
        for queries in sides
        for keys in sides
        if _tile_bytes(queries, keys, head, dtype) <= hw.sram_bytes_per_core
    )
    return max(fitting, default=(0, 0))


def _tile_bytes(queries: int, keys: int, head: float, dtype: str) -> float:
    """Queries, and two stages of keys and values."""
    return (queries + 4 * keys) * head * dtype_bytes(dtype)


def _shape(graph: Graph, group: Group) -> tuple[int, int, int, int, int]:
    """(query heads, key heads, queries, keys, head) with the batch folded into the heads."""
    op = graph.operators[group.anchors[0]]
    batch, _, keys, head = matmul_shape(graph, op)
    left, right = (set(graph.tensors[name].dims) for name in op.inputs)
    rows = [d for d in graph.tensors[op.output].dims if d in left and d not in right]
    return batch * graph.points(rows[:-1]), batch, graph.sizes[rows[-1]], keys, head


def _inside_flops(graph: Graph, group: Group) -> float:
    """Vector arithmetic on the scores: scale, mask, softmax."""
    scores = set(graph.tensors[graph.operators[group.anchors[0]].output].dims)
    return sum(
        graph.flops(graph.operators[i])
        for i in group.after
        if set(graph.tensors[graph.operators[i].output].dims) == scores
    )
