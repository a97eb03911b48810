"""The slots of the window, filled batch by batch: every number a pane draws over time, and the fallback for totals.

Everything is a count, a sum, a maximum or a log histogram per slot, so adding is cheap and forgetting a slot is exact.
Busy time is the union of intervals: exact within a batch and along rows in completion order; work that began before
the end of an earlier batch counts only from that end on.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from fusetui.analysis import launch
from fusetui.analysis.arrays import Bools, Codes, Floats, Ints
from fusetui.analysis.busy import by_key_and_end, disjoint
from fusetui.analysis.columns import COUNTER, EXECUTION, MARK, REQUEST, Columns
from fusetui.analysis.loghist import BUCKETS
from fusetui.analysis.rings import HistogramRing
from fusetui.analysis.slots import Grid, RingSlots, spread
from fusetui.analysis.work import Work, executions, requests
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
        ran = executions(rows) if kinds[EXECUTION] else None
        if ran is not None and len(ran):
            self._add_executions(ran, where if ran.rows is rows else RingSlots.of(ran.rows.event, self.grid), head)

    def _count(self, name: str, where: RingSlots, chosen: Bools | None = None) -> None:
        where.count(self.counts[:, COUNT[name]], chosen)

    def _add_requests(self, asked: Work) -> None:
        if len(asked):
            where = RingSlots.of(asked.rows.event, self.grid)
            self._count("requests", where)
            self.latency.add(BY_REQUEST, where, asked.latency)

    def _add_executions(self, ran: Work, where: RingSlots, head: int) -> None:
        rows = ran.rows
        self.streams_used = max(self.streams_used, int(rows.stream.max()) + 1)
        self.places_used = max(self.places_used, int(rows.place.max()) + 1)
        self._count("executions", where)
        self.latency.add(BY_EXECUTION, where, ran.latency)
        self.service.add(rows.stream, where, ran.service)
        self._add_waits(ran, where, head)
        for name, chosen in launch.flags(ran).items():
            self._count(name, where, chosen)
        own, call = launch.call_times(ran)
        if own.any():
            self.call.add(0, where.take(own), call[own])
        if rows.mapping.strides != (0,):
            for code, name in enumerate(MAPPINGS):
                self._count(name, where, rows.mapping == code)
        if where.only is not None:
            self.place_n[: self.places_used, where.only] += np.bincount(rows.place, minlength=self.places_used)
            self.start_ns[where.only] = min(self.start_ns[where.only], rows.start.min())
            self.end_ns[where.only] = max(self.end_ns[where.only], rows.end.max())
        else:
            np.add.at(self.place_n.reshape(-1), rows.place.astype(np.int64) * self.grid.count + where.slot, 1)
            np.minimum.at(self.start_ns, where.slot, rows.start)
            np.maximum.at(self.end_ns, where.slot, rows.end)
        self._add_busy(ran, where, head)

    def _add_waits(self, ran: Work, where: RingSlots, head: int) -> None:
        rows, waited = ran.rows, ran.waited
        if waited.all():
            self.wait.add(rows.stream, where, ran.wait)
            self._spread(self.wait_ns, rows.stream, rows.enqueue, np.maximum(rows.start, rows.enqueue), head)
        elif waited.any():
            stream, enqueue = rows.stream[waited], rows.enqueue[waited]
            self.wait.add(stream, where.take(waited), ran.wait[waited])
            self._spread(self.wait_ns, stream, enqueue, np.maximum(rows.start[waited], enqueue), head)

    def _add_busy(self, ran: Work, where: RingSlots, head: int) -> None:
        rows = ran.rows
        order = by_key_and_end(rows.stream, rows.end)
        stream, start, end = rows.stream[order], rows.start[order], rows.end[order]
        if ran.waited.any() and rows.launch.strides != (0,):
            enqueue, call, waited = rows.enqueue[order], rows.launch[order], ran.waited[order]
            gaps = launch.exposed_gaps(stream, start, end, enqueue, call, waited, self._stream_end)
            if where.only is not None:
                self.counts[where.only, COUNT["exposed_ns"]] += gaps.sum()
            else:
                np.add.at(self.counts[:, COUNT["exposed_ns"]], where.slot[order], gaps)
        self._add_union(self.stream_busy_ns, self._stream_end, stream, start, end, head)
        order = by_key_and_end(rows.place, rows.end)
        self._add_union(
            self.place_busy_ns, self._place_end, rows.place[order], rows.start[order], rows.end[order], head
        )
        everything = np.broadcast_to(np.zeros(1, np.int32), (len(ran),))
        order = by_key_and_end(everything, rows.end)
        self._add_union(self.busy_ns, self._end, everything, rows.start[order], rows.end[order], head)

    def _add_union(self, into: Floats, last_end: Ints, key: Codes, start: Ints, end: Ints, head: int) -> None:
        """Add the busy time that is not yet covered; rows are in the order of (key, end)."""
        begin, stop = disjoint(key, start, end)
        begin = np.maximum(begin, last_end[key if key[0] != key[-1] else key[:1]])
        self._spread(into, key, begin, np.maximum(stop, begin), head)
        last = np.append(np.flatnonzero(key[1:] != key[:-1]), key.size - 1)
        last_end[key[last]] = np.maximum(last_end[key[last]], end[last])

    def _spread(self, into: Floats, key: Codes, begin: Ints, end: Ints, head: int) -> None:
        if begin.size == 0:
            return
        grid = self.grid
        oldest = head - grid.count + 1
        first = min(max(oldest, (int(begin.min()) - grid.origin) // grid.width), head)
        slots = min(head, max(first, (int(end.max()) - grid.origin) // grid.width)) - first + 1
        keys = int(key.max()) + 1
        ring = np.arange(first, first + slots) % grid.count
        into[:keys, ring] += spread(key, begin, end, keys, grid, first, slots)
