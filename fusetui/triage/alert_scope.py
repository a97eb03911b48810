"""Rows as alerts look at them, again and again: what a rule needs, without every measure of a snapshot.

The answers are those of `fusetui check`; a snapshot is made only for measures that need one (imbalance, depth, …).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa

from fusetui.analysis.arrays import Ints
from fusetui.analysis.columns import MARK
from fusetui.analysis.expression.measures import PLAIN, Measure
from fusetui.analysis.expression.observe import Observed, observe
from fusetui.analysis.expression.rows import MIN_REQUESTS, Scope
from fusetui.analysis.filter import Filter
from fusetui.analysis.launch import call_times
from fusetui.analysis.openwork import OpenWork
from fusetui.analysis.snapshot import LatencyOf
from fusetui.telemetry.header import Header

_OWN: Final = ("", "requests", "executions", "marks")
_CHEAP: Final = ("hit", "burst")
_NONE: Final[Ints] = np.zeros(0, np.int64)


def needs_snapshot(measure: Measure) -> bool:
    """Whether it costs a snapshot."""
    if measure.aggregate in ("count", "rate"):
        return measure.of not in _OWN
    return measure.aggregate in PLAIN and measure.aggregate not in _CHEAP


class AlertScope(Scope):
    """Rows under one filter; cut: older ones of the time looked at were left out."""

    def __init__(self, batches: Sequence[pa.RecordBatch], header: Header, *, cut: bool) -> None:
        super().__init__(batches, header)
        self.cut = cut

    @property
    def latency_of(self) -> LatencyOf:
        return "request" if len(self.requests) >= MIN_REQUESTS else "execution"

    @cached_property
    def _open(self) -> tuple[OpenWork, int]:
        still = OpenWork()
        still.update(self.columns)
        return still, int(self.columns.event.max(initial=0))

    def durations(self, field: str) -> tuple[Ints, Ints]:
        still, now = self._open
        if field == "latency":
            ages = still.request_ages(now) if self.latency_of == "request" else still.execution_ages(now)
            return self.items.latency, ages
        ran = self.executions
        if field == "queue_wait":
            return ran.wait[ran.waited], still.ages(still.waiting, still.enqueue, now)
        if field == "service":
            return ran.service, still.ages(still.running, still.start, now)
        own, call = call_times(ran)
        return call[own], _NONE

    def observe(self, measure: Measure) -> Observed:
        """The measure over these rows."""
        if self.cut and measure.aggregate in ("count", "sum", "changes", "stall", "exposed"):
            return Observed(
                None, len(self.columns), why="more rows came in that time than an alert looks at: use a rate"
            )
        if measure.aggregate in ("count", "rate") and measure.of in _OWN:
            return self._counted(measure)
        return observe(measure, self)

    def _counted(self, measure: Measure) -> Observed:
        if not len(self.columns):
            return Observed(None, 0, why="no rows")
        of = measure.of or f"{self.latency_of}s"
        marks = int((self.columns.kind == MARK).sum()) if of == "marks" else 0
        n = {"requests": len(self.requests), "executions": len(self.executions), "marks": marks}[of]
        if measure.aggregate == "count":
            return Observed(float(n), n)
        span = self.span_ns
        return Observed(n / span * 1e9, n) if span else Observed(None, n, why="no work, so no span to count over")


class AlertRows:
    """Batches in memory, and the same under filters; see `AlertScope`."""

    def __init__(self, batches: Sequence[pa.RecordBatch], header: Header, *, cut: bool = False) -> None:
        self.batches = batches
        self.header = header
        self.cut = cut
        self._scopes: dict[tuple[str, ...], AlertScope] = {}

    def scope(self, where: Sequence[Filter] = ()) -> AlertScope:
        """The rows that pass every filter."""
        key = tuple(only.text for only in where)
        if key not in self._scopes:
            batches = list(self.batches)
            for only in where:
                batches = [only.apply(batch) for batch in batches]
            self._scopes[key] = AlertScope(batches, self.header, cut=self.cut)
        return self._scopes[key]
