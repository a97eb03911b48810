"""The live window: slots of histograms and counts, the raw rows behind them, and the numbers of any moment.

Bounded whatever the data: a fixed number of slots; streams, places, words, counter series and open items are
capped; raw batches are kept up to a byte budget, the newest ones. Numbers are exact while the raw rows of the whole
window are there and not more than `exact_rows`; otherwise quantiles come from log histograms (`Tail.exact` False).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from threading import Lock
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fusetui.analysis.accumulate import Accumulators
from fusetui.analysis.arrays import Ints
from fusetui.analysis.attribution.idle import Idle, idle_in
from fusetui.analysis.attribution.parts import TailTime
from fusetui.analysis.attribution.tailtime import tail_time
from fusetui.analysis.columns import MARK, NULL, OTHERS, REQUEST, Columns, Reader, concat
from fusetui.analysis.counters import Counters
from fusetui.analysis.mapping_rows import MappingRows, mapping_rows
from fusetui.analysis.mapping_slots import MappingSlots
from fusetui.analysis.numbers import Interval, Numbers, from_rows, from_slots
from fusetui.analysis.openwork import OpenWork
from fusetui.analysis.slots import Grid, RingSlots
from fusetui.analysis.snapshot import Mark
from fusetui.analysis.work import is_open
from fusetui.telemetry.schema import SCHEMA

EXACT_ROWS: Final = 100_000
LIGHT_ROWS: Final = 5_000
"""Up to so many rows totals cost so little that they are worked out whenever somebody looks."""
HASTE: Final = 64
HASTE_NS: Final = 900_000_000
"""While time runs the totals of more rows are worked out anew once the window has moved by a 64th of its length, and at
the latest before they are a second old: a pane that says `<1s` tells the truth."""
TAIL_LIGHT_ROWS: Final = 500
TAIL_HASTE: Final = 12
TAIL_HASTE_NS: Final = 5_000_000_000
"""Where the tail's time went costs a tenth of a second of 100,000 rows, and of thousands as much as all totals: while
time runs it is worked out anew once the window has moved by a 12th of its length or holds twice as many rows, and at
the latest before it is five seconds old."""
MAX_PARTS: Final = 32
"""Of few rows in many batches putting them together would cost more than what is worked out of them."""
MAX_PLACES: Final = 64 * 256
MAX_MARKS: Final = 1000
_TIME_LIMIT: Final = 1 << 61
_REBASE_AFTER: Final = 3
_EMPTY: Final = pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in SCHEMA], schema=SCHEMA)
_PIECE_ROWS: Final = 1 << 16
"""Rows taken in at once: bounds the memory in between, and keeps it in the caches."""
_BATCH_OVERHEAD: Final = 8 << 10
"""Bytes that a batch takes beside its buffers."""


class Window:
    """Rows with event times in the last `grid.count` slots up to now.

    One thread adds and asks; `raw()` hands out a list other threads may read.

    late_rows    rows older than the window when they came: in `raw`, in no number
    early_rows   rows more than a window ahead of now, or with times no clock shows: in no number
    plans        the header's descriptions of plans, set by whoever looks
    numbers_lag  the last `numbers` were not worked out anew
    """

    def __init__(
        self,
        grid: Grid,
        memory_bytes: int = 512 << 20,
        exact_rows: int = EXACT_ROWS,
        newest_rows: int | None = None,
    ) -> None:
        """newest_rows: of more than `exact_rows` so many of the newest are kept (None: exact_rows)."""
        self._memory_bytes = memory_bytes
        self._exact_rows = exact_rows
        self._newest_rows = exact_rows if newest_rows is None else min(newest_rows, exact_rows)
        self._raw_lock = Lock()
        self._raw: deque[pa.RecordBatch] = deque()
        self._raw_last: deque[int] = deque()
        self._raw_first: deque[int] = deque()
        self._raw_bytes = self.raw_rows = 0
        self.missing = set(SCHEMA.names)
        self.plans: Mapping[str, str] = {}
        self._start_over(grid)

    def _start_over(self, grid: Grid, reader: Reader | None = None) -> None:
        """Empty slots; with `reader`, columns it has read stay valid."""
        self.grid = grid
        streams = self._memory_bytes // 4 // Accumulators.bytes_per_stream(grid.count)
        max_streams = min(max(streams, 4), 256)
        self.reader = reader or Reader(max_streams, MAX_PLACES)
        self.acc = Accumulators(grid, max_streams, MAX_PLACES)
        self.counters = Counters(grid.count)
        self.open_work = OpenWork()
        self.mapping = MappingSlots(grid.count)
        self.mapping_rows: MappingRows | None = None
        self.seen = np.zeros((grid.count, len(SCHEMA)), np.int64)
        self._marks: deque[Mark] = deque(maxlen=MAX_MARKS)
        self._kept: deque[Columns] = deque()
        self._kept_rows = 0
        self._kept_floor = NULL
        self.head: int | None = None
        self.newest_ns: int | None = None
        self.late_rows = self.early_rows = 0
        self._late_batches = 0
        self._numbers: Numbers | None = None
        self._numbers_for: tuple[int, int, bool] = (0, 0, False)
        self._numbers_ns = 0
        self.numbers_lag = False
        self._kept_times = 0
        self._tail_time: TailTime | None = None
        self.idle: Idle | None = None
        self._tail_time_of: tuple[int, int, int | None] | None = None
        self._tail_time_ns = self._tail_time_rows = 0

    def reset(self, grid: Grid | None = None) -> None:
        """Forget everything, raw rows too: time has jumped."""
        with self._raw_lock:
            self._raw.clear()
            self._raw_first.clear()
            self._raw_last.clear()
            self._raw_bytes = self.raw_rows = 0
        self._start_over(grid or self.grid)

    def begin(self, grid: Grid) -> None:
        """Other slots, still empty; the raw rows stay."""
        self._start_over(grid)

    def raw(self, from_ns: int | None = None) -> list[pa.RecordBatch]:
        """The raw batches kept, oldest first; from_ns: those with an event time from then on. Any thread may ask."""
        with self._raw_lock:
            return [b for b, last in zip(self._raw, self._raw_last, strict=True) if from_ns is None or last >= from_ns]

    @property
    def raw_last_ns(self) -> int | None:
        """The newest event time in the raw rows."""
        return max(self._raw_last, default=None)

    @property
    def raw_from_ns(self) -> int | None:
        """Earliest event time from which the raw rows are there; None: none kept."""
        return min(self._raw_first) if self._raw_first else None

    def keep_raw(self, batch: pa.RecordBatch) -> None:
        """Keep a batch for drill-down and rebuilding, and drop the oldest ones over the byte budget."""
        first, last = _event_bounds(batch)
        with self._raw_lock:
            self._raw.append(batch)
            self._raw_first.append(first)
            self._raw_last.append(last)
            self._raw_bytes += batch.nbytes + _BATCH_OVERHEAD
            self.raw_rows += len(batch)
            while self._raw_bytes > self._memory_bytes // 2 and len(self._raw) > 1:
                gone = self._raw.popleft()
                self._raw_bytes -= gone.nbytes + _BATCH_OVERHEAD
                self.raw_rows -= len(gone)
                self._raw_first.popleft()
                self._raw_last.popleft()

    def add(self, batch: pa.RecordBatch, now_ns: int | None) -> None:
        """Take in a canonical batch; now_ns: the source's present, None: not known. `keep_raw` keeps its rows."""
        for at in range(0, len(batch), _PIECE_ROWS):
            self._take_in(batch.slice(at, _PIECE_ROWS), now_ns)

    def _take_in(self, batch: pa.RecordBatch, now_ns: int | None) -> None:
        rows = self.reader.read(batch)
        seen = np.array([self.reader.seen[name] for name in SCHEMA.names], np.int64)
        self.missing -= {name for name, n in self.reader.seen.items() if n}
        rows = self._possible(rows)
        if len(rows) == 0:
            return
        self.open_work.update(rows)
        ended = ~is_open(rows)
        if not ended.all():
            rows = rows.take(ended)
            if len(rows) == 0:
                return
        rows = self._inside(rows, now_ns)
        if len(rows) == 0 or self.head is None:
            return
        where = RingSlots.of(rows.event, self.grid)
        self.seen[int(where.slot[-1])] += seen
        self.acc.add(rows, where, self.head)
        self.counters.add(rows, where.slot)
        self.mapping.add(rows, where.slot, self.reader)
        self._add_marks(rows)
        self._keep(rows)

    def _possible(self, rows: Columns) -> Columns:
        """Without rows whose times no clock shows (or that have none): sums of them would overflow."""
        wrong = np.zeros(len(rows), np.bool_)
        for times in (rows.event, rows.enqueue, rows.start):
            if times.strides == (0,) and (times[0] == NULL) and times is not rows.event:
                continue
            if int(times.max()) > _TIME_LIMIT or int(times.min()) < -_TIME_LIMIT:
                outside = (times > _TIME_LIMIT) | (times < -_TIME_LIMIT)
                wrong |= outside if times is rows.event else outside & (times != NULL)
        if not wrong.any():
            return rows
        self.early_rows += int(wrong.sum())
        return rows.take(~wrong)

    def _inside(self, rows: Columns, now_ns: int | None) -> Columns:
        """The rows inside the window, moved on to hold the newest of them."""
        newest, oldest = int(rows.event.max()), int(rows.event.min())
        length = self.grid.width * self.grid.count
        if now_ns is not None and newest > now_ns + length:
            early = rows.event > now_ns + length
            self.early_rows += int(early.sum())
            rows = rows.take(~early)
            if len(rows) == 0:
                return rows
            newest = int(rows.event.max())
        if self.head is not None and now_ns is None and self._stepped_back(newest):
            self._start_over(self.grid, self.reader)
        self.advance(max(newest, now_ns if now_ns is not None else newest))
        self.newest_ns = newest if self.newest_ns is None else max(newest, self.newest_ns)
        assert self.head is not None
        floor = self.grid.start_of(self.head - self.grid.count + 1)
        if oldest >= floor:
            return rows
        inside = rows.event >= floor
        self.late_rows += len(rows) - int(inside.sum())
        return rows.take(inside)

    def _stepped_back(self, newest: int) -> bool:
        """Without a clock of its own a source that stays behind the window has restarted: follow it."""
        assert self.head is not None
        behind = newest < self.grid.start_of(self.head - self.grid.count + 1)
        self._late_batches = self._late_batches + 1 if behind else 0
        return self._late_batches >= _REBASE_AFTER

    def advance(self, now_ns: int) -> None:
        """Move the window on so that it ends with the slot of now_ns; it never moves back."""
        head = (min(max(now_ns, -_TIME_LIMIT), _TIME_LIMIT) - self.grid.origin) // self.grid.width
        if self.head is None:
            self.head = head
            return
        if head <= self.head:
            return
        gone = np.arange(self.head + 1, min(head, self.head + self.grid.count) + 1) % self.grid.count
        self.acc.clear(gone)
        self.counters.clear(gone)
        self.mapping.clear(gone)
        self.seen[gone] = 0
        self.head = head

    def _add_marks(self, rows: Columns) -> None:
        for at in np.flatnonzero(rows.kind == MARK)[-MAX_MARKS:].tolist():
            name = int(rows.name[at])
            self._marks.append(Mark(int(rows.event[at]), self.reader.names.words[name] if name >= 0 else OTHERS))

    def _keep(self, rows: Columns) -> None:
        """Keep the newest executions and requests as columns, for exact numbers."""
        work = rows.kind <= REQUEST
        if not work.all():
            rows = rows.take(work)
            if len(rows) == 0:
                return
        self._kept.append(rows)
        self._kept_times += 1
        self._kept_rows += len(rows)
        floor = self.start_ns
        while self._kept and (
            self._kept_rows - len(self._kept[0]) > self._most_rows or int(self._kept[0].event.max()) < floor
        ):
            gone = self._kept.popleft()
            self._kept_rows -= len(gone)
            self._kept_floor = max(self._kept_floor, int(gone.event.max()))
        if len(self._kept) > MAX_PARTS and self._kept_rows <= LIGHT_ROWS:
            inside = self._rows()
            self._kept, self._kept_rows = deque([inside] if len(inside) else []), len(inside)

    @property
    def _most_rows(self) -> int:
        """How many rows are worth keeping: once some of the window are gone, its totals come from the slots."""
        return self._exact_rows if self.whole else self._newest_rows

    @property
    def whole(self) -> bool:
        """Whether all executions and requests of the window are kept."""
        return self._kept_floor < self.start_ns

    @property
    def kept_rows(self) -> int:
        """Executions and requests that are kept."""
        return self._kept_rows

    def settle(self) -> None:
        """No more rows will come: those kept are held in one piece, so that the totals need no copy of them."""
        if len(self._kept) > 1:
            self._kept = deque([concat(self._kept)])

    @property
    def start_ns(self) -> int:
        """The first ns of the window."""
        return 0 if self.head is None else self.grid.start_of(self.head - self.grid.count + 1)

    def marks(self) -> tuple[Mark, ...]:
        """Marks in the window, by time."""
        return tuple(sorted((m for m in self._marks if m.at_ns >= self.start_ns), key=lambda m: m.at_ns))

    def order(self) -> Ints:
        """Ring slots in time order, [S]."""
        head = self.head or 0
        return np.arange(head - self.grid.count + 1, head + 1) % self.grid.count

    def interval(self, now_ns: int) -> Interval:
        """The window as seen at now_ns."""
        starts = self.start_ns + np.arange(self.grid.count) * self.grid.width
        lasted = np.clip(now_ns - starts, 0, self.grid.width).astype(np.float64)
        return Interval(self.start_ns, now_ns, self.order(), lasted)

    def numbers(self, at: Interval, across_hosts: bool, *, hasty: bool = False) -> Numbers:
        """The totals of the window; hasty: those of the last time will do for a moment, see HASTE."""
        wanted = (self.acc.streams_used, self.acc.places_used, across_hosts)
        recent = 0 <= at.now_ns - self._numbers_ns < min(self.grid.width * self.grid.count // HASTE, HASTE_NS)
        self.numbers_lag = hasty and recent and self._kept_rows > LIGHT_ROWS and wanted == self._numbers_for
        if self._numbers is None or not self.numbers_lag:
            self.numbers_lag = False
            self._numbers, self._numbers_for, self._numbers_ns = self._totals(at, across_hosts), wanted, at.now_ns
        return self._numbers

    def tail_time(self, at: Interval, slo_ns: int | None, *, hasty: bool = False) -> TailTime | None:
        """Where the time of the slowest work went, over the newest rows, and with it `idle`; hasty: see TAIL_HASTE."""
        wanted = (self._kept_times, self.start_ns, slo_ns)
        length = self.grid.width * self.grid.count
        recent = 0 <= at.now_ns - self._tail_time_ns < min(length // TAIL_HASTE, TAIL_HASTE_NS)
        told = self._tail_time is not None and self._kept_rows < 2 * self._tail_time_rows
        will_do = hasty and recent and told and self._kept_rows > TAIL_LIGHT_ROWS
        if wanted != self._tail_time_of and not will_do:
            rows = self._rows().take(slice(-self._exact_rows, None))
            self._tail_time, self.idle = tail_time(rows, self.reader, slo_ns), idle_in(rows, self.reader)
            self._tail_time_of, self._tail_time_ns, self._tail_time_rows = wanted, at.now_ns, self._kept_rows
        return self._tail_time

    def _rows(self) -> Columns:
        """The executions and requests in the window that are kept."""
        start_ns = self.start_ns
        parts = [p if int(p.event.min()) >= start_ns else p.take(p.event >= start_ns) for p in self._kept]
        return concat(parts) if parts else self.reader.read(_EMPTY)

    def _totals(self, at: Interval, across_hosts: bool) -> Numbers:
        rows = self._rows()
        newest = rows.take(slice(-self._exact_rows, None))
        if self.mapping.used and self.head is not None:
            self.mapping_rows = mapping_rows(
                newest, self.mapping.buckets, self.reader, self.grid, self.head, self.plans
            )
        if self.whole and len(rows) <= self._exact_rows:
            return from_rows(rows, self.open_work, at, self.acc, across_hosts)
        return from_slots(self.acc, self.open_work, at, newest, across_hosts)


def _event_bounds(batch: pa.RecordBatch) -> tuple[int, int]:
    """Smallest and largest event time in a batch; (NULL, NULL) without any."""
    event = batch.column("end_ns")
    if not event.null_count:
        times = event.to_numpy()
        return (int(times.min()), int(times.max())) if len(times) else (NULL, NULL)
    event = pc.coalesce(event, batch.column("start_ns"), batch.column("enqueue_ns"))
    bounds = pc.min_max(event)
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    return (NULL, NULL) if low is None else (low, high)
