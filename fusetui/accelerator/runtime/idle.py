"""Time in which some core stood idle: how much of a wait another core could have taken over."""

from __future__ import annotations

import numpy as np

from fusetui.accelerator.runtime.types import Ints


def idle_between(from_ns: Ints, to_ns: Ints, start_ns: Ints, end_ns: Ints, free_ns: Ints) -> Ints:
    """(n,) ns of each [from, to) during which fewer cores were busy than there are.

    Cores are busy from 0 to `free_ns` (cores,), and while the jobs [start, end) run.
    """
    times = np.concatenate([start_ns, end_ns, free_ns])
    change = np.repeat([1, -1], [len(start_ns), len(end_ns) + len(free_ns)])
    order = np.argsort(times, kind="stable")
    times = np.concatenate([[0], times[order]])
    busy = len(free_ns) + np.concatenate([[0], np.cumsum(change[order])])
    some_idle = busy < len(free_ns)
    until = np.concatenate([[0], np.cumsum(np.diff(times) * some_idle[:-1])])

    def idle_until(at: Ints) -> Ints:
        piece = np.searchsorted(times, at, side="right") - 1
        reached: Ints = until[piece] + some_idle[piece] * (at - times[piece])
        return reached

    return idle_until(to_ns) - idle_until(from_ns)
