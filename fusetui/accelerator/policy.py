"""How far fusion may go: which groups a policy takes, what it minimises, and the search that applies it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
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


@dataclass(frozen=True, slots=True)
class Priced:
    """Legal groups of a graph with their prices on a device; `lattice` is None where it would be too large."""

    graph: Graph
    hw: Hardware
    groups: tuple[Group, ...]
    prices: tuple[Price, ...]
    complete: bool
    lattice: Lattice | None = None


def choose(priced: Priced, policy: Policy, mode: Mode) -> Partition:
    """The best partition under `policy` that needs no more memory than running every operator alone.

    Single operators are always taken, so there is always one. Where the search finds no order within that limit, which
    only a search that is not exact can miss, the best of all orders.
    """
    if policy.reach == ALONE:
        alone = tuple(g.mask for g in priced.groups if g.reach == ALONE)
        return Partition(alone, True, len(alone))
    groups, prices, graph = priced.groups, priced.prices, priced.graph
    launch = priced.hw.launch
    search = partial(
        best_partition,
        graph.predecessors,
        [g.mask for g in groups],
        _taken_ns(priced, policy),
        np.array([g.pattern != "view" for g in groups]),
        Queue(submitted(len(graph.operators), launch, mode), launch_constants(launch, mode)[1]),
        fewest_first=not policy.time_first,
        lattice=priced.lattice or "too large",
        complete=priced.complete,
    )
    free = search()
    assert free is not None
    limit = _memory_limit(priced)
    if _peak(graph, free, groups, prices) <= limit:
        return free
    by_mask = {g.mask: g for g in groups}
    workspace = {g.mask: p.workspace_bytes for g, p in zip(groups, prices, strict=True)}
    return search(step_allowed=peak_limit(graph, by_mask, workspace, limit)) or free


def _taken_ns(priced: Priced, policy: Policy) -> Floats:
    """(groups,): what the search takes for the time of each, infinite for one that the policy does not take.

    Where launches come first, traffic counts beside time, or it would be given away for the last nanosecond.
    """
    alone = {bits(g.mask)[0]: p.dram_bytes for g, p in zip(priced.groups, priced.prices, strict=True) if not g.reach}
    times = []
    for group, price in zip(priced.groups, priced.prices, strict=True):
        apart = sum(alone[i] for i in bits(group.mask))
        own = 0.0 if group.pattern == "view" else price.time_ns
        if not policy.time_first:
            own += price.dram_bytes / priced.hw.dram_bytes_per_s * 1e9
        times.append(own if _takes(policy, group, price, apart) else math.inf)
    return np.array(times)


def _takes(policy: Policy, group: Group, price: Price, apart_bytes: float) -> bool:
    if group.reach == ALONE:
        return True
    if group.reach > policy.reach or not math.isfinite(price.time_ns):
        return False
    if price.spill_bytes and not policy.may_spill:
        return False
    if not policy.time_first and price.dram_bytes > apart_bytes:
        return False
    own = max(price.flops - price.repeated_flops, 1.0)
    return price.occupancy >= policy.least_occupancy and price.repeated_flops <= policy.repeat_limit * own


def _memory_limit(priced: Priced) -> float:
    """Live bytes a fused plan may reach: those of the unfused one, in the order of the graph."""
    alone = [(g, p) for g, p in zip(priced.groups, priced.prices, strict=True) if g.reach == ALONE]
    return Residency.of(priced.graph).peak(priced.graph, [g for g, _ in alone], [p.workspace_bytes for _, p in alone])


def _peak(graph: Graph, partition: Partition, groups: Sequence[Group], prices: Sequence[Price]) -> float:
    by_mask = {g.mask: (g, p) for g, p in zip(groups, prices, strict=True)}
    chosen = [by_mask[mask] for mask in partition.groups]
    return Residency.of(graph).peak(graph, [g for g, _ in chosen], [p.workspace_bytes for _, p in chosen])
