"""One server's pages of metrics, one after the other, to contract batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from fusetui.sources.prometheus_checks import contradictions
from fusetui.sources.prometheus_fetch import FetchError, Page
from fusetui.sources.prometheus_layout import Layout, lay_out
from fusetui.sources.prometheus_rows import Reckoner, Row
from fusetui.sources.prometheus_text import SeriesTable
from fusetui.sources.words import coded, coded_texts
from fusetui.telemetry.schema import KINDS, build_batch

WINDOW_S: Final = 30.0
_COUNTER, _MARK = KINDS.index("counter"), KINDS.index("mark")


class Scraper:
    """Pages in, batches out; not thread-safe.

    table, layout  the series known and what is made of them
    told           contradictions of the last page
    """

    def __init__(
        self, window_s: float = WINDOW_S, *, table: SeriesTable | None = None, host: str | None = None
    ) -> None:
        """host  what the rows name as theirs"""
        self._host = host
        self.table = table or SeriesTable()
        self.layout = Layout()
        self.told: Mapping[str, str] = {}
        self._reckoner = Reckoner(window_s)
        self._window_s = window_s
        self._known: tuple[int, int, bytes] = (-1, 0, b"")
        self._buckets = np.zeros(0, np.int64)

    def take(self, page: Page, at_ns: int, wall_ns: int) -> pa.RecordBatch:
        """Rows of one page; at_ns: monotonic, wall_ns: epoch. Raises FetchError for what is no page of metrics."""
        values = self.table.read(page.text)
        if not np.isfinite(values).any():
            raise FetchError("failed", "not one sample on the page: is this an engine's /metrics?")
        if page.openmetrics and not self.table.ended:
            raise FetchError("reconnecting", "the page was cut off: it has no # EOF")
        if self.table.generation != self._known[0]:
            self._reckoner.forget()
        self._lay_out()
        with np.errstate(all="ignore"):  # a page may hold the largest numbers there are
            rows, intervals, again = self._reckoner.read(self.layout, values, at_ns)
            told = contradictions(self.layout, values, intervals, self._window_s)
        rows = [row for row in rows if np.isfinite(row.value)]
        marks = [line for what, line in told.items() if what not in self.told]
        self.told = told
        if again:
            more = f" and {len(again) - 3} more" if len(again) > 3 else ""
            marks.append(f"counters began again: {', '.join(again[:3])}{more}")
        return _batch(rows, marks, wall_ns, self._host)

    def _lay_out(self) -> None:
        """Again when there are new series, or other buckets than before."""
        series, there = self.table.series, self.table.there()
        if self._known[:2] != (self.table.generation, len(series)):
            self._buckets = np.array([at for at, one in enumerate(series) if "le" in one.labels], np.int64)
        known = self.table.generation, len(series), there[self._buckets].tobytes()
        if self._known != known:
            self.layout = lay_out(series, self.table.types, there.tolist())
            self._known = known

    def missing(self) -> tuple[str, ...]:
        """What cannot be told, what was not taken in, and what contradicts itself, one line each."""
        table = self.table
        lines = [
            (table.malformed, "malformed lines, left out"),
            (table.duplicates, "samples of a series that was there before on the page, left out"),
            (table.over_limit, "samples over the limit on series, left out"),
            (table.native, "native histogram samples: only classic buckets are read"),
        ]
        counted = [f"metrics: {n:,} {what}" for n, what in lines if n]
        honest = "requests: the page has totals and buckets, no single request; quantiles are brackets of ended ones"
        return (honest, *self.layout.missing, *counted, *self.told.values())


def _batch(rows: Sequence[Row], marks: Sequence[str], wall_ns: int, host: str | None) -> pa.RecordBatch:
    n = len(rows) + len(marks)
    at = pa.array(np.full(n, wall_ns, np.int64))
    none = [None] * len(marks)
    return build_batch(
        {
            "kind": coded(np.repeat(np.array([_COUNTER, _MARK], np.int8), [len(rows), len(marks)]), KINDS),
            "name": coded_texts([*(row.name for row in rows), *marks]),
            "start_ns": at,
            "end_ns": at,
            "host": host,
            "device": pa.array([*(row.device for row in rows), *none], pa.int32()),
            "value": pa.array([*(row.value for row in rows), *none], pa.float64()),
            "unit": coded_texts([*(row.unit for row in rows), *none]),
        },
        n,
    )
