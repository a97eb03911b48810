"""A capture looked through once, from its beginning: where its tail changed, what alerts would have been raised, marks.

Batch by batch: what is kept are durations and marks, and the rows that alerts look back over.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from fusetui.analysis.arrays import Ints
from fusetui.analysis.snapshot import LatencyOf
from fusetui.app.durations_of import Durations, durations_of, marks_of
from fusetui.app.moments import Moment, alert_moment, change_moment
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.source import Trace

if TYPE_CHECKING:
    from fusetui.triage.alert import Alerts

MAX_ITEMS: Final = 2_000_000
MAX_MARKS: Final = 1000
STEPS: Final = 120
LEAST_STEP_NS: Final = 1_000_000_000
LEAST_REQUESTS: Final = 30


class LookBack:
    """One pass over `trace`; pause(seconds): rests that long between looks, True: give up."""

    def __init__(self, trace: Trace, alerts: Alerts | None, pause: Callable[[float], bool]) -> None:
        self._trace = trace
        self._alerts = alerts
        self._pause = pause
        self._parts: list[Durations] = []
        self._marks: list[Moment] = []
        self._raised: list[Moment] = []

    def moments(self) -> tuple[Moment, ...]:
        """Everything found, in order of time; () when it was given up."""
        from fusetui.triage.alert_rows import RecentBatches

        index = self._trace.index()
        if not len(index.rows):
            return ()
        first_ns, last_ns = int(index.first_ns.min()), int(index.last_ns.max())
        step_ns = max((last_ns - first_ns) // STEPS, LEAST_STEP_NS)
        due_ns = first_ns + step_ns
        recent = RecentBatches(self._alerts.needs_ns + step_ns) if self._alerts is not None else None
        for number in range(len(index.rows)):
            began_s = time.thread_time()
            try:
                batch = self._trace.read(number)
            except TelemetryError:
                continue  # the source counts and names it
            self._take(batch)
            if recent is not None:
                recent.add(batch)
                while recent.newest_ns is not None and due_ns <= recent.newest_ns:
                    self._look(recent.batches, due_ns)
                    due_ns += step_ns
                    if self._rest(began_s):
                        return ()
                    began_s = time.thread_time()
            elif self._rest(began_s):
                return ()
        return tuple(sorted([*self._changes(), *self._raised, *self._marks]))

    def _rest(self, began_s: float) -> bool:
        """As long again as the work took: a screen is being drawn meanwhile."""
        return self._pause(time.thread_time() - began_s)

    def _take(self, batch: pa.RecordBatch) -> None:
        part = durations_of(batch)
        self._parts.append(part)
        if sum(map(len, self._parts)) > MAX_ITEMS and len(self._parts) > 1:
            self._parts.pop(0)
        self._marks = [*self._marks, *(Moment(at, "mark", name) for at, name in marks_of(batch))][-MAX_MARKS:]

    def _look(self, batches: list[pa.RecordBatch], now_ns: int) -> None:
        if self._alerts is not None:
            self._raised += [alert_moment(event) for event in self._alerts.look(batches, self._trace.header, now_ns)]

    def _changes(self) -> list[Moment]:
        from fusetui.analysis.changepoint.changes import changes_of

        requests = sum(len(part.request_ends) for part in self._parts)
        kind: LatencyOf = "request" if requests >= LEAST_REQUESTS else "execution"
        found = []
        for of, series in (
            (f"{kind} latency", [part.latency(kind) for part in self._parts]),
            ("queue wait", [part.waits() for part in self._parts]),
        ):
            ends, items = _in_order(series)
            changes, _ = changes_of(ends, items)
            found += [change_moment(of, one.at_ns, one.before_ns, one.after_ns) for one in changes]
        return found


def _in_order(series: list[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    empty = np.zeros(0, np.int64)
    ends, items = (np.concatenate([empty, *(part[i] for part in series)]) for i in (0, 1))
    order = np.argsort(ends, kind="stable")
    return ends[order], items[order]
