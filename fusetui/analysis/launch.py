"""How work reached the queue: launches joined to their executions, and the launch overhead the device saw.

Exposed launch overhead X = Σ (start_i - max(E_i, C_i)) over executions i of a stream that have a queue wait of their
own and a known launch call, where E_i is the latest end of those that ended before i on that stream, C_i = enqueue_i -
launch_i when the call began, start_i > E_i, and enqueue_i > E_i: the queue was empty when the previous execution
ended, so the stream stood idle while the launch call and the way to the device took their time. Time before the call
began is the host's own and left out, as are gaps whose work was queued in time: those belong to the device.
Blind spot: it adds up over streams, of which another may have kept the device busy meanwhile.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from fusetui.analysis.arrays import Bools, Codes, Ints, repeated
from fusetui.analysis.columns import NULL
from fusetui.analysis.work import Work

RUNTIME_OUTLIER_NS: Final = 50_000
DELAY_OUTLIER_NS: Final = 100_000
NEVER: Final = -(1 << 62)
"""An end before every end."""


def flags(work: Work) -> dict[str, Bools]:
    """Which executions count where, (n,) bool each; names as in `snapshot.Launch`, those without any left out."""
    rows, launch = work.rows, work.rows.launch
    clipped = work.waited & (work.raw < 0)
    found = {
        "joined": work.joined,
        "nodes": work.joined & (rows.node > 0),
        "clipped": clipped,
        "delay_outliers": work.waited & (work.wait > DELAY_OUTLIER_NS),
    }
    if launch.strides != (0,):
        timed = work.joined & (launch != NULL)
        found["clock_errors"] = clipped & timed & (work.raw < -np.where(timed, launch, 0))
        # The nodes of a graph share one call.
        own = timed & work.waited
        found["short"] = own & (work.service < launch)
        found["runtime_outliers"] = own & (launch > RUNTIME_OUTLIER_NS)
    return found


def call_times(work: Work) -> tuple[Bools, Ints]:
    """Durations of the launch calls: which executions had one of their own, and how long each took, (n,) ns."""
    launch = work.rows.launch
    if launch.strides == (0,):
        return work.waited if bool((launch[:1] >= 0).all()) else repeated(False, len(work), np.bool_), launch
    return work.waited & (launch >= 0), launch


def exposed_gaps(
    stream: Codes, start: Ints, end: Ints, enqueue: Ints, call: Ints, waited: Bools, last_end: Ints
) -> Ints:
    """The exposed launch overhead before each execution, (n,) ns; rows in the order of (stream, end).

    call      duration of the launch call, NULL where not known; waited: has a queue wait of its own
    last_end  [streams]: latest end per stream before these rows, NEVER for none; not changed here
    """
    previous = np.empty_like(end)
    previous[1:] = end[:-1]
    first = np.append(0, np.flatnonzero(stream[1:] != stream[:-1]) + 1)
    # What began before the first of these rows is unknown: then there is no gap before it.
    before = last_end[stream[first]]
    previous[first] = np.where(before == NEVER, start[first], before)
    idle_from = np.maximum(previous, enqueue - np.maximum(call, 0))
    exposed: Ints = (start - idle_from) * (waited & (call >= 0) & (start > idle_from) & (enqueue > previous))
    return exposed
