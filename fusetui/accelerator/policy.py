"""How far fusion may go: which groups a policy takes, what it minimises, and the search that applies it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from types import MappingProxyType
from typing import Final

import numpy as np
import numpy.typing as npt

from fusetui.accelerator.fusion import Partition, best_partition, bits
from fusetui.accelerator.graph import Graph
from fusetui.accelerator.group import ALONE, ANCHORED, ROW_ANCHORED, VECTOR, Group
from fusetui.accelerator.hardware import Hardware
from fusetui.accelerator.lattice import Lattice, Queue
from fusetui.accelerator.launch import Mode, launch_constants, submitted
from fusetui.accelerator.memory import Residency, peak_limit
from fusetui.accelerator.price import Price

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Policy:
    """reach: the most daring group taken; the rest are limits on single groups and what is minimised first.

    least_occupancy  of a fused group that has registers to run out of
    repeat_limit     most arithmetic that fusion may repeat, as a share of the group's own
    time_first       minimise time, launches breaking ties; else launches, time and traffic breaking ties, and no group
                     that moves more bytes than its operators apart: nothing else would hold it back
    """

    name: str
    title: str
    reach: int
    may_spill: bool = False
    least_occupancy: float = 0.0
    repeat_limit: float = math.inf
    time_first: bool = True


POLICIES: Final[Mapping[str, Policy]] = MappingProxyType(
    {
        p.name: p
        for p in (
            Policy("none", "every operator its own kernel", ALONE),
            Policy("conservative", "vector operators together, library kernels alone", VECTOR, False, 0.25, 1.0),
            Policy("balanced", "least time: products with their neighbours, attention in one kernel", ANCHORED),
            Policy("aggressive", "fewest launches that are legal", ROW_ANCHORED, True, time_first=False),
        )
    }
)


@dataclass(frozen=True)
class Priced:
    """Legal groups of a graph with their prices on a device; `lattice` is None where it would be too large."""

    graph: Graph
    hw: Hardware
    groups: tuple[Group, ...]
    prices: tuple[Price, ...]
    complete: bool
    lattice: Lattice | None = None

    @cached_property
    def figures(self) -> _Figures:
        """What policies compare."""
        prices, bytes_alone = self.prices, {}
        for group, price in zip(self.groups, prices, strict=True):
            if group.reach == ALONE:
                bytes_alone[bits(group.mask)[0]] = price.dram_bytes
        return _Figures(
            reach=np.array([g.reach for g in self.groups]),
            is_view=np.array([g.pattern == "view" for g in self.groups]),
            time_ns=np.array([p.time_ns for p in prices]),
            dram_bytes=np.array([p.dram_bytes for p in prices]),
            apart_bytes=np.array([sum([bytes_alone[i] for i in bits(g.mask)]) for g in self.groups]),
            spill_bytes=np.array([p.spill_bytes for p in prices]),
            occupancy=np.array([p.occupancy for p in prices]),
            own_flops=np.array([max(p.flops - p.repeated_flops, 1.0) for p in prices]),
            repeated_flops=np.array([p.repeated_flops for p in prices]),
        )

    @cached_property
    def memory_limit(self) -> float:
        """Live bytes a fused plan may reach: those of the unfused one, in the order of the graph."""
        alone = [(g, p) for g, p in zip(self.groups, self.prices, strict=True) if g.reach == ALONE]
        return Residency.of(self.graph).peak(self.graph, [g for g, _ in alone], [p.workspace_bytes for _, p in alone])


@dataclass(frozen=True, slots=True)
class _Figures:
    """Arrays (groups,). `apart_bytes`: traffic of its operators alone; `own_flops`: at least 1."""

    reach: npt.NDArray[np.int64]
    is_view: npt.NDArray[np.bool_]
    time_ns: Floats
    dram_bytes: Floats
    apart_bytes: Floats
    spill_bytes: Floats
    occupancy: Floats
    own_flops: Floats
    repeated_flops: Floats


def choose(priced: Priced, policy: Policy, mode: Mode) -> Partition:
    """The best partition under `policy` that needs no more memory than running every operator alone.

    Single operators are always taken, so there is always one. Where the search finds no order within that limit, which
    only a search that is not exact can miss, the best of all orders.
    """
    if policy.reach == ALONE:
        alone = tuple(g.mask for g in priced.groups if g.reach == ALONE)
        return Partition(alone, True, len(alone))
    groups, graph = priced.groups, priced.graph
    launch = priced.hw.launch
    search = partial(
        best_partition,
        graph.predecessors,
        [g.mask for g in groups],
        _taken_ns(priced, policy),
        ~priced.figures.is_view,
        Queue(submitted(len(graph.operators), launch, mode), launch_constants(launch, mode)[1]),
        fewest_first=not policy.time_first,
        lattice=priced.lattice or "too large",
        complete=priced.complete,
    )
    free = search()
    assert free is not None
    by_mask = {g.mask: g for g in groups}
    workspace = {g.mask: p.workspace_bytes for g, p in zip(groups, priced.prices, strict=True)}
    if _peak(graph, free.groups, by_mask, workspace) <= priced.memory_limit:
        return free
    return search(step_allowed=peak_limit(graph, by_mask, workspace, priced.memory_limit)) or free


def _taken_ns(priced: Priced, policy: Policy) -> Floats:
    """(groups,): what the search takes for the time of each, infinite for one that the policy does not take.

    Where launches come first, traffic counts beside time, or it would be given away for the last nanosecond.
    """
    f = priced.figures
    taken = (f.reach <= policy.reach) & np.isfinite(f.time_ns)
    if not policy.may_spill:
        taken &= f.spill_bytes == 0
    if not policy.time_first:
        taken &= f.dram_bytes <= f.apart_bytes
    taken &= (f.occupancy >= policy.least_occupancy) & (f.repeated_flops <= policy.repeat_limit * f.own_flops)
    own = np.where(f.is_view, 0.0, f.time_ns)
    if not policy.time_first:
        own = own + f.dram_bytes / priced.hw.dram_bytes_per_s * 1e9
    return np.where(taken | (f.reach == ALONE), own, np.inf)


def _peak(graph: Graph, masks: Sequence[int], groups: Mapping[int, Group], workspace: Mapping[int, float]) -> float:
    return Residency.of(graph).peak(graph, [groups[mask] for mask in masks], [workspace[mask] for mask in masks])
