"""The fusion and tile plan of a block on a device: groups, tiles and what they buy, under every policy."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Literal

import numpy as np

from fusetui.accelerator.constants import Constants, plan_error
from fusetui.accelerator.errors import HardwareError
from fusetui.accelerator.fusion import STATE_CAP, STEP_CAP, bits, enumerate_groups
from fusetui.accelerator.graph import Graph, GraphError, Operator, Tensor
from fusetui.accelerator.group import ALONE, Group, Rules
from fusetui.accelerator.hardware import Hardware
from fusetui.accelerator.lattice import Lattice, build_lattice
from fusetui.accelerator.launch import LaunchReduction, Mode, Timeline, reduction, starts, timeline
from fusetui.accelerator.memory import Residency, burst
from fusetui.accelerator.pareto import TileChoice
from fusetui.accelerator.policy import POLICIES, Priced, choose
from fusetui.accelerator.price import Price, Tile
from fusetui.accelerator.pricing import Pricer
from fusetui.accelerator.work import Workload

BALANCED: Final = "balanced"


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """One kernel of a plan. `bottleneck_before` is what limited its operators alone, by time; `registers` those of a
    thread, None where the architecture has no register file."""

    ops: tuple[str, ...]
    pattern: str
    tile: Tile | None
    bottleneck_before: str
    bottleneck: str
    predicted_ns: float
    unfused_ns: float
    dram_bytes: float
    reuse_factor: float | None
    occupancy: float
    waves: int
    spill_bytes: float
    sram_bytes: float
    flops: float
    repeated_flops: float
    registers: float | None = None

    @property
    def reuse_ratio(self) -> float | None:
        """1 - 1 / reuse factor; None when nothing is filled from device memory."""
        return None if self.reuse_factor is None else 1.0 - 1.0 / self.reuse_factor


@dataclass(frozen=True, slots=True)
class Totals:
    """A plan as a whole.

    predicted_error    relative error of `predicted_ns` in the median case; predicted_error_p95: in 19 cases of 20
    burst              rate to device memory in the busiest 100 µs over the plan's mean rate; `burst_bytes` is what
                       that window carries above the mean, `burst_bytes_per_s` its rate
    within_unfused     whether no more is ever live than with every operator alone, in the order of the graph
    within_device      whether what is live fits the device's memory
    saved              against the policy `none`
    """

    predicted_ns: float
    predicted_error: float
    predicted_error_p95: float
    kernel_ns: float
    launches: int
    exposed_launch_ns: float
    dram_bytes: float
    dram_lower_bound_bytes: float
    reuse_factor: float | None
    peak_bytes: float
    burst: float
    burst_bytes: float
    burst_bytes_per_s: float
    within_unfused: bool
    within_device: bool
    saved: LaunchReduction


@dataclass(frozen=True, slots=True)
class Plan:
    """Groups in the order they run."""

    policy: str
    groups: tuple[GroupPlan, ...]
    totals: Totals
    proved_optimal: bool


@dataclass(frozen=True, slots=True)
class Plans:
    """Plans of one block under the policies asked for, always with `none`."""

    block: str
    hardware: str
    dtype: str
    mode: Mode
    calibrated: bool
    plans: Mapping[str, Plan]
    search_ms: float


def make_plans(
    graph: Graph,
    hw: Hardware,
    constants: Constants,
    dtype: str,
    *,
    mode: Mode = "eager",
    policies: Sequence[str] = tuple(POLICIES),
) -> Plans:
    """Plan `graph` on `hw` under each policy. Raises AcceleratorError where the device lacks the type."""
    began = time.perf_counter()
    priced = price_graph(graph, hw, constants, dtype)
    context = _Context(priced, constants, dtype, mode)
    plans = {"none": context.plan("none", None)}
    for name in policies:
        if name != "none":
            plans[name] = context.plan(name, plans["none"])
    ordered = {name: plans[name] for name in POLICIES if name in plans}
    return Plans(graph.name, hw.name, dtype, mode, constants.calibrated, ordered, (time.perf_counter() - began) * 1e3)


@dataclass(frozen=True, slots=True)
class _Structure:
    """A graph without its sizes: what is legal does not depend on them."""

    operators: tuple[Operator, ...]
    tensors: tuple[Tensor, ...]
    graph: Graph = field(compare=False)


@lru_cache(maxsize=16)
def _legal(structure: _Structure) -> tuple[tuple[Group, ...], bool, Lattice | None]:
    """The legal groups, whether they are all, and their lattice; kept while sizes, hardware or policy change."""
    rules = Rules(structure.graph)
    preds = structure.graph.predecessors
    candidates = enumerate_groups(preds, may_grow=rules.may_grow)
    groups = tuple(g for m in candidates.masks if isinstance(g := rules.group(m), Group))
    lattice = build_lattice(preds, [g.mask for g in groups], STATE_CAP, STEP_CAP)
    return groups, candidates.complete, lattice


@lru_cache(maxsize=8)
def _workload(graph: Graph) -> Workload:
    """Kept while hardware or policy change."""
    return Workload(graph)


def price_graph(graph: Graph, hw: Hardware, constants: Constants, dtype: str) -> Priced:
    """Every legal group of `graph` with its price on `hw`, single operators included.

    Raises HardwareError when an operator does not fit the device even alone.
    """
    groups, complete, lattice = _legal(_Structure(graph.operators, tuple(graph.tensors.values()), graph))
    prices = Pricer(_workload(graph), hw, constants, dtype).prices(groups)
    for group, price in zip(groups, prices, strict=True):
        if group.reach == ALONE and not math.isfinite(price.time_ns):
            name = graph.operators[bits(group.mask)[0]].name
            problem = f"no tile of {name} fits {hw.sram_bytes_per_core:,} bytes of on-chip memory"
            raise HardwareError(f"hardware {hw.name}", problem, "sram_bytes_per_core must be larger")
    return Priced(graph, hw, groups, tuple(prices), complete, lattice)


def tile_options(
    graph: Graph, hw: Hardware, constants: Constants, dtype: str, plan: Plan
) -> dict[tuple[str, ...], tuple[TileChoice, ...]]:
    """By operators of each group of `plan` around a matrix product, the tiles no other beats in time, on-chip bytes
    and device memory bytes at once, fastest first."""
    index = {op.name: i for i, op in enumerate(graph.operators)}
    rules, pricer = Rules(graph), Pricer(_workload(graph), hw, constants, dtype)
    options = {}
    for chosen in plan.groups:
        group = rules.group(sum(1 << index[name] for name in chosen.ops))
        if isinstance(group, Group) and (choices := pricer.pareto(group)):
            options[chosen.ops] = choices
    return options


def force_group(graph: Graph, hw: Hardware, constants: Constants, dtype: str, ops: Sequence[str]) -> tuple[Price, str]:
    """What one kernel for `ops` would cost and why no rule allows it ("" when one does).

    Raises GraphError for a name the graph does not have.
    """
    index = {op.name: i for i, op in enumerate(graph.operators)}
    for name in ops:
        if name not in index:
            raise GraphError(f"graph {graph.name}", f"has no operator {name}", f"it has {', '.join(index)}")
    mask = sum(1 << index[name] for name in dict.fromkeys(ops))
    rules = Rules(graph)
    legal = rules.group(mask)
    price = Pricer(Workload(graph), hw, constants, dtype).prices([rules.forced(mask)])[0]
    return price, legal if isinstance(legal, str) else ""


class _Context:
    """What all policies of one call share."""

    def __init__(self, priced: Priced, constants: Constants, dtype: str, mode: Mode) -> None:
        self.priced, self.constants, self.dtype, self.mode = priced, constants, dtype, mode
        self.by_mask = {g.mask: (g, p) for g, p in zip(priced.groups, priced.prices, strict=True)}
        self.residency = Residency.of(priced.graph)

    def plan(self, name: str, unfused: Plan | None) -> Plan:
        """The plan under one policy; its savings against `unfused`."""
        partition = choose(self.priced, POLICIES[name], self.mode)
        chosen = [self.by_mask[mask] for mask in partition.groups]
        groups = tuple(self._group(g, p) for g, p in chosen)
        return Plan(name, groups, self._totals(chosen, groups, unfused), partition.proved_optimal)

    def _group(self, group: Group, price: Price) -> GroupPlan:
        graph = self.priced.graph
        alone: dict[str, float] = {}
        for i in bits(group.mask):
            single = self.by_mask[1 << i][1]
            alone[single.bottleneck] = alone.get(single.bottleneck, 0.0) + single.time_ns
        return GroupPlan(
            ops=tuple(graph.operators[i].name for i in bits(group.mask)),
            pattern=group.pattern,
            tile=price.tile,
            bottleneck_before=max(alone, key=lambda kind: alone[kind]),
            bottleneck=price.bottleneck,
            predicted_ns=price.time_ns,
            unfused_ns=sum(alone.values()),
            dram_bytes=price.dram_bytes,
            reuse_factor=price.reuse_factor,
            occupancy=price.occupancy,
            waves=price.waves,
            spill_bytes=price.spill_bytes,
            sram_bytes=price.sram_bytes,
            flops=price.flops,
            repeated_flops=price.repeated_flops,
            registers=price.registers,
        )

    def _totals(
        self, chosen: Sequence[tuple[Group, Price]], groups: Sequence[GroupPlan], unfused: Plan | None
    ) -> Totals:
        graph, hw = self.priced.graph, self.priced.hw
        kernels = [(p.time_ns, p.dram_bytes) for g, p in chosen if g.pattern != "view"]
        took, moved = np.array(kernels, dtype=np.float64).reshape(-1, 2).T
        line, began = timeline(took, hw.launch, self.mode), starts(took, hw.launch, self.mode)
        most = burst(began, began + took, moved)
        filled = sum(p.filled_bytes for _, p in chosen)
        before = line if unfused is None else _timeline_of(unfused.totals)
        peak = self.residency.peak(graph, [g for g, _ in chosen], [p.workspace_bytes for _, p in chosen])
        limit = peak if unfused is None else unfused.totals.peak_bytes
        return Totals(
            predicted_ns=line.total_ns,
            predicted_error=group_error(groups, self.constants, "median"),
            predicted_error_p95=group_error(groups, self.constants, "p95"),
            kernel_ns=float(took.sum()),
            launches=line.launches,
            exposed_launch_ns=line.exposed_ns,
            dram_bytes=sum(g.dram_bytes for g in groups),
            dram_lower_bound_bytes=graph.compulsory_bytes,
            reuse_factor=max(1.0, sum(p.served_bytes for _, p in chosen) / filled) if filled > 0 else None,
            peak_bytes=peak,
            burst=most.over_sustained,
            burst_bytes=most.above_bytes,
            burst_bytes_per_s=most.bytes_per_s,
            within_unfused=peak <= limit,
            within_device=peak <= hw.dram_bytes,
            saved=reduction(before, line),
        )


def group_error(groups: Sequence[GroupPlan], constants: Constants, quantile: Literal["median", "p95"]) -> float:
    """Relative error bar of all `groups` together, by what the constants know of each family of kernels."""
    spent = {"matmul": 0.0, "attention": 0.0, "vector": 0.0}
    for group in groups:
        spent[group.pattern if group.pattern in spent else "vector"] += group.predicted_ns
    return plan_error(constants, spent, quantile)


def _timeline_of(totals: Totals) -> Timeline:
    return Timeline(totals.predicted_ns, totals.exposed_launch_ns, totals.launches)
