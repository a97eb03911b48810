"""The thread that watches while nobody looks: the online flags, the alerts, and of a capture the moments in all of it.

A live source is watched as it comes. A capture is looked through once, from its beginning, as soon as all of it is
there: what alerts would have been raised then are marks, and neither logged nor told to hooks.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from fusetui.app.change_watch import ChangeWatch
from fusetui.app.durations_of import durations_of
from fusetui.app.look_back import LookBack
from fusetui.app.moments import Moment, alert_moment, change_moment
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.source import Trace
from fusetui.telemetry.text import safe_text

if TYPE_CHECKING:
    from fusetui.app.session import Feed
    from fusetui.triage.alert import Alerts, AlertState
    from fusetui.triage.alert_hooks import HookRunner
    from fusetui.triage.alert_log import AlertLog

LOOK_S: Final = 1.0
MAX_SHARE: Final = 0.05
"""Most of a core that looks may take in the long run."""
NEW_ROWS: Final = 10_000
"""Of more rows than that since the last look the newest are watched: a sample of each second, in a millisecond."""
MAX_MOMENTS: Final = 500


@dataclass(frozen=True, slots=True)
class Watching:
    """Who watches alerts: made on the thread, as reading files and rules takes time."""

    alerts: Alerts
    log: AlertLog | None = None
    hooks: HookRunner | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen so far. Equal as long as nothing is new.

    moments  in order of time
    alerts   how each stands, () where none are watched (or where a capture was looked through)
    learning what is usual is not known yet
    problem  why alerts are not watched, or not logged; "" while all is well
    """

    moments: tuple[Moment, ...] = ()
    alerts: tuple[AlertState, ...] = ()
    learning: bool = False
    problem: str = ""


class Lookout:
    """Watches `feed` from `start` to `stop`; `seen` is what it saw, for any thread.

    watching  makes the alerts, None: there are none; raises TelemetryError
    trace     the capture behind a replay
    """

    def __init__(self, feed: Feed, watching: Callable[[], Watching | None], trace: Trace | None = None) -> None:
        self.seen = Seen()
        self._feed = feed
        self._make = watching
        self._trace = trace
        self._watching: Watching | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fusetui-lookout", daemon=True)
        self._begin_anew()

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End; hooks that are under way get a few seconds."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(2.0)
        if self._watching is not None and self._watching.hooks is not None:
            self._watching.hooks.close()

    def _begin_anew(self) -> None:
        self._last: pa.RecordBatch | None = None
        self._generation = self._feed.source.generation
        self._watches: dict[str, ChangeWatch] = {}
        self._alerted: list[Moment] = []

    def _run(self) -> None:
        try:
            self._watching = self._make()
        except TelemetryError as error:
            self.seen = replace(self.seen, problem=safe_text(str(error), 300))
        try:
            self._watch()
        except Exception as error:  # noqa: BLE001 - whatever a rule or a batch does, the screen must go on and say so
            why = safe_text(f"watching stopped: {type(error).__name__}: {error}", 300)
            self.seen = replace(self.seen, problem=why)

    def _watch(self) -> None:
        wait_s = LOOK_S
        while not self._stop.wait(wait_s):
            transport = self._feed.source.transport
            if transport is not None and not transport.state().growing:
                break
            began_s = time.thread_time()
            self._look()
            wait_s = max(LOOK_S, (time.thread_time() - began_s) / MAX_SHARE)
        if self._trace is not None and not self._stop.is_set():
            alerts = None if self._watching is None else self._watching.alerts
            if alerts is not None:
                alerts.reset()
            self.seen = replace(self.seen, moments=LookBack(self._trace, alerts, self._stop.wait).moments(), alerts=())

    def _look(self) -> None:
        if self._feed.source.generation != self._generation:
            self._begin_anew()
            if self._watching is not None:
                self._watching.alerts.reset()
        batches = self._feed.raw()
        self._flag(self._fresh(batches))
        if self._watching is not None:
            self._alert(self._watching, batches)
        changes = [_moments_of(of, watch) for of, watch in self._watches.items()]
        moments = sorted([one for found in changes for one in found] + self._alerted)[-MAX_MOMENTS:]
        seen = Seen(
            tuple(moments),
            () if self._watching is None else self._watching.alerts.states,
            all(watch.learning for watch in self._watches.values()),
            self._problem(),
        )
        if seen != self.seen:
            self.seen = seen

    def _problem(self) -> str:
        watching = self._watching
        failed = watching.log.failed if watching is not None and watching.log is not None else ""
        return failed or (self.seen.problem if watching is None else "")

    def _fresh(self, batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
        """What came since the last look, the newest NEW_ROWS of it at most."""
        fresh: list[pa.RecordBatch] = []
        rows = 0
        for batch in reversed(batches):
            if batch is self._last or rows >= NEW_ROWS:
                break
            fresh.append(batch.slice(max(0, len(batch) - (NEW_ROWS - rows))))
            rows += len(fresh[-1])
        self._last = batches[-1] if batches else None
        return fresh[::-1]

    def _flag(self, fresh: list[pa.RecordBatch]) -> None:
        snapshot = self._feed.snapshot
        if not fresh or snapshot is None:
            return
        parts = [durations_of(batch) for batch in fresh]
        for of, series in (
            (f"{snapshot.latency_of} latency", [part.latency(snapshot.latency_of) for part in parts]),
            ("queue wait", [part.waits() for part in parts]),
        ):
            ends, items = (np.concatenate([part[i] for part in series]) for i in (0, 1))
            order = np.argsort(ends, kind="stable")
            self._watches.setdefault(of, ChangeWatch()).add(ends[order], items[order])

    def _alert(self, watching: Watching, batches: list[pa.RecordBatch]) -> None:
        source, snapshot = self._feed.source, self._feed.snapshot
        now_ns = source.now_ns() or (snapshot.now_ns if snapshot is not None else 0)
        if not now_ns:
            return
        for event in watching.alerts.look(batches, source.header, now_ns):
            self._alerted = [*self._alerted, alert_moment(event)][-MAX_MOMENTS:]
            if watching.log is not None:
                watching.log.append(event)
            if watching.hooks is not None:
                watching.hooks.submit(event)


def _moments_of(of: str, watch: ChangeWatch) -> list[Moment]:
    found = [change_moment(of, one.at_ns, one.before_ns, one.after_ns) for one in watch.changes]
    now = watch.now
    if now is not None and not now.confirmed:
        found.append(change_moment(of, now.at_ns, now.before_ns, now.after_ns, sure=False))
    return found
