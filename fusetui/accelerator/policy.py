"""How far fusion may go: which groups a policy takes, what it minimises, and the search that applies it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from fusetui.accelerator.fusion import Cost, Partition, best_partition
from fusetui.accelerator.graph import Graph
from fusetui.accelerator.group import ALONE, ANCHORED, ROW_ANCHORED, VECTOR, Group
from fusetui.accelerator.hardware import Hardware
from fusetui.accelerator.launch import Mode, steady_cost
from fusetui.accelerator.memory import Residency, peak_limit
from fusetui.accelerator.price import Price


@dataclass(frozen=True, slots=True)
class Policy:
    """reach: the most daring group taken; the rest are limits on single groups and what is minimised first.

    least_occupancy  of a fused group that has registers to run out of
    repeat_limit     most arithmetic that fusion may repeat, as a share of the group's own
    time_first       minimise time, launches breaking ties; else launches, time breaking ties
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
    """Legal groups of a graph with their prices on a device."""

    graph: Graph
    hw: Hardware
    groups: tuple[Group, ...]
    prices: tuple[Price, ...]
    complete: bool


def choose(priced: Priced, policy: Policy, mode: Mode) -> Partition:
    """The best partition under `policy` that needs no more memory than running every operator alone.

    Single operators are always taken, so there is always one.
    """
    taken = [i for i, (g, p) in enumerate(zip(priced.groups, priced.prices, strict=True)) if _takes(policy, g, p)]
    groups = [priced.groups[i] for i in taken]
    prices = [priced.prices[i] for i in taken]
    if policy.reach == ALONE:
        return _as_written(groups, _costs(priced.hw, groups, prices, policy, mode))
    masks, costs = [g.mask for g in groups], _costs(priced.hw, groups, prices, policy, mode)
    preds = priced.graph.predecessors
    free = best_partition(preds, masks, costs, complete=priced.complete)
    assert free is not None
    limit = _memory_limit(priced)
    if _peak(priced.graph, free, groups, prices) <= limit:
        return free
    by_mask = {g.mask: g for g in groups}
    workspace = {g.mask: p.workspace_bytes for g, p in zip(groups, prices, strict=True)}
    held = best_partition(
        preds,
        masks,
        costs,
        step_allowed=peak_limit(priced.graph, by_mask, workspace, limit),
        complete=priced.complete,
    )
    return held if held is not None else free


def _as_written(groups: Sequence[Group], costs: Sequence[Cost]) -> Partition:
    """Every operator alone, in the order of the graph."""
    total = (sum(c[0] for c in costs), sum(c[1] for c in costs))
    return Partition(tuple(g.mask for g in groups), total, True, len(groups))


def _takes(policy: Policy, group: Group, price: Price) -> bool:
    if group.reach == ALONE:
        return True
    if group.reach > policy.reach or not math.isfinite(price.time_ns):
        return False
    if price.spill_bytes and not policy.may_spill:
        return False
    own = max(price.flops - price.repeated_flops, 1.0)
    return price.occupancy >= policy.least_occupancy and price.repeated_flops <= policy.repeat_limit * own


def _costs(hw: Hardware, groups: Sequence[Group], prices: Sequence[Price], policy: Policy, mode: Mode) -> list[Cost]:
    times = steady_cost([p.time_ns for p in prices], hw.launch, mode)
    costs: list[Cost] = []
    for group, time in zip(groups, times.tolist(), strict=True):
        launches = 0.0 if group.pattern == "view" else 1.0
        cost = 0.0 if group.pattern == "view" else time
        costs.append((cost, launches) if policy.time_first else (launches, cost))
    return costs


def _memory_limit(priced: Priced) -> float:
    """Live bytes a fused plan may reach: those of the unfused one, in the order of the graph."""
    alone = [(g, p) for g, p in zip(priced.groups, priced.prices, strict=True) if g.reach == ALONE]
    return Residency.of(priced.graph).peak(priced.graph, [g for g, _ in alone], [p.workspace_bytes for _, p in alone])


def _peak(graph: Graph, partition: Partition, groups: Sequence[Group], prices: Sequence[Price]) -> float:
    by_mask = {g.mask: (g, p) for g, p in zip(groups, prices, strict=True)}
    chosen = [by_mask[mask] for mask in partition.groups]
    return Residency.of(graph).peak(graph, [g for g, _ in chosen], [p.workspace_bytes for _, p in chosen])
