"""Live bytes over the order of groups, and how bursty the traffic to memory is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from fusetui.accelerator.graph import Graph
from fusetui.accelerator.group import Group

Floats = npt.NDArray[np.float64]

WINDOW_NS: Final = 100_000.0
ALWAYS: Final = -1  # every bit: read by more operators than any block has


@dataclass(frozen=True, slots=True)
class Residency:
    """Live bytes of a graph's tensors.

    Weights and the block's inputs are held for the whole block (`fixed`); a value from when its group wrote it until
    the last operator that reads it is done; results to the end. After a down-set is done what is live follows from
    the down-set alone, which is why a limit on it can be part of the exact search.
    """

    fixed: float
    values: tuple[tuple[float, int, int], ...]  # bytes, producer's bit, readers' mask (ALWAYS: a result)

    @classmethod
    @lru_cache(maxsize=8)
    def of(cls, graph: Graph) -> Residency:
        """The residency of every tensor of `graph`; kept, as every policy asks."""
        fixed = sum(graph.tensor_bytes(n) for n, t in graph.tensors.items() if t.role != "value")
        values = []
        for i, op in enumerate(graph.operators):
            if not op.is_view:
                values.append((graph.tensor_bytes(op.output), 1 << i, _readers(graph, op.output) or ALWAYS))
        return cls(fixed, tuple(values))

    def after(self, done: int) -> float:
        """Live bytes once the operators in `done` have run."""
        left = ~done
        return self.fixed + sum([size for size, maker, readers in self.values if maker & done and readers & left])

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


def _readers(graph: Graph, name: str) -> int:
    """Operators that read a tensor or a view of it; 0 when it is a result."""
    readers = 0
    for i in graph.consumers[name]:
        op = graph.operators[i]
        seen_as = _readers(graph, op.output) if op.is_view else 0
        if op.is_view and not seen_as:
            return 0
        readers |= 1 << i | seen_as
    return readers


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


@dataclass(frozen=True, slots=True)
class Burst:
    """Traffic to device memory in the window that carries most of it.

    over_sustained   its rate over the rate that the whole run sustains: 1 where traffic is even, or there is none
    above_bytes      what it carries beyond that rate
    bytes_per_s      its rate
    """

    over_sustained: float
    above_bytes: float
    bytes_per_s: float


def burst(start_ns: Floats, end_ns: Floats, moved_bytes: Floats, window_ns: float = WINDOW_NS) -> Burst:
    """The memory burst of kernels, arrays (n,) in any order; each spreads its traffic evenly over its time.

    The same measure for a plan and for what ran. A run shorter than a window is its own window.
    """
    moved = (end_ns > start_ns) & (moved_bytes > 0)
    if not moved.any():
        return Burst(1.0, 0.0, 0.0)
    start, end, traffic = start_ns[moved], end_ns[moved], moved_bytes[moved]
    first, last = float(start_ns.min()), float(end_ns.max())
    window = min(window_ns, last - first)
    edges = np.concatenate([start, end])
    order = np.argsort(edges, kind="stable")
    edges, rate = edges[order], traffic / (end - start)
    rates = np.cumsum(np.concatenate([rate, -rate])[order])
    sums = np.concatenate([[0.0], np.cumsum(rates[:-1] * np.diff(edges))])
    # The sum over a window is greatest where one of its ends is the edge of a kernel.
    opens = np.clip(np.concatenate([edges, edges - window]), first, last - window)
    most = float(np.max(np.interp(opens + window, edges, sums) - np.interp(opens, edges, sums)))
    sustained = float(traffic.sum()) / (last - first)
    return Burst(max(1.0, most / (sustained * window)), max(0.0, most - sustained * window), most / window * 1e9)
