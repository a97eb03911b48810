"""Live bytes over the order of groups, and how bursty the traffic to memory is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from fusetui.accelerator.graph import Graph
from fusetui.accelerator.group import Group
from fusetui.accelerator.hardware import Hardware
from fusetui.accelerator.price import Price


@dataclass(frozen=True, slots=True)
class Residency:
    """Live bytes of a graph's tensors.

    Weights and the block's inputs are held for the whole block (`fixed`); a value from when its group wrote it until
    the last operator that reads it is done; results to the end. After a down-set is done what is live follows from
    the down-set alone, which is why a limit on it can be part of the exact search.
    """

    fixed: float
    values: tuple[tuple[float, int, int], ...]  # bytes, producer's bit, readers' mask (0: a result)

    @classmethod
    def of(cls, graph: Graph) -> Residency:
        """The residency of every tensor of `graph`."""
        fixed = sum(graph.tensor_bytes(n) for n, t in graph.tensors.items() if t.role != "value")
        values = []
        for i, op in enumerate(graph.operators):
            readers = sum(1 << j for j in graph.consumers[op.output])
            values.append((0.0 if op.is_view else graph.tensor_bytes(op.output), 1 << i, readers))
        return cls(fixed, tuple(values))

    def after(self, done: int) -> float:
        """Live bytes once the operators in `done` have run."""
        live = self.fixed
        for size, maker, readers in self.values:
            if maker & done and (readers & ~done or not readers):
                live += size
        return live

    def during(self, graph: Graph, done: int, group: Group, workspace: float) -> float:
        """Live bytes while `group` runs after `done`: its inputs are still held, its outputs and workspace added."""
        return self.after(done) + sum(graph.tensor_bytes(name) for name in group.outputs) + workspace

    def peak(self, graph: Graph, groups: Sequence[Group], workspace: Sequence[float]) -> float:
        """The most bytes live at once when groups run in this order."""
        done, most = 0, self.fixed
        for group, extra in zip(groups, workspace, strict=True):
            most = max(most, self.during(graph, done, group, extra))
            done |= group.mask
        return most


def peak_limit(
    graph: Graph, groups: dict[int, Group], workspace: dict[int, float], limit: float
) -> Callable[[int, int], bool]:
    """For the search: whether a group may run after a down-set without more than `limit` bytes live."""
    residency = Residency.of(graph)
    after = cache(residency.after)
    added = {
        mask: sum(graph.tensor_bytes(name) for name in group.outputs) + workspace[mask]
        for mask, group in groups.items()
    }
    return lambda done, mask: after(done) + added[mask] <= limit


def burst(price: Price, hw: Hardware, element_bytes: float, fill_ns: float) -> float:
    """Peak demand on device memory over its bandwidth while a kernel runs.

    On a GPU a matrix product's first wave asks for every stage of every tile at once, within the time to fill the
    pipeline; other kernels, and scratchpads that are filled ahead, ask evenly.
    """
    steady = price.dram_bytes / price.time_ns * 1e9 / hw.dram_bytes_per_s if price.time_ns > 0 else 0.0
    tile = price.tile
    if tile is None or hw.kind != "gpu" or not fill_ns or not price.dram_bytes:
        return steady
    wave = hw.cores * tile.stages * (tile.m + tile.n) * tile.k * element_bytes
    first = min(wave, price.dram_bytes) / fill_ns * 1e9
    return max(steady, first / hw.dram_bytes_per_s)
