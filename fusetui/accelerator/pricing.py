"""Price of groups on a device: all kernels of a graph in a few array calls, one per pattern."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from fusetui.accelerator import bottleneck
from fusetui.accelerator.constants import Constants
from fusetui.accelerator.forced import price_forced
from fusetui.accelerator.fused_attention import price_fused_attention
from fusetui.accelerator.fusion import bits
from fusetui.accelerator.group import Group
from fusetui.accelerator.hardware import Hardware, dtype_bytes
from fusetui.accelerator.matmul import price_matmuls, products
from fusetui.accelerator.pareto import TileChoice, tile_choices
from fusetui.accelerator.price import FREE, REGISTERS_PER_VALUE, Price, Tile
from fusetui.accelerator.tiles import candidate_tiles
from fusetui.accelerator.vector import price_vectors
from fusetui.accelerator.work import Work, Workload

Floats = npt.NDArray[np.float64]

BASE_REGISTERS: Final = 24  # addresses, counters, predicates
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
        for patterns, price in ((("vector", "scan"), self._vector), (("matmul",), self._matmul)):
            # Layers repeat: what is asked of the device more than once is priced once.
            asked: dict[tuple[Work, float], list[int]] = {}
            for i, group in enumerate(groups):
                if group.pattern in patterns:
                    asked.setdefault((works[i], self._hot(group)), []).append(i)
            if asked:
                for at, one in zip(asked.values(), price(*zip(*asked, strict=True)), strict=True):
                    for i in at:
                        found[i] = one
        for pattern, price_all in (("attention", self._attention), ("forced", self._forced)):
            at = [i for i, g in enumerate(groups) if g.pattern == pattern]
            if at:
                for i, one in zip(at, price_all([groups[i] for i in at], [works[i] for i in at]), strict=True):
                    found[i] = one
        return found

    def _hot(self, group: Group) -> float:
        """Bytes of operands that were written so lately that the shared cache may still hold them."""
        first = bits(group.mask)[0]
        hot = 0.0
        for name in group.inputs:
            maker = self._maker(name)
            if maker is None or maker > first:
                continue
            between = self._touched[first] - self._touched[maker + 1]
            size = self._workload.sizes[name]
            if between + size <= self.hw.l2_bytes:
                hot += size
        return hot

    def _maker(self, name: str) -> int | None:
        """The operator that wrote a tensor, seen through views; None for what the block is given."""
        maker = self.graph.producer.get(name)
        while maker is not None and self.graph.operators[maker].is_view:
            maker = self.graph.producer.get(self.graph.operators[maker].inputs[0])
        return maker

    def _registers(self, work: Work, *, is_forced: bool = False) -> float:
        held = work.row_elements <= HELD_ROW or is_forced
        row = work.row_elements / ROW_THREADS * work.row_values if held else 0.0
        return BASE_REGISTERS + REGISTERS_PER_VALUE * work.live + (row if work.row_elements > 1 else 0.0)

    def _vector(self, works: Sequence[Work], hot: Sequence[float]) -> list[Price]:
        registers = [self._registers(w) for w in works]
        p = price_vectors(
            self.hw,
            self.constants,
            [w.read_bytes for w in works],
            [w.write_bytes for w in works],
            [w.cost_class for w in works],
            rows=[w.rows for w in works],
            hot_bytes=hot,
            registers=registers,
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
                registers=registers[i] if self.hw.registers_per_core else None,
            )
            for i, w in enumerate(works)
        ]

    def pareto(self, group: Group) -> tuple[TileChoice, ...]:
        """Tiles of a group around one matrix product that no other tile beats; empty for other groups."""
        if group.pattern != "matmul":
            return ()
        work = self._workload.work(group)
        asked = self._asked([work], [self._hot(group)])
        added_ns = self._row_again_ns(work)
        return tile_choices(self.hw, self.constants, self.dtype, products(*asked.values()), added_ns=added_ns)

    def _asked(self, works: Sequence[Work], hot: Sequence[float]) -> dict[str, Floats]:
        """Products with what fused neighbours add, arrays (Q,): the arguments of `price_matmuls`."""
        element = dtype_bytes(self.dtype)
        b, m, n, k = np.array([w.shape for w in works], dtype=np.float64).reshape(-1, 4).T
        moved = np.array([w.read_bytes + w.write_bytes for w in works])
        return {
            "batch": b,
            "m": m,
            "n": n,
            "k": k,
            "reserved_sram": np.zeros(len(works)),
            "extra_registers": np.array([float(REGISTERS_PER_VALUE * max(0, w.live - 2)) for w in works]),
            "extra_bytes": moved - b * (m * k + k * n + m * n) * element,
            "epilogue_flops": np.array([w.vector_flops for w in works]),
            "hot_bytes": np.array(hot),
            "full_rows": np.array([float(w.whole_rows) for w in works]),
        }

    @cached_property
    def _tile_registers(self) -> dict[tuple[int, int], float]:
        """Registers of a thread by tile shape; empty where there is no register file."""
        tiles = candidate_tiles(self.hw, self.dtype)
        known = zip(tiles.m.tolist(), tiles.n.tolist(), tiles.registers.tolist(), strict=True)
        return {(int(m), int(n)): registers for m, n, registers in known if registers}

    def _matmul(self, works: Sequence[Work], hot: Sequence[float]) -> list[Price]:
        asked = self._asked(works, hot)
        p = price_matmuls(self.hw, self.constants, dtype=self.dtype, **asked)
        b, m, n, k = (asked[name] for name in ("batch", "m", "n", "k"))
        again = np.array([self._row_again_ns(w) for w in works])
        # A scratchpad serves its array: rows stream past every block of columns, columns are loaded per tile of rows.
        streamed = b * m * k * n * dtype_bytes(self.dtype) * (1 / self.hw.mma_shape(self.dtype)[1] + 1 / p.tile_m)
        served = p.l2_bytes if self.hw.l2_bytes else streamed
        workspace = np.where(p.split_k > 1, 4.0 * p.split_k * b * m * n, 0.0)
        known = [self._tile_registers.get(side) for side in zip(p.tile_m.tolist(), p.tile_n.tolist(), strict=True)]
        extra = asked["extra_registers"].tolist()
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
                registers=None if (own := known[i]) is None else own + extra[i],
            )
            for i, w in enumerate(works)
        ]

    def _row_again_ns(self, work: Work) -> float:
        """A row reduced before a matrix product is read once more by every tile that loads it, from the cache."""
        rate = self.hw.l2_bytes_per_s * self.constants.eta_l2 or self.hw.dram_bytes_per_s * self.constants.eta_dram
        return work.row_again_bytes / rate * 1e9

    def _attention(self, groups: Sequence[Group], works: Sequence[Work]) -> list[Price]:
        hot = [self._hot(g) for g in groups]
        return price_fused_attention(self.graph, self.hw, self.constants, self.dtype, groups, works, hot)

    def _forced(self, groups: Sequence[Group], works: Sequence[Work]) -> list[Price]:
        return [
            price_forced(self.graph, self.hw, self.constants, self.dtype, g, w, self._registers(w, is_forced=True))
            for g, w in zip(groups, works, strict=True)
        ]
