"""When kernels start: the host submits, the device waits for the host or for the kernel before.

submit_i = submit_{i-1} + c        c  one launch call
start_i  = max(end_{i-1} + g, submit_i + l)   g  gap between queued kernels, l  latency to an idle device
X = sum(start_i - end_{i-1})       exposed launch time
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from fusetui.accelerator.hardware import LaunchCosts

Mode = Literal["eager", "graph"]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Timeline:
    """Nanoseconds from the first launch call. `exposed_ns` is X; `total_ns` the end of the last kernel."""

    total_ns: float
    exposed_ns: float
    launches: int


@dataclass(frozen=True, slots=True)
class LaunchReduction:
    """Shares removed: of launches (i) and of exposed launch time (ii). Only (ii) is latency; None of none."""

    launches: float | None
    exposed_time: float | None


def launch_constants(costs: LaunchCosts, mode: Mode) -> tuple[float, float, float]:
    """(c, g, l) in ns. A replayed graph costs the host one call for all its kernels."""
    if mode == "graph":
        return 0.0, costs.graph_gap_ns, costs.latency_ns
    return costs.call_ns, costs.gap_ns, costs.latency_ns


def submitted(kernels: int, costs: LaunchCosts, mode: Mode) -> Floats:
    """When the host has each of so many kernels ready to start on an idle device, ns from the first launch call."""
    c, _, latency = launch_constants(costs, mode)
    call = costs.call_ns if mode == "graph" else 0.0
    return np.asarray(c * np.arange(1, kernels + 1) + latency + call)


def starts(kernel_ns: ArrayLike, costs: LaunchCosts, mode: Mode) -> Floats:
    """When each kernel starts, (n,) ns from the first launch call, run in order on one queue."""
    durations = np.asarray(kernel_ns, dtype=np.float64)
    gap = launch_constants(costs, mode)[1]
    # Were it never kept waiting by the host, kernel i would start this long after the first.
    busy = np.concatenate([[0.0], np.cumsum(durations + gap)[:-1]]) if durations.size else durations
    return np.asarray(busy + np.maximum.accumulate(submitted(durations.size, costs, mode) - busy))


def timeline(kernel_ns: ArrayLike, costs: LaunchCosts, mode: Mode) -> Timeline:
    """Run kernels of these durations in order on one queue."""
    durations = np.asarray(kernel_ns, dtype=np.float64)
    if not durations.size:
        return Timeline(0.0, 0.0, 0)
    total = float(starts(durations, costs, mode)[-1] + durations[-1])
    return Timeline(total, total - float(durations.sum()), int(durations.size))


def reduction(before: Timeline, after: Timeline) -> LaunchReduction:
    """How much of the launches and of the exposed time of `before` a plan removed."""
    return LaunchReduction(
        1.0 - after.launches / before.launches if before.launches else None,
        1.0 - after.exposed_ns / before.exposed_ns if before.exposed_ns else None,
    )
