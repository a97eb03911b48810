"""The slots of the window, filled batch by batch: every number a pane draws over time, and the fallback for totals.

Everything is a count, a sum, a maximum or a log histogram per slot, so adding is cheap and forgetting a slot is exact.
Busy time is the union of intervals: exact within a batch and along rows in completion order; work that began before
the end of an earlier batch counts only from that end on.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from fusetui.analysis import launch
from fusetui.analysis.arrays import Codes, Floats, Ints
from fusetui.analysis.busy import Order, by_key_and_end, disjoint
from fusetui.analysis.columns import COUNTER, MARK, Columns
from fusetui.analysis.loghist import BUCKETS
from fusetui.analysis.rings import HistogramRing
from fusetui.analysis.slots import Grid, spread
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

    def add(self, rows: Columns, head: int) -> None:
        """Take in rows whose event slots lie in (head - S, head]."""
        slot = self.grid.slot_of(rows.event) % self.grid.count
        self._count("rows", slot)
        for name, kind in (("counters", COUNTER), ("marks", MARK)):
            self._count(name, slot[rows.kind == kind])
        asked = requests(rows)
        if len(asked):
            at = self._slots(asked)
            self._count("requests", at)
            self.latency.add(np.full(len(asked), BY_REQUEST, np.int32), at, asked.latency)
        ran = executions(rows)
        if len(ran):
            self._add_executions(ran, self._slots(ran), head)

    def _slots(self, work: Work) -> Ints:
        return self.grid.slot_of(work.rows.event) % self.grid.count

    def _count(self, name: str, slots: Ints) -> None:
        if slots.size:
            self.counts[:, COUNT[name]] += np.bincount(slots, minlength=self.grid.count)

    def _add_executions(self, ran: Work, slot: Ints, head: int) -> None:
        rows = ran.rows
        self.streams_used = max(self.streams_used, int(rows.stream.max()) + 1)
        self.places_used = max(self.places_used, int(rows.place.max()) + 1)
        self._count("executions", slot)
        self.latency.add(np.full(len(ran), BY_EXECUTION, np.int32), slot, ran.latency)
        self.service.add(rows.stream, slot, ran.service)
        waited = ran.waited
        if waited.all():
            self._add_waits(rows.stream, slot, ran.wait, rows.enqueue, rows.start, head)
        elif waited.any():
            began = rows.start[waited]
            self._add_waits(rows.stream[waited], slot[waited], ran.wait[waited], rows.enqueue[waited], began, head)
        for name, chosen in launch.flags(ran).items():
            self._count(name, slot if chosen.all() else slot[chosen])
        own, call = launch.call_times(ran)
        if own.any():
            self.call.add(np.zeros(int(own.sum()), np.int32), slot[own], call[own])
        if rows.mapping.strides != (0,):
            for code, name in enumerate(MAPPINGS):
                self._count(name, slot[rows.mapping == code])
        np.add.at(self.place_n.reshape(-1), rows.place.astype(np.int64) * self.grid.count + slot, 1)
        np.minimum.at(self.start_ns, slot, rows.start)
        np.maximum.at(self.end_ns, slot, rows.end)
        self._add_busy(ran, slot, head)

    def _add_waits(self, stream: Codes, slot: Ints, wait: Ints, enqueue: Ints, start: Ints, head: int) -> None:
        self.wait.add(stream, slot, wait)
        self._spread(self.wait_ns, stream, enqueue, start, head)

    def _add_busy(self, ran: Work, slot: Ints, head: int) -> None:
        rows = ran.rows
        by_stream = by_key_and_end(rows.stream, rows.end)
        if ran.waited.any():
            gaps = launch.exposed_gaps(ran, by_stream, self._stream_end)
            np.add.at(self.counts[:, COUNT["exposed_ns"]], slot[by_stream], gaps)
        self._add_union(self.stream_busy_ns, self._stream_end, rows.stream, rows, by_stream, head)
        by_place = by_key_and_end(rows.place, rows.end)
        self._add_union(self.place_busy_ns, self._place_end, rows.place, rows, by_place, head)
        nothing = np.broadcast_to(np.zeros(1, np.int32), (len(ran),))
        self._add_union(self.busy_ns, self._end, nothing, rows, by_key_and_end(nothing, rows.end), head)

    def _add_union(
        self,
        into: Floats,
        last_end: Ints,
        key: Codes,
        rows: Columns,
        order: Order,
        head: int,
    ) -> None:
        """Add the busy time that is not yet covered; `order` is by (key, end)."""
        key, end = key[order], rows.end[order]
        begin, stop = disjoint(key, rows.start[order], end)
        begin = np.maximum(begin, last_end[key])
        fresh = stop > begin
        if fresh.all():
            self._spread(into, key, begin, stop, head)
        elif fresh.any():
            self._spread(into, key[fresh], begin[fresh], stop[fresh], head)
        last = np.append(key[1:] != key[:-1], True)
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
        into[:keys, ring] += spread(key, begin, np.maximum(end, begin), keys, grid, first, slots)
