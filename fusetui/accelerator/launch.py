"""When kernels start: the host submits, the device waits for the host or for the kernel before.

submit_i = submit_{i-1} + c        c  one launch call
start_i  = max(end_{i-1} + g, submit_i + l)   g  gap between queued kernels, l  latency to an idle device
X = sum(start_i - end_{i-1})       exposed launch time
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from fusetui.accelerator.hardware import LaunchCosts

Mode = Literal["eager", "graph"]


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


def timeline(kernel_ns: ArrayLike, costs: LaunchCosts, mode: Mode) -> Timeline:
    """Run kernels of these durations in order on one queue."""
    durations = np.asarray(kernel_ns, dtype=np.float64)
    c, g, latency = launch_constants(costs, mode)
    submitted = c * np.arange(1, durations.size + 1) + latency
    if mode == "graph":
        submitted += costs.call_ns
    end = exposed = 0.0
    for i, duration in enumerate(durations):
        start = max(end + (g if i else 0.0), float(submitted[i]))
        exposed += start - end
        end = start + float(duration)
    return Timeline(end, exposed, int(durations.size))


def steady_cost(kernel_ns: ArrayLike, costs: LaunchCosts, mode: Mode) -> np.ndarray:
    """What one more kernel adds to a long run: its duration and gap, or the launch call when that is slower, ns."""
    c, g, _ = launch_constants(costs, mode)
    return np.maximum(np.asarray(kernel_ns, dtype=np.float64) + g, c)


def reduction(before: Timeline, after: Timeline) -> LaunchReduction:
    """How much of the launches and of the exposed time of `before` a plan removed."""
    return LaunchReduction(
        1.0 - after.launches / before.launches if before.launches else None,
        1.0 - after.exposed_ns / before.exposed_ns if before.exposed_ns else None,
    )
