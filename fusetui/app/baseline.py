"""The capture to compare with: read once in a thread, its measures under the filter in force, and what moved since."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from fusetui.analysis.snapshot import Snapshot
from fusetui.app.deltas import Delta, deltas_of
from fusetui.app.worker import Worker
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.source import Trace
from fusetui.telemetry.text import safe_text

if TYPE_CHECKING:
    from fusetui.analysis.expression.rows import Rows
    from fusetui.app.session import Feed

MAX_ROWS: Final = 300_000
AGAIN_S: Final = 2.0
"""While time runs what moved is worked out anew at most so often."""


@dataclass(frozen=True, slots=True)
class BaselineAnswer:
    """before: the baseline's measures under the filter of the snapshot it was asked for, None: `problem` says why."""

    filter_text: str
    before: Snapshot | None
    deltas: tuple[Delta, ...] = ()
    problem: str = ""
    note: str = ""


class BaselineWorker(Worker[Snapshot, BaselineAnswer]):
    """Reads the baseline at the first request."""

    NAME = "fusetui-baseline"

    def __init__(self, feed: Feed, opened: Callable[[], Trace]) -> None:
        super().__init__()
        self._feed = feed
        self._opened = opened
        self._rows: Rows | None = None

    def answered_by(self, request: Snapshot, number: int) -> BaselineAnswer:
        try:
            return self._answer(request)
        except (TelemetryError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            return BaselineAnswer(request.filter_text, None, problem=safe_text(f"no baseline: {error}", 300))

    def _answer(self, request: Snapshot) -> BaselineAnswer:
        from fusetui.analysis.filter import parse_filter
        from fusetui.triage.alert_rows import newest_rows

        if self._rows is None:
            self._rows = newest_of(self._opened())
        only = parse_filter(request.filter_text)
        where = () if only is None else (only,)
        before = self._rows.scope(where)
        window_ns = max(request.now_ns - request.window_start_ns, 1)
        now = newest_rows(self._feed.raw(), request.header, request.now_ns, window_ns).scope(where)
        if not len(before.columns):
            return BaselineAnswer(request.filter_text, None, problem="nothing in the baseline passes the filter")
        note = "; ".join(self._rows.notes)
        return BaselineAnswer(
            request.filter_text, before.snapshot, deltas_of(before, now, before.snapshot, request), note=note
        )


class BaselineBoard:
    """The baseline of a session. name: what it is called on the screen."""

    def __init__(self, feed: Feed, opened: Callable[[], Trace], name: str) -> None:
        self.name = name
        self.worker = BaselineWorker(feed, opened)
        self._asked: Snapshot | None = None
        self._asked_s = float("-inf")

    @property
    def answer(self) -> BaselineAnswer | None:
        """The newest."""
        return self.worker.answer

    def state(self) -> tuple[object, ...]:
        """Equal as long as there is nothing new to draw."""
        return (self.worker.answered,)

    def look(self, snapshot: Snapshot | None) -> None:
        """See to it that there is an answer about this snapshot."""
        if snapshot is None or (self._asked is not None and _same(self._asked, snapshot)):
            return
        now_s = time.monotonic()
        moved = self._asked is None or self._asked.filter_text != snapshot.filter_text
        stands = snapshot.transport is not None and not snapshot.transport.playing
        if not moved and not stands and now_s - self._asked_s < AGAIN_S:
            return
        self._asked, self._asked_s = snapshot, now_s
        self.worker.ask(snapshot)

    def before(self, snapshot: Snapshot | None) -> Snapshot | None:
        """The baseline's measures under the filter of the snapshot that is shown; None where they are not there."""
        answer = self.worker.answer
        if answer is None or snapshot is None or answer.filter_text != snapshot.filter_text:
            return None
        return answer.before


def newest_of(trace: Trace) -> Rows:
    """The newest MAX_ROWS of a capture, waiting for the end of its import. Closes it. Raises TelemetryError."""
    from fusetui.analysis.expression.rows import Rows

    try:
        while not trace.complete:
            time.sleep(0.1)
            trace.refresh()
        index = trace.index()
        kept, rows, notes = [], 0, []
        for number in np.arange(len(index.rows))[::-1].tolist():
            if rows >= MAX_ROWS:
                notes.append(f"only its newest {rows:,} rows are compared with")
                break
            try:
                kept.append(trace.read(number))
                rows += len(kept[-1])
            except TelemetryError as error:
                notes.append(str(error))
        return Rows(kept[::-1], trace.header, notes)
    finally:
        trace.close()


def _same(old: Snapshot, new: Snapshot) -> bool:
    same = old.latency_series is new.latency_series and old.now_ns == new.now_ns
    return same and (old.filter_text, old.generation) == (new.filter_text, new.generation)
