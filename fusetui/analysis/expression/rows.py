"""The rows that rules and comparisons look at, and what is worked out of them once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa

from fusetui.analysis.arrays import Ints
from fusetui.analysis.coalesce import coalesced
from fusetui.analysis.columns import COUNTER, NULL, Columns, Reader, concat, plain
from fusetui.analysis.filter import Filter
from fusetui.analysis.frame import Context, snapshot_of
from fusetui.analysis.intervals.values import Values
from fusetui.analysis.launch import call_times
from fusetui.analysis.slots import Grid
from fusetui.analysis.snapshot import LatencyOf, Snapshot
from fusetui.analysis.window import Window
from fusetui.analysis.work import Work, by_end, executions, requests
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import SCHEMA
from fusetui.telemetry.source import SourceHealth, Trace

MAX_ROWS: Final = 2_000_000
"""Most rows looked at, the newest of a trace."""
MIN_REQUESTS: Final = 5
"""Requests from which on latency is theirs; panes ask for more, as they have no "not enough data" to answer."""
BATCH_ROWS: Final = 50_000
"""Rows that are looked at together: recordings hold a second to a batch, which costs as much as this many."""
_NONE: Final[Ints] = np.zeros(0, np.int64)


class Rows:
    """Batches in memory, and the same under filters."""

    def __init__(self, batches: Sequence[pa.RecordBatch], header: Header, notes: Sequence[str] = ()) -> None:
        self.header = header
        self.notes = tuple(notes)
        self._batches = coalesced(batches, BATCH_ROWS)
        self._scopes: dict[tuple[str, ...], Scope] = {}

    def scope(self, where: Sequence[Filter] = ()) -> Scope:
        """The rows that pass every filter."""
        key = tuple(only.text for only in where)
        if key not in self._scopes:
            batches = self._batches
            for only in where:
                batches = [only.apply(batch) for batch in batches]
            self._scopes[key] = Scope(batches, self.header)
        return self._scopes[key]


def rows_of(trace: Trace, *, window_ns: int | None = None, only: Filter | None = None) -> Rows:
    """The newest rows of a trace, at most MAX_ROWS; a batch that cannot be read is left out and named in the notes."""
    index = trace.index()
    notes = list(trace.notes)
    begin = -(1 << 62) if window_ns is None or not len(index.rows) else int(index.last_ns.max()) - window_ns + 1
    wanted = np.flatnonzero(index.last_ns >= begin)[::-1].tolist()
    kept: list[pa.RecordBatch] = []
    rows = 0
    for number in wanted:
        rows += int(index.rows[number])
        if rows > MAX_ROWS and kept:
            notes.append(f"only the newest {rows - int(index.rows[number]):,} rows are looked at; --window says which")
            break
        try:
            batch = trace.read(number)
        except TelemetryError as error:
            notes.append(str(error))
            continue
        if window_ns is not None:
            event = Reader().read(batch).event
            batch = batch if int(event.min(initial=begin)) >= begin else batch.filter(pa.array(event >= begin))
        kept.append(batch if only is None else only.apply(batch))
    return Rows(kept[::-1], trace.header, notes)


class Scope:
    """Rows under one filter. Work is in the order of its ends; durations in ns."""

    def __init__(self, batches: Sequence[pa.RecordBatch], header: Header) -> None:
        self.batches = [batch for batch in batches if len(batch)]
        self.header = header
        self.reader = Reader()

    @cached_property
    def columns(self) -> Columns:
        """Every row."""
        if not self.batches:
            empty = pa.RecordBatch.from_arrays([pa.nulls(0, f.type) for f in SCHEMA], schema=SCHEMA)
            return self.reader.read(empty)
        return concat([self.reader.read(batch) for batch in self.batches])

    @cached_property
    def executions(self) -> Work:
        """Executions that ended."""
        return executions(by_end(self.columns))

    @cached_property
    def requests(self) -> Work:
        """Requests that ended."""
        return requests(by_end(self.columns))

    @cached_property
    def _seen(self) -> tuple[Window, Snapshot]:
        event = self.columns.event
        known = event[event != NULL]
        first, now = (int(known.min()), int(known.max())) if known.size else (0, 0)
        window = Window(Grid.of_span(first, now), exact_rows=MAX_ROWS)
        for batch in self.batches:
            window.add(batch, now)
        health = SourceHealth(name="rows", state="ended", rows=len(self.columns))
        context = Context(1, time.monotonic(), self.header, health, None, 0, "", 0.0)
        return window, snapshot_of(window, now, context)

    @property
    def snapshot(self) -> Snapshot:
        """Every measure, as all panes show them."""
        return self._seen[1]

    @property
    def latency_of(self) -> LatencyOf:
        """Requests as soon as there are MIN_REQUESTS: of the others, fused kernels are fewer and slower, not worse."""
        return "request" if len(self.requests) >= MIN_REQUESTS else self.snapshot.latency_of

    @property
    def items(self) -> Work:
        """What latency is of: requests where there are enough, else executions."""
        return self.requests if self.latency_of == "request" else self.executions

    def durations(self, field: str) -> tuple[Ints, Ints]:
        """(durations (n,) in the order of ends, ages of open work (m,)) of latency, queue_wait, service or launch."""
        window, snapshot = self._seen
        open_work, now = window.open_work, snapshot.now_ns
        if field == "latency":
            of_requests = self.latency_of == "request"
            return self.items.latency, open_work.request_ages(now) if of_requests else open_work.execution_ages(now)
        ran = self.executions
        if field == "queue_wait":
            return ran.wait[ran.waited], open_work.ages(open_work.waiting, open_work.enqueue, now)
        if field == "service":
            return ran.service, open_work.ages(open_work.running, open_work.start, now)
        own, call = call_times(ran)
        return call[own], _NONE

    def numbers(self, field: str) -> Values:
        """What rows say in a column: dram_bytes or sram_bytes, int64, or the value of counters; nulls left out."""
        if field == "value":
            value: Values = self.columns.value[self.columns.kind == COUNTER]
            known: Values = value[~np.isnan(value)]
            return known
        parts = []
        for batch in self.batches:
            at = batch.schema.get_field_index(field)
            if at >= 0 and batch.column(at).null_count < len(batch):
                parts.append(batch.column(at).drop_null().to_numpy(zero_copy_only=False))
        return np.concatenate(parts) if parts else _NONE

    @cached_property
    def traffic(self) -> tuple[Ints, Ints, Ints]:
        """(start, end, DRAM bytes) of the executions that say how many they moved, (n,) each."""
        found: list[tuple[Ints, Ints, Ints]] = []
        for batch in self.batches:
            at = batch.schema.get_field_index("dram_bytes")
            if at < 0 or batch.column(at).null_count == len(batch):
                continue
            bytes_ = plain(batch.column(at), NULL)
            start, end = plain(batch.column("start_ns"), NULL), plain(batch.column("end_ns"), NULL)
            chosen = (bytes_ != NULL) & (start != NULL) & (end != NULL)
            found.append((start[chosen], np.maximum(end[chosen], start[chosen] + 1), bytes_[chosen]))
        if not found:
            return _NONE, _NONE, _NONE
        start, end, moved = (np.concatenate(column) for column in zip(*found, strict=True))
        return start, end, moved

    @property
    def span_ns(self) -> int | None:
        """From the first begin to the last end of the work, None without any."""
        work = [w for w in (self.executions, self.requests) if len(w)]
        if not work:
            return None
        last = max(int(w.rows.end.max()) for w in work)
        return last - min(int((w.rows.end - w.latency).min()) for w in work)
