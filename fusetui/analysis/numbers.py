"""The totals of a window: exactly from its raw rows, or from its slots when those are gone or too many."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from fusetui.analysis.accumulate import BY_EXECUTION, BY_REQUEST, COUNT, Accumulators
from fusetui.analysis.arrays import Bools, Floats, Ints, Order, repeated
from fusetui.analysis.busy import by_key_and_end, disjoint, union_ns
from fusetui.analysis.cohort import cohort_of
from fusetui.analysis.columns import EXECUTION, Columns
from fusetui.analysis.imbalance import stretch_of_steps
from fusetui.analysis.launch import NEVER, call_times, exposed_gaps
from fusetui.analysis.openwork import OpenWork
from fusetui.analysis.quantiles import tail_of, tail_of_counts
from fusetui.analysis.queue import depth_from_slots, depth_of
from fusetui.analysis.rings import HistogramRing
from fusetui.analysis.snapshot import Depth, LatencyOf, Tail, TailCohort
from fusetui.analysis.work import Work, executions, requests

_BLOCK: Final = 1 << 16

MIN_REQUESTS = 20
"""Requests from which on the tail is theirs: fewer have no 95th percentile worth the name."""


@dataclass(frozen=True, slots=True)
class Interval:
    """The window looked at: its first ns, now, and the ring slots in time order with how long each has lasted."""

    from_ns: int
    now_ns: int
    order: Ints
    lasted_ns: Floats


@dataclass(frozen=True, slots=True)
class StreamNumbers:
    """One stream; as in `snapshot.StreamRow`."""

    busy_ns: int
    wait: Tail
    service: Tail
    depth: Depth


@dataclass(frozen=True, slots=True)
class Numbers:
    """Totals over the window; place_busy_ns [P] int64, stretch_ns (steps,) int64."""

    latency_of: LatencyOf
    latency: Tail
    queue_wait: Tail
    service: Tail
    call: Tail
    span_ns: int | None
    busy_ns: int | None
    exposed_ns: int | None
    depth: Depth
    streams: dict[int, StreamNumbers]
    place_busy_ns: Ints
    stretch_ns: Ints
    stretch_why: str
    cohort: TailCohort | None


def from_rows(rows: Columns, open_work: OpenWork, at: Interval, acc: Accumulators, across_hosts: bool) -> Numbers:
    """Exactly, from every row in the window."""
    ran, asked = executions(rows), requests(rows)
    latency_of = _latency_of(len(asked), len(ran), open_work)
    items = asked if latency_of == "request" else ran
    ages = open_work.request_ages(at.now_ns) if latency_of == "request" else open_work.execution_ages(at.now_ns)
    waiting, running = open_work.waiting, open_work.running
    waits = ran.waited
    own_call, call = call_times(ran)
    stream_order = by_key_and_end(ran.rows.stream, ran.rows.end)
    return Numbers(
        latency_of=latency_of,
        latency=tail_of(items.latency, ages),
        queue_wait=tail_of(ran.wait[waits], open_work.ages(waiting, open_work.enqueue, at.now_ns)),
        service=tail_of(ran.service, open_work.ages(running, open_work.start, at.now_ns)),
        call=tail_of(call[own_call]),
        span_ns=int(ran.rows.end.max()) - int(ran.rows.start.min()) if len(ran) else None,
        busy_ns=union_ns(ran.rows.start, ran.rows.end) if len(ran) else None,
        exposed_ns=_exposed(ran, stream_order, acc.streams_used) if own_call.any() else None,
        depth=_depth(ran, slice(None), open_work, waiting, at),
        streams=_streams(ran, stream_order, open_work, at),
        place_busy_ns=_busy_by_place(ran, acc.places_used),
        stretch_ns=stretch_of_steps(ran, across_hosts),
        stretch_why="no step ran on two or more cores",
        cohort=cohort_of(items, latency_of),
    )


def from_slots(
    acc: Accumulators, open_work: OpenWork, at: Interval, newest: Columns | None, across_hosts: bool
) -> Numbers:
    """From the slots; steps and cohorts, which need rows, over the newest rows that were kept."""
    counts = acc.counts.sum(axis=0)
    latency_of = _latency_of(int(counts[COUNT["requests"]]), int(counts[COUNT["executions"]]), open_work)
    kind = BY_REQUEST if latency_of == "request" else BY_EXECUTION
    ages = open_work.request_ages(at.now_ns) if latency_of == "request" else open_work.execution_ages(at.now_ns)
    ran = executions(newest) if newest is not None else None
    items = requests(newest) if newest is not None and latency_of == "request" else ran
    any_work = bool(counts[COUNT["executions"]])
    depth_by_slot = depth_per_slot(acc.wait_ns.sum(axis=0), counts_joined(acc), open_work, at)
    return Numbers(
        latency_of=latency_of,
        latency=_ring_tail(acc.latency, slice(kind, kind + 1), ages),
        queue_wait=_ring_tail(acc.wait, slice(None), open_work.ages(open_work.waiting, open_work.enqueue, at.now_ns)),
        service=_ring_tail(acc.service, slice(None), open_work.ages(open_work.running, open_work.start, at.now_ns)),
        call=_ring_tail(acc.call, slice(None)),
        span_ns=int(acc.end_ns.max() - acc.start_ns.min()) if any_work else None,
        busy_ns=round(float(acc.busy_ns.sum())) if any_work else None,
        exposed_ns=int(counts[COUNT["exposed_ns"]]) if acc.call.n.any() else None,
        depth=depth_from_slots(depth_by_slot, _waiting_now(open_work)),
        streams={key: _ring_stream(acc, key, open_work, at) for key in range(acc.streams_used)},
        place_busy_ns=np.rint(acc.place_busy_ns[: acc.places_used].sum(axis=1)).astype(np.int64),
        stretch_ns=stretch_of_steps(ran, across_hosts) if ran is not None else np.zeros(0, np.int64),
        stretch_why="no step ran on two or more cores among the newest rows",
        cohort=cohort_of(items, latency_of) if items is not None else None,
    )


def _latency_of(requests_n: int, executions_n: int, open_work: OpenWork) -> LatencyOf:
    """Requests when there are enough of them for a tail, or nothing else is there; a few training steps are not."""
    requests_n += int(open_work.requests.sum())
    return "request" if requests_n >= MIN_REQUESTS or (requests_n and not executions_n) else "execution"


def depth_per_slot(wait_ns: Floats, known: Bools, open_work: OpenWork, at: Interval) -> Floats:
    """Mean depth per slot in time order, [S]; NaN where nothing is known.

    wait_ns  [S] time waited in each ring slot; known [S]: ring slots in which executions with a queue wait ended
    """
    waited = wait_ns[at.order]
    with np.errstate(invalid="ignore", divide="ignore"):
        depth = waited / at.lasted_ns
    has_data = known[at.order] | (waited > 0)
    if open_work.executions_seen:
        has_data = has_data | (at.lasted_ns > 0)
    return np.where(has_data & (at.lasted_ns > 0), depth, np.nan)


def counts_joined(acc: Accumulators) -> Bools:
    """Ring slots in which an execution with a known enqueue time ended, [S]."""
    return acc.counts[:, COUNT["joined"]] > 0


def _waiting_now(open_work: OpenWork, stream: int | None = None) -> int | None:
    if not open_work.executions_seen:
        return None
    waiting = open_work.waiting if stream is None else open_work.waiting & (open_work.stream == stream)
    return int(waiting.sum())


def _depth(
    ran: Work, rows: Order, open_work: OpenWork, waiting: Bools, at: Interval, stream: int | None = None
) -> Depth:
    """Queue depth of the executions in `rows` and of open work."""
    waits = ran.waited[rows]
    enqueue, start = ran.rows.enqueue[rows][waits], ran.rows.start[rows][waits]
    # Work that started before it was enqueued (a clipped wait) never stood in the queue.
    np.maximum(start, enqueue, out=start)
    if waiting.any():
        enqueue = np.concatenate([enqueue, open_work.enqueue[waiting]])
    return depth_of(enqueue, start, at.from_ns, at.now_ns, _waiting_now(open_work, stream))


def _streams(ran: Work, order: Order, open_work: OpenWork, at: Interval) -> dict[int, StreamNumbers]:
    """Per stream from executions in `order` by (stream, end), one stream at a time."""
    stream = ran.rows.stream[order]
    changes = np.flatnonzero(stream[1:] != stream[:-1]) + 1
    edges = [0, *changes.tolist(), stream.size] if stream.size else []
    rows = {int(stream[a]): slice(a, b) if isinstance(order, slice) else order[a:b] for a, b in pairwise(edges)}
    del stream
    for key in np.unique(open_work.stream[open_work.kind == EXECUTION]).tolist():
        rows.setdefault(key, slice(0, 0))
    return {key: _stream(ran, mine, key, open_work, at) for key, mine in rows.items()}


def _stream(ran: Work, rows: Order, key: int, open_work: OpenWork, at: Interval) -> StreamNumbers:
    mine = open_work.stream == key
    waiting, running = open_work.waiting & mine, open_work.running & mine
    return StreamNumbers(
        busy_ns=_busy(ran, rows),
        wait=tail_of(ran.wait[rows][ran.waited[rows]], open_work.ages(waiting, open_work.enqueue, at.now_ns)),
        service=tail_of(ran.service[rows], open_work.ages(running, open_work.start, at.now_ns)),
        depth=_depth(ran, rows, open_work, waiting, at, key),
    )


def _busy(ran: Work, rows: Order) -> int:
    """Time covered by executions that come in the order of their ends, ns."""
    start = ran.rows.start[rows]
    _, stop = disjoint(repeated(0, start.size, np.int64), start, ran.rows.end[rows])
    stop -= start
    return int(stop.sum())


def _exposed(ran: Work, order: Order, streams: int) -> int:
    """Exposed launch overhead of executions in `order` by (stream, end), a block at a time."""
    rows, total = ran.rows, 0
    last_end = np.full(streams + 1, NEVER, np.int64)
    for low in range(0, len(ran), _BLOCK):
        block = slice(low, low + _BLOCK) if isinstance(order, slice) else order[low : low + _BLOCK]
        stream, end = rows.stream[block], rows.end[block]
        start, enqueue, call = rows.start[block], rows.enqueue[block], rows.launch[block]
        total += int(exposed_gaps(stream, start, end, enqueue, call, ran.waited[block], last_end).sum())
        last_end[stream[-1]] = end[-1]
    return total


def _busy_by_place(ran: Work, places: int) -> Ints:
    order = by_key_and_end(ran.rows.place, ran.rows.end)
    place = ran.rows.place[order]
    begin, stop = disjoint(place, ran.rows.start[order], ran.rows.end[order])
    total = np.zeros(places, np.int64)
    np.add.at(total, place, stop - begin)
    return total


def _ring_tail(ring: HistogramRing, keys: slice, ages: Ints | None = None) -> Tail:
    counts = ring.total[keys].sum(axis=0)
    total_ns, largest = float(ring.sum_ns[keys].sum()), int(ring.max_ns[keys].max())
    return tail_of_counts(counts, total_ns, largest, np.zeros(0, np.int64) if ages is None else ages)


def _ring_stream(acc: Accumulators, key: int, open_work: OpenWork, at: Interval) -> StreamNumbers:
    mine = open_work.stream == key
    depth = depth_per_slot(acc.wait_ns[key], acc.wait.n[key] > 0, open_work, at)
    only = slice(key, key + 1)
    waiting, running = open_work.waiting & mine, open_work.running & mine
    return StreamNumbers(
        busy_ns=round(float(acc.stream_busy_ns[key].sum())),
        wait=_ring_tail(acc.wait, only, open_work.ages(waiting, open_work.enqueue, at.now_ns)),
        service=_ring_tail(acc.service, only, open_work.ages(running, open_work.start, at.now_ns)),
        depth=depth_from_slots(depth, _waiting_now(open_work, key)),
    )
