"""The slots of the window, filled batch by batch: every number a pane draws over time, and the fallback for totals.

Everything is a count, a sum, a maximum or a log histogram per slot, so adding is cheap and forgetting a slot is exact.
Busy time is the union of intervals: exact within a batch and along rows in completion order; work that began before
the end of an earlier batch counts only from that end on.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from fusetui.analysis import launch
from fusetui.analysis.arrays import Bools, Floats, Ints
from fusetui.analysis.busy import newly_covered
from fusetui.analysis.columns import COUNTER, EXECUTION, MARK, REQUEST, Columns
from fusetui.analysis.groups import Groups, grouped
from fusetui.analysis.loghist import BUCKETS
from fusetui.analysis.rings import HistogramRing
from fusetui.analysis.slots import Grid, RingSlots, spread
from fusetui.analysis.work import Work, by_end, executions, ran, requests
from fusetui.telemetry.schema import MAPPINGS

COUNTS: Final = (
    *("rows", "executions", "requests", "counters", "marks", "joined", "nodes", "clipped", "clock_errors", "short"),
    *("runtime_outliers", "delay_outliers", "exposed_ns", "planned", "adapted", "fallback"),
)
COUNT: Final = {name: i for i, name in enumerate(COUNTS)}
BY_REQUEST, BY_EXECUTION = 0, 1
_FAR: Final = 1 << 62


class Accumulators:
    """Per-slot state; S ring slots, K streams and P places, the last of each standing for all others.

    counts      [S, COUNTS] int64
    latency     log histograms of requests and of executions; wait, service: per stream; call: launch calls
    wait_ns     [K, S] time waited in the slot, summed over the work: mean depth times slot width
    stream_busy_ns [K, S], place_busy_ns [P, S], busy_ns [S]  union of busy time in the slot
    place_n     [P, S] executions that ended in the slot; those per stream are `service.n`
    start_ns, end_ns  [S] earliest start and latest end of the executions that ended in the slot
    """

    def __init__(self, grid: Grid, max_streams: int, max_places: int) -> None:
        self.grid = grid
        slots = grid.count
        keys, places = max_streams + 1, max_places + 1
        self.counts = np.zeros((slots, len(COUNTS)), np.int64)
        self.latency = HistogramRing(2, slots)
        self.wait, self.service = HistogramRing(keys, slots), HistogramRing(keys, slots)
        self.call = HistogramRing(1, slots)
        self.wait_ns = np.zeros((keys, slots))
        self.stream_busy_ns = np.zeros((keys, slots))
        self.place_busy_ns = np.zeros((places, slots))
        self.place_n = np.zeros((places, slots), np.int64)
        self.busy_ns = np.zeros((1, slots))
        self.start_ns = np.full(slots, _FAR, np.int64)
        self.end_ns = np.full(slots, -_FAR, np.int64)
        self._stream_end = np.full(keys, launch.NEVER, np.int64)
        self._place_end = np.full(places, launch.NEVER, np.int64)
        self._end = np.full(1, launch.NEVER, np.int64)
        self.streams_used = self.places_used = 0

    @staticmethod
    def bytes_per_stream(slots: int) -> int:
        """Most memory that one stream takes."""
        return 2 * (slots + 2) * BUCKETS * 4

    def clear(self, slots: Ints) -> None:
        """Forget some ring slots."""
        for ring in (self.latency, self.wait, self.service, self.call):
            ring.clear(slots)
        self.counts[slots] = 0
        self.busy_ns[:, slots] = 0.0
        for array in (self.wait_ns, self.stream_busy_ns):
            array[: self.streams_used, slots] = 0
        self.place_busy_ns[: self.places_used, slots] = 0.0
        self.place_n[: self.places_used, slots] = 0
        self.start_ns[slots], self.end_ns[slots] = _FAR, -_FAR

    def add(self, rows: Columns, where: RingSlots, head: int) -> None:
        """Take in rows, at least one, whose event slots lie in (head - S, head]."""
        self._count("rows", where)
        kinds = np.bincount(rows.kind, minlength=5)
        for name, kind in (("counters", COUNTER), ("marks", MARK)):
            if kinds[kind]:
                self._count(name, where, rows.kind == kind)
        if kinds[REQUEST]:
            self._add_requests(requests(rows))
        if kinds[EXECUTION]:
            begun = ran(rows.without_detail())
            if len(begun):
                self._add_executions(by_end(begun), head)

    def _count(self, name: str, where: RingSlots, chosen: Bools | None = None) -> None:
        where.count(self.counts[:, COUNT[name]], chosen)

    def _add_requests(self, asked: Work) -> None:
        if len(asked):
            where = RingSlots.of(asked.rows.event, self.grid)
            self._count("requests", where)
            self.latency.add(Groups.one(BY_REQUEST, len(asked)), where, asked.latency)

    def _add_executions(self, rows: Columns, head: int) -> None:
        """Take in executions, at least one, in the order of their ends."""
        order, streams = grouped(rows.stream)
        work = executions(rows.take(order))
        where = RingSlots.of(work.rows.end, self.grid)
        self.streams_used = max(self.streams_used, int(streams.key[-1]) + 1)
        self._count("executions", where)
        self.latency.add(Groups.one(BY_EXECUTION, len(work)), where, work.latency)
        self.service.add(streams, where, work.service)
        self._add_waits(work, streams, where, head)
        for name, chosen in launch.flags(work).items():
            self._count(name, where, chosen)
        own, call = launch.call_times(work)
        if own.any():
            self.call.add(Groups.one(0, int(np.count_nonzero(own))), where.take(own), call[own])
            self._add_exposed(work, where)
        if work.rows.mapping.strides != (0,):
            for code, name in enumerate(MAPPINGS):
                self._count(name, where, work.rows.mapping == code)
        self._add_busy(self.stream_busy_ns, self._stream_end, streams, work.rows.start, work.rows.end, head)
        self._add_places(rows, where if where.only is not None else RingSlots.of(rows.end, self.grid), head)

    def _add_waits(self, work: Work, streams: Groups, where: RingSlots, head: int) -> None:
        wait, enqueue, waited = work.wait, work.rows.enqueue, work.waited
        if not waited.any():
            return
        if not waited.all():
            streams, where = streams.take(waited), where.take(waited)
            wait, enqueue = wait[waited], enqueue[waited]
        self.wait.add(streams, where, wait)
        # A wait that is cut off at 0 began when the work did.
        self._spread(self.wait_ns, streams, enqueue, enqueue + wait, head)

    def _add_exposed(self, work: Work, where: RingSlots) -> None:
        rows = work.rows
        gaps = launch.exposed_gaps(
            rows.stream, rows.start, rows.end, rows.enqueue, rows.launch, work.waited, self._stream_end
        )
        into = self.counts[:, COUNT["exposed_ns"]]
        if where.only is not None:
            into[where.only] += gaps.sum()
        else:
            np.add.at(into, where.slot, gaps)

    def _add_places(self, rows: Columns, where: RingSlots, head: int) -> None:
        """Per place and over all: counts and busy time of executions in the order of their ends."""
        order, places = grouped(rows.place)
        self.places_used = max(self.places_used, int(places.key[-1]) + 1)
        start, end = rows.start[order], rows.end[order]
        cells, slot = where.take(order).cells(places)
        np.add.at(self.place_n, (cells.key, slot), cells.size)
        self._add_busy(self.place_busy_ns, self._place_end, places, start, end, head)
        every = Groups.one(0, len(rows))
        self._add_busy(self.busy_ns, self._end, every, rows.start, rows.end, head)
        cells, slot = where.cells(every)
        np.minimum.at(self.start_ns, slot, np.minimum.reduceat(rows.start, cells.first))
        np.maximum.at(self.end_ns, slot, cells.maxima(rows.end))

    def _add_busy(self, into: Floats, last_end: Ints, groups: Groups, start: Ints, end: Ints, head: int) -> None:
        """Add the busy time that is not yet covered, of intervals in the order of key, then end."""
        begin, stop = newly_covered(groups, start, end, last_end)
        self._spread(into, groups, begin, stop, head)

    def _spread(self, into: Floats, groups: Groups, begin: Ints, end: Ints, head: int) -> None:
        grid = self.grid
        oldest = head - grid.count + 1
        low, high = (grid.slot_of(t) for t in (begin.min(), end.max()))
        if low == high and oldest <= low <= head:
            into[groups.key, low % grid.count] += groups.sums(end - begin)
            return
        first = min(max(oldest, int(low)), head)
        slots = min(head, max(first, int(high))) - first + 1
        keys = int(groups.key[-1]) + 1
        ring = np.arange(first, first + slots) % grid.count
        key = np.broadcast_to(groups.per_row(groups.key), begin.shape)
        into[:keys, ring] += spread(key, begin, end, keys, grid, first, slots)
