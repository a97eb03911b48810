"""What a job runs under plans of the accelerator model, kernel by kernel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusetui.accelerator.errors import AcceleratorError
from fusetui.accelerator.hardware import Hardware
from fusetui.accelerator.launch import Mode, starts
from fusetui.accelerator.plan import GroupPlan, Plan
from fusetui.accelerator.runtime.paths import Path
from fusetui.accelerator.runtime.types import Floats


def path_of(sizes: Sequence[int], plans: Sequence[Plan], hw: Hardware, mode: Mode, layers: int = 1) -> Path:
    """The kernels of the plan for each of `sizes` (ascending) in order, with what the device waits for each launch.

    layers  how often the block runs in a job, one after another
    Operators that only rename memory run nothing.
    """
    if layers < 1 or not sizes:
        raise AcceleratorError("plan table", f"{layers} layers, {len(sizes)} sizes", "one or more of each")
    kernels = [[g for g in plan.groups if g.pattern != "view"] * layers for plan in plans]
    flat = [g for groups in kernels for g in groups]
    launches = [_exposed_ns(groups, hw, mode) for groups in kernels]
    dram = np.array([g.dram_bytes for g in flat])
    time_ns = np.array([g.predicted_ns for g in flat])
    asked = np.divide(dram, time_ns, out=np.zeros_like(dram), where=time_ns > 0) * 1e9 / hw.dram_bytes_per_s
    return Path(
        rows=np.asarray(sizes, np.int64), first=np.cumsum([0, *map(len, kernels)]),
        names=tuple(" + ".join(g.ops) for g in flat), kernel_ns=time_ns, launch_ns=np.concatenate(launches),
        dram_bytes=dram, flops=np.array([g.flops for g in flat]), demand=asked,
    )  # fmt: skip


def _exposed_ns(groups: Sequence[GroupPlan], hw: Hardware, mode: Mode) -> Floats:
    """How long the device stood waiting before each kernel."""
    took = np.array([g.predicted_ns for g in groups])
    ended = starts(took, hw.launch, mode) + took
    exposed: Floats = np.maximum(np.diff(ended, prepend=0.0) - took, 0.0)
    return exposed
