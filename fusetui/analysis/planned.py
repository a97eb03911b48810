"""A plan beside what ran: the groups of a block or of a capture, each with its prediction and its measurement."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from fusetui.accelerator.blocks import build_block
from fusetui.accelerator.constants import Constants, default_constants, load_constants
from fusetui.accelerator.graph import Graph
from fusetui.accelerator.hardware import Hardware
from fusetui.accelerator.launch import Mode
from fusetui.accelerator.plan import GroupPlan, Plan, Plans, make_plans
from fusetui.accelerator.policy import POLICIES
from fusetui.accelerator.presets import load_hardware

DEFAULT_POLICY = "balanced"


@dataclass(frozen=True, slots=True)
class Knobs:
    """What a plan is made for; all that a person can change about it.

    block         a built-in block; "" plans the operators of the capture
    shapes        parameters of the block, as in ``--shapes``
    sram, bandwidth, launch   factors on the device's on-chip memory, DRAM bandwidth and launch costs
    constants     a file written by ``fusetui calibrate``, None: datasheet numbers, said to be uncalibrated
    """

    block: str = "transformer-prefill"
    shapes: Mapping[str, int | str] = field(default_factory=dict)
    hardware: str = "h100"
    dtype: str = "bf16"
    mode: Mode = "eager"
    policy: str = DEFAULT_POLICY
    sram: float = 1.0
    bandwidth: float = 1.0
    launch: float = 1.0
    constants: Path | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """What ran for one group: n runs, nearest-rank quantiles of their time on the device, and all of it, ns."""

    runs: int
    p50_ns: int
    p95_ns: int | None
    total_ns: int


@dataclass(frozen=True, slots=True)
class Captured:
    """The operators of a capture as a graph, with the time each took.

    measured        by operator name of the graph
    kernels         by operator name, what it was called in the capture
    window_ns       device time of all executions looked at; explained_ns: of those that are in the graph
    unexplained     device time by name of what has no place in the graph, largest first
    dtype           the type most of its work is in
    notes           what could not be recovered and which option of the profiler would have recorded it
    together        operators that ran as one kernel; its time is in `measured` under the first of them
    hardware        the described device it ran on (`host`: a CPU), None where the capture names none that is known
    """

    graph: Graph
    measured: Mapping[str, Measured]
    kernels: Mapping[str, str]
    window_ns: int
    explained_ns: int
    unexplained: tuple[tuple[str, int], ...]
    dtype: str
    notes: tuple[str, ...] = ()
    together: tuple[tuple[str, ...], ...] = ()
    hardware: str | None = None


@dataclass(frozen=True, slots=True)
class GroupRow:
    """One group of the plan. `residual` is measured p50 / predicted - 1, None where nothing was measured;
    `verdict` says what it means: "", "fits", "slower", "faster" or "unexplained"."""

    plan: GroupPlan
    measured: Measured | None
    residual: float | None
    verdict: str


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan of a block or of a capture, under the knobs it was made with."""

    knobs: Knobs
    graph: Graph
    hardware: Hardware
    constants: Constants
    plans: Plans
    rows: tuple[GroupRow, ...]
    captured: Captured | None

    @property
    def plan(self) -> Plan:
        """The plan of the policy asked for."""
        return self.plans.plans[self.knobs.policy]


def scaled(hw: Hardware, knobs: Knobs) -> Hardware:
    """`hw` with the what-if factors of `knobs`."""
    costs = {f.name: getattr(hw.launch, f.name) * knobs.launch for f in dataclasses.fields(hw.launch)}
    return dataclasses.replace(
        hw,
        sram_bytes_per_core=max(1, int(hw.sram_bytes_per_core * knobs.sram)),
        dram_bytes_per_s=hw.dram_bytes_per_s * knobs.bandwidth,
        launch=dataclasses.replace(hw.launch, **costs),
    )


@lru_cache(maxsize=8)
def _device(name: str) -> Hardware:
    """Read once: turning a knob must not wait for files."""
    return load_hardware(name)


@lru_cache(maxsize=8)
def _block(name: str, shapes: tuple[tuple[str, int | str], ...], dtype: str) -> Graph:
    """The same graph for the same sizes: what the model derives from a graph it keeps with it."""
    return build_block(name, dict(shapes), dtype)


def make_planned(
    knobs: Knobs, captured: Captured | None = None, *, policies: Sequence[str] = tuple(POLICIES)
) -> Planned:
    """Plan the block, or the capture's operators when ``knobs.block`` is empty, under every policy.

    policies  those to plan beside that of `knobs` and `none`
    Raises AcceleratorError for what the model cannot make sense of.
    """
    base = _device(knobs.hardware)
    hw = scaled(base, knobs)
    if knobs.constants is None:
        constants = default_constants(base, knobs.dtype)
    else:
        constants = load_constants(knobs.constants, knobs.dtype)
    own = captured if not knobs.block else None
    graph = own.graph if own is not None else _block(knobs.block, tuple(knobs.shapes.items()), knobs.dtype)
    plans = make_plans(
        graph, hw, constants, knobs.dtype, mode=knobs.mode, policies=tuple(dict.fromkeys((knobs.policy, *policies)))
    )
    plan = plans.plans[knobs.policy]
    if own is None:
        rows = tuple(GroupRow(group, None, None, "") for group in plan.groups)
    else:
        from fusetui.analysis.residuals import group_rows  # it is written in terms of the rows above

        rows = group_rows(plan, own, hw)
    return Planned(knobs, graph, hw, constants, plans, rows, own)
