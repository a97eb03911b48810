"""Price of groups on a device: all kernels of a graph in a few array calls, one per pattern."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from fusetui.accelerator import bottleneck
from fusetui.accelerator.attention import price_attention
from fusetui.accelerator.constants import Constants
from fusetui.accelerator.forced import price_forced
from fusetui.accelerator.fusion import bits
from fusetui.accelerator.graph import Graph, matmul_shape
from fusetui.accelerator.group import Group
from fusetui.accelerator.hardware import Hardware, dtype_bytes
from fusetui.accelerator.matmul import price_matmuls
from fusetui.accelerator.price import FREE, Price, Tile
from fusetui.accelerator.vector import price_vectors
from fusetui.accelerator.work import Work, Workload

BASE_REGISTERS: Final = 24  # addresses, counters, predicates
REGISTERS_PER_VALUE: Final = 8  # of one live value: four elements and their address
ROW_THREADS: Final = 256
HELD_ROW: Final = 1024  # longer rows are read again instead of held


class Pricer:
    """Prices groups of one graph on one device."""

    def __init__(self, workload: Workload, hw: Hardware, constants: Constants, dtype: str) -> None:
        self.graph = graph = workload.graph
        self.hw, self.constants, self.dtype = hw, constants, dtype
        self._workload = workload
        self._touched = np.cumsum([0.0, *(graph.op_bytes(op) for op in graph.operators)])

    def prices(self, groups: Sequence[Group]) -> list[Price]:
        """The price of every group, in order."""
        found: list[Price] = [FREE] * len(groups)
        works = [self._workload.work(group) for group in groups]
        by_pattern = (
            (("vector", "scan"), self._vector),
            (("matmul",), self._matmul),
            (("attention",), self._attention),
            (("forced",), self._forced),
        )
        for patterns, price in by_pattern:
            at = [i for i, g in enumerate(groups) if g.pattern in patterns]
            if at:
                for i, one in zip(at, price([groups[i] for i in at], [works[i] for i in at]), strict=True):
                    found[i] = one
        return found

    def _hot(self, group: Group) -> float:
        """Bytes of operands that were written so lately that the shared cache may still hold them."""
        first = bits(group.mask)[0]
        hot = 0.0
        for name in group.inputs:
            maker = self.graph.producer.get(name)
            if maker is None or maker > first:
                continue
            between = self._touched[first] - self._touched[maker + 1]
            size = self.graph.tensor_bytes(name)
            if between + size <= self.hw.l2_bytes:
                hot += size
        return hot

    def _registers(self, group: Group, work: Work) -> float:
        held = work.row_elements <= HELD_ROW or group.pattern == "forced"
        row = work.row_elements / ROW_THREADS * work.row_values if held else 0.0
        return BASE_REGISTERS + REGISTERS_PER_VALUE * work.live + (row if work.row_elements > 1 else 0.0)

    def _rows(self, group: Group) -> int:
        """Rows of a row operator, 0 where there is no row."""
        if not group.row:
            return 0
        reducer = next(
            op for i in bits(group.mask) if (op := self.graph.operators[i]).reduced and op.kind == "reduction"
        )
        return self.graph.points([d for d in self.graph.loops(reducer) if d not in group.row])

    def _vector(self, groups: Sequence[Group], works: Sequence[Work]) -> list[Price]:
        p = price_vectors(
            self.hw,
            self.constants,
            [w.read_bytes for w in works],
            [w.write_bytes for w in works],
            [w.cost_class for w in works],
            rows=[self._rows(g) for g in groups],
            hot_bytes=[self._hot(g) for g in groups],
            registers=[self._registers(g, w) for g, w in zip(groups, works, strict=True)],
            flops=[w.vector_flops for w in works],
            dtype=self.dtype,
        )
        return [
            Price(
                time_ns=float(p.time_ns[i]),
                dram_bytes=float(p.dram_bytes[i]),
                served_bytes=w.served_bytes,
                filled_bytes=max(0.0, float(p.dram_bytes[i]) - w.write_bytes),
                spill_bytes=float(p.spill_bytes[i]),
                workspace_bytes=0.0,
                sram_bytes=float(w.row_elements * w.row_values * dtype_bytes("fp32")),
                occupancy=float(p.occupancy[i]),
                waves=int(p.waves[i]),
                bottleneck=bottleneck.NAMES[int(p.bottleneck[i])],
                tile=None,
                flops=w.vector_flops,
                repeated_flops=w.repeated_flops,
            )
            for i, w in enumerate(works)
        ]

    def _matmul(self, groups: Sequence[Group], works: Sequence[Work]) -> list[Price]:
        element = dtype_bytes(self.dtype)
        shapes = np.array([self._workload.shapes[g.anchors[0]] for g in groups], dtype=np.float64).reshape(-1, 4)
        b, m, n, k = shapes.T
        own = b * (m * k + k * n + m * n) * element
        moved = np.array([w.read_bytes + w.write_bytes for w in works])
        p = price_matmuls(
            self.hw,
            self.constants,
            b,
            m,
            n,
            k,
            dtype=self.dtype,
            extra_registers=[REGISTERS_PER_VALUE * max(0, w.live - 2) for w in works],
            extra_bytes=moved - own,
            epilogue_flops=[w.vector_flops for w in works],
            hot_bytes=[self._hot(g) for g in groups],
            full_rows=[float(self._row_after(g)) for g in groups],
        )
        again = np.array([self._row_again_ns(g) for g in groups])
        # A scratchpad serves its array: rows stream past every block of columns, columns are loaded per tile of rows.
        streamed = b * m * k * n * element * (1 / self.hw.mma_shape(self.dtype)[1] + 1 / p.tile_m)
        served = p.l2_bytes if self.hw.l2_bytes else streamed
        workspace = np.where(p.split_k > 1, 4.0 * p.split_k * b * m * n, 0.0)
        return [
            Price(
                time_ns=float(p.time_ns[i] + again[i]),
                dram_bytes=float(p.dram_bytes[i]),
                served_bytes=float(served[i]) + w.served_bytes,
                filled_bytes=max(0.0, float(p.dram_bytes[i]) - w.write_bytes),
                spill_bytes=float(p.spill_bytes[i]),
                workspace_bytes=float(workspace[i]),
                sram_bytes=float(p.sram_bytes[i]),
                occupancy=float(p.occupancy[i]),
                waves=int(p.waves[i]),
                bottleneck=bottleneck.NAMES[int(p.bottleneck[i])],
                tile=Tile(int(p.tile_m[i]), int(p.tile_n[i]), int(p.tile_k[i]), int(p.split_k[i]), int(p.stages[i])),
                flops=float(p.flops[i]),
                repeated_flops=w.repeated_flops,
            )
            for i, w in enumerate(works)
        ]

    def _row_after(self, group: Group) -> bool:
        return any(self.graph.operators[i].kind == "reduction" for i in group.after)

    def _row_again_ns(self, group: Group) -> float:
        """A row reduced before a matrix product is read once more by every tile that loads it, from the cache."""
        if not any(self.graph.operators[i].kind == "reduction" for i in group.before):
            return 0.0
        op = self.graph.operators[group.anchors[0]]
        loads = self._workload.loads(group.anchors[0], op.inputs[0], group)
        rate = self.hw.l2_bytes_per_s * self.constants.eta_l2 or self.hw.dram_bytes_per_s * self.constants.eta_dram
        return loads * self.graph.tensor_bytes(op.inputs[0]) / rate * 1e9

    def _attention(self, groups: Sequence[Group], works: Sequence[Work]) -> list[Price]:
        shapes = np.array([_attention_shape(self.graph, g) for g in groups], dtype=np.float64)
        q_heads, kv_heads, q_len, kv_len, head = shapes.T
        own = dtype_bytes(self.dtype) * head * 2 * (q_heads * q_len + kv_heads * kv_len)
        moved = np.array([w.read_bytes + w.write_bytes for w in works])
        p = price_attention(
            self.hw,
            self.constants,
            1,
            q_heads,
            kv_heads,
            q_len,
            kv_len,
            head,
            dtype=self.dtype,
            causal=[float(any(self.graph.operators[i].causal for i in bits(g.mask))) for g in groups],
            hot_bytes=[self._hot(g) for g in groups],
            extra_bytes=moved - own,
            extra_registers=[REGISTERS_PER_VALUE * max(0, w.live - 3) for w in works],
        )
        vector_rate = self.hw.vector_rate(self.dtype) * self.constants.eta_matrix
        beside = np.array([self._beside_attention(g, w) for g, w in zip(groups, works, strict=True)])
        time = p.time_ns + beside / vector_rate * 1e9
        return [
            Price(
                time_ns=float(time[i]),
                dram_bytes=float(p.dram_bytes[i]),
                served_bytes=w.served_bytes,
                filled_bytes=max(0.0, float(p.dram_bytes[i]) - w.write_bytes),
                spill_bytes=float(p.spill_bytes[i]),
                workspace_bytes=float(4 * p.split_kv[i] * q_heads[i] * q_len[i] * head[i] * (p.split_kv[i] > 1)),
                sram_bytes=float(p.sram_bytes[i]),
                occupancy=float(p.occupancy[i]),
                waves=int(p.waves[i]),
                bottleneck=bottleneck.NAMES[int(p.bottleneck[i])],
                tile=Tile(128, 128, int(head[i]), int(p.split_kv[i]), 2),
                flops=float(p.flops[i]) + w.vector_flops,
                repeated_flops=w.repeated_flops,
            )
            for i, w in enumerate(works)
        ]

    def _beside_attention(self, group: Group, work: Work) -> float:
        """Vector arithmetic of fused neighbours; scale, mask and softmax are in attention's own price."""
        inside = sum(
            self.graph.flops(self.graph.operators[i])
            for i in group.after
            if set(self.graph.tensors[self.graph.operators[i].output].dims)
            == set(self.graph.tensors[self.graph.operators[group.anchors[0]].output].dims)
        )
        return max(0.0, work.vector_flops - inside)

    def _forced(self, groups: Sequence[Group], works: Sequence[Work]) -> list[Price]:
        return [
            price_forced(self.graph, self.hw, self.constants, self.dtype, g, w, self._registers(g, w))
            for g, w in zip(groups, works, strict=True)
        ]


def _attention_shape(graph: Graph, group: Group) -> tuple[int, int, int, int, int]:
    """(query heads, key heads, queries, keys, head) with the batch folded into the heads."""
    op = graph.operators[group.anchors[0]]
    batch, _, keys, head = matmul_shape(graph, op)
    left, right = (set(graph.tensors[name].dims) for name in op.inputs)
    rows = [d for d in graph.tensors[op.output].dims if d in left and d not in right]
    return batch * graph.points(rows[:-1]), batch, graph.sizes[rows[-1]], keys, head
