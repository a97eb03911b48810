"""Plan tables of the accelerator model: a block planned at each captured size, and the generic path beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fusetui.accelerator.blocks import build_block
from fusetui.accelerator.constants import Constants
from fusetui.accelerator.errors import AcceleratorError
from fusetui.accelerator.hardware import Hardware
from fusetui.accelerator.launch import Mode, starts
from fusetui.accelerator.plan import BALANCED, GroupPlan, Plan, make_plans
from fusetui.accelerator.runtime.paths import Path, PlanTable
from fusetui.accelerator.runtime.types import Floats

_UNFUSED = "none"


def plan_table(
    block: str,
    rows_name: str,
    sizes: Sequence[int],
    hw: Hardware,
    constants: Constants,
    *,
    shapes: Mapping[str, int | str] | None = None,
    dtype: str = "bf16",
    policy: str = BALANCED,
    best: str = BALANCED,
    layers: int = 1,
) -> PlanTable:
    """Plans of `block` with its parameter `rows_name` at each of `sizes` (ascending), replayed as captured graphs.

    policy  of the plan in use; the fallback runs operator by operator, launched one by one
    best    policy the plan is judged against
    layers  how often the block runs in a job, one after another
    """
    if layers < 1 or not sizes:
        raise AcceleratorError("plan table", f"{layers} layers, {len(sizes)} sizes", "one or more of each")

    def path(policy: str, mode: Mode) -> Path:
        plans = []
        for size in sizes:
            graph = build_block(block, {**(shapes or {}), rows_name: size}, dtype)
            plans.append(make_plans(graph, hw, constants, dtype, mode=mode, policies=(policy,)).plans[policy])
        return _path(sizes, plans, hw, mode, layers)

    planned = path(policy, "graph")
    return PlanTable(block, planned, path(_UNFUSED, "eager"), None if best == policy else path(best, "graph"))


def _path(sizes: Sequence[int], plans: Sequence[Plan], hw: Hardware, mode: Mode, layers: int) -> Path:
    """Kernels of each size end to end; operators that only rename memory run nothing."""
    kernels = [[g for g in plan.groups if g.pattern != "view"] * layers for plan in plans]
    flat = [g for groups in kernels for g in groups]
    launches = [_exposed_ns(groups, hw, mode) for groups in kernels]
    dram = np.array([g.dram_bytes for g in flat])
    time_ns = np.array([g.predicted_ns for g in flat])
    asked = np.divide(dram, time_ns, out=np.zeros_like(dram), where=time_ns > 0) * 1e9 / hw.dram_bytes_per_s
    return Path(
        rows=np.asarray(sizes, np.int64), first=np.cumsum([0, *map(len, kernels)]),
        names=tuple(_name(g) for g in flat), kernel_ns=time_ns, launch_ns=np.concatenate(launches), dram_bytes=dram,
        flops=np.array([g.flops for g in flat]), demand=asked,
    )  # fmt: skip


def _exposed_ns(groups: Sequence[GroupPlan], hw: Hardware, mode: Mode) -> Floats:
    """How long the device stood waiting before each kernel."""
    took = np.array([g.predicted_ns for g in groups])
    begin = starts(took, hw.launch, mode)
    exposed: Floats = np.diff(begin + took, prepend=0.0) - took
    return exposed


def _name(group: GroupPlan) -> str:
    return "+".join(group.ops)
