"""How work reached the queue: launches joined to their executions, and the launch overhead the device saw.

Exposed launch overhead X = Σ (start_i - E_i) over executions i of a stream that have a queue wait of their own,
where E_i is the latest end of those that ended before i on that stream, start_i > E_i, and enqueue_i > E_i: the
queue was empty when the previous execution ended and stayed empty until i's launch call returned, so the device
waited for the host. Gaps whose work was queued in time belong to the device or the runtime and are left out.
Blind spot: a host that had nothing to launch looks the same as a host that was slow to launch.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from fusetui.analysis.arrays import Bools, Ints
from fusetui.analysis.busy import Order
from fusetui.analysis.columns import NULL
from fusetui.analysis.work import Work

RUNTIME_OUTLIER_NS: Final = 50_000
DELAY_OUTLIER_NS: Final = 100_000
NEVER: Final = -(1 << 62)
"""An end before every end."""


def flags(work: Work) -> dict[str, Bools]:
    """Which executions count where, (n,) bool each; names as in `snapshot.Launch`."""
    rows, launch = work.rows, work.rows.launch
    timed = work.joined & (launch != NULL)
    clipped = work.waited & (work.raw < 0)
    call_began = np.where(timed, launch, 0)
    return {
        "joined": work.joined,
        "nodes": work.joined & (rows.node > 0),
        "clipped": clipped,
        "clock_errors": clipped & timed & (work.raw < -call_began),
        "short": timed & (work.service < launch),
        "runtime_outliers": timed & (launch > RUNTIME_OUTLIER_NS),
        "delay_outliers": work.waited & (work.wait > DELAY_OUTLIER_NS),
    }


def call_times(work: Work) -> tuple[Bools, Ints]:
    """Durations of the launch calls: which executions had one of their own, and how long each took, (n,) ns."""
    launch = work.rows.launch
    own = work.waited & (launch != NULL) & (launch >= 0)
    return own, launch


def exposed_gaps(work: Work, order: Order, last_end: Ints) -> Ints:
    """The exposed launch overhead before each execution, (n,) in `order`, ns.

    order     rows by (stream, end)
    last_end  [streams]: latest end per stream before these rows, NEVER for none; not changed here
    """
    stream = work.rows.stream[order]
    start, end, enqueue = work.rows.start[order], work.rows.end[order], work.rows.enqueue[order]
    previous = np.empty_like(end)
    previous[1:] = end[:-1]
    first = np.ones(len(stream), np.bool_)
    first[1:] = stream[1:] != stream[:-1]
    previous[first] = NEVER
    previous = np.maximum(previous, last_end[stream])
    counts = work.waited[order] & (previous != NEVER) & (start > previous) & (enqueue > previous)
    return np.where(counts, start - previous, 0)
