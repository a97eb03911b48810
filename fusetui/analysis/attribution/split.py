"""Latency split into parts, item by item; see `parts`."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fusetui.analysis.arrays import Bools, Floats, Ints
from fusetui.analysis.attribution.cores import Cores, cores_of, running_between
from fusetui.analysis.attribution.ids import distinct, ids_of
from fusetui.analysis.attribution.jobs import Excess, excess_of
from fusetui.analysis.attribution.join import join
from fusetui.analysis.attribution.parts import GATE, IMBALANCE, PARTS, QUEUE, REST
from fusetui.analysis.attribution.service import own_service, shared_service
from fusetui.analysis.attribution.waits import gate_of, misplaced
from fusetui.analysis.columns import NULL, REQUEST, Reader
from fusetui.analysis.mapping_ways import dense
from fusetui.analysis.work import Work

_LONGEST = 1 << 61


@dataclass(frozen=True, slots=True)
class Split:
    """parts [items, PARTS] ns, each row sums to the latency (items,); executions: how many told of them.

    bare  (items,) ns of rest in which nothing of the item ran: the other rest is executions slower than their like
    """

    parts: Ints
    bare: Ints
    latency: Ints
    end: Ints
    executions: int
    notes: tuple[str, ...]


def known_items(items: Work) -> Work:
    """The items that are split: those whose wait is known. Where no request says when it came, all from their start."""
    rows = items.rows
    if len(items) and rows.kind[0] == REQUEST and not items.joined.any():
        return replace(items, rows=replace(rows, enqueue=rows.start))
    chosen = items.waited & (items.raw >= 0)
    if chosen.all():
        return items
    keep = np.flatnonzero(chosen)
    return Work(
        rows.take(keep), items.joined[keep], items.waited[keep], items.raw[keep], items.wait[keep],
        items.service[keep], items.latency[keep],
    )  # fmt: skip


def split(items: Work, ran: Work, reader: Reader, same: bool) -> Split:
    """Items of known begin and wait with the executions of the window; same: the items are (some of) those.

    Items without executions of theirs keep what is not wait in rest.
    """
    begin, latency = items.rows.enqueue, items.latency
    if not len(ran) or _too_long(items, ran):
        parts = np.zeros((len(items), len(PARTS)), np.int64)
        parts[:, QUEUE] = items.wait
        why = "no executions in the window: service is not told apart" if not len(ran) else "times too far apart"
        return Split(*_closed(parts, latency), latency, items.rows.end, 0, (why,))
    rows = ran.rows
    place = ids_of(rows.place)
    cores = cores_of(place, rows.start, np.maximum(rows.end, rows.start))
    device, beside = _beside(ran, place, cores)
    excess = excess_of(ran, place, device, beside, reader.shapes.words, launches=same)
    joined = join(ran if same else items, ran)
    if same:
        return _executions(items, ran, excess, place, cores)
    owner, leader = joined.owner, joined.leader
    wait = _wait(items, ran, owner)
    own = own_service(begin, wait, latency, rows, owner, excess, place, cores)
    parts, covered = own.parts, own.covered
    follows = (leader >= 0) & (leader != np.arange(len(items)))
    parts[follows], covered[follows] = parts[leader[follows]], covered[leader[follows]]
    _share(parts, covered, items, wait, ran, place, cores, excess)
    gate = gate_of(begin, wait, rows, owner, leader)
    idle = misplaced(begin + gate, begin + wait, items.rows.stream, rows.stream, place, cores)
    parts[:, QUEUE] += wait - gate - idle
    parts[:, GATE] = gate
    parts[:, IMBALANCE] += idle
    served = int((owner >= 0).sum())
    notes = _notes(items, ran, covered, excess.no_plan, excess.beside and not excess.alone, served)
    return Split(*_closed(parts, latency), latency, items.rows.end, served, notes)


def _too_long(items: Work, ran: Work) -> bool:
    """Whether times are so far apart that positions on one axis would overflow."""
    span = float(ran.rows.end.max()) - float(ran.rows.start.min()) + 2.0
    places = float(len(distinct(ids_of(ran.rows.place))))
    return span * (places + 1.0) >= _LONGEST or float(items.latency.sum(dtype=np.float64)) >= _LONGEST


def _wait(items: Work, ran: Work, owner: Ints) -> Ints:
    """Until the first of its executions began, where that is before its start or where it tells of no start."""
    first = np.full(len(items), np.iinfo(np.int64).max)
    mine = owner >= 0
    np.minimum.at(first, owner[mine], ran.rows.start[mine])
    until = np.where(items.rows.start == NULL, first, np.minimum(items.rows.start, first))
    until = np.minimum(until, items.rows.end)
    return np.clip(until - items.rows.enqueue, 0, items.latency)


def _beside(ran: Work, place: Ints, cores: Cores) -> tuple[Ints, Floats]:
    """(device, mean number of its other cores that ran meanwhile) of each execution."""
    rows = ran.rows
    of = dense(rows.host, rows.device)
    beside = np.zeros(len(rows))
    tiles = cores.tiles
    some = tiles.new > 0
    begin = (np.maximum(tiles.begin, tiles.reached) - place[tiles.order] * cores.length + cores.from_ns)[some]
    where, ends = of[tiles.order][some], begin + tiles.new[some]
    for number in range(int(of.max()) + 1):
        on, mine = where == number, np.flatnonzero(of == number)
        if len(distinct(place[mine])) > 1:
            among = running_between(begin[on], ends[on], rows.start[mine], rows.end[mine])
            beside[mine] = np.maximum(among - 1.0, 0.0)
    return of, beside


def _executions(items: Work, ran: Work, excess: Excess, place: Ints, cores: Cores) -> Split:
    """Executions as items of their own: what is not wait ran."""
    chosen = np.flatnonzero(ran.waited & (ran.raw >= 0))
    owner = np.full(len(ran), -1)
    owner[chosen] = np.arange(len(chosen))
    spent = own_service(items.rows.enqueue, items.wait, items.latency, ran.rows, owner, excess, place, cores)
    idle = misplaced(items.rows.enqueue, items.rows.start, items.rows.stream, ran.rows.stream, place, cores)
    spent.parts[:, QUEUE] += items.wait - idle
    spent.parts[:, IMBALANCE] += idle
    notes = ("no requests: gate and launch are not told, they lie before an execution is enqueued",)
    return Split(*_closed(spent.parts, items.latency), items.latency, items.rows.end, len(chosen), notes)


def _share(
    parts: Ints, covered: Ints, items: Work, wait: Ints, ran: Work, place: Ints, cores: Cores, excess: Excess
) -> None:
    """Fill in items of which less than half the service is told, from what served several on their core."""
    rows = items.rows
    shared = (ran.rows.batch > 1) | (ran.rows.request == NULL)
    asked = np.flatnonzero((covered * 2 < items.latency - wait) & (rows.start != NULL))
    if not asked.size or not shared.any():
        return
    known = np.unique(ran.rows.place)
    at = np.minimum(np.searchsorted(known, rows.place[asked]), len(known) - 1)
    there = known[at] == rows.place[asked]
    asked, core = asked[there], at[there]
    spent = shared_service(rows.start[asked], rows.end[asked], core, ran.rows, shared, excess, cores)
    better = spent.covered > covered[asked]
    parts[asked[better]], covered[asked[better]] = spent.parts[better], spent.covered[better]


def _closed(parts: Ints, latency: Ints) -> tuple[Ints, Ints]:
    """(parts that sum to the latency exactly and are never below 0: what is over is cut, what is left is rest; that
    left)."""
    left = latency.copy()
    for part in range(len(PARTS)):
        taken = np.clip(parts[:, part], 0, left)
        parts[:, part] = taken
        left -= taken
    parts[:, REST] += left
    return parts, left


def _notes(items: Work, ran: Work, covered: Ints, no_plan: int, unknown: bool, served: int) -> tuple[str, ...]:
    def some(chosen: Bools) -> str:
        return f"{int(chosen.sum()):,} of {len(items):,} requests"

    bare = (covered == 0) & (items.latency > 0)
    no_mapping = bool((ran.rows.mapping < 0).all())
    said = (
        (not items.joined.any(), "no enqueue_ns of requests: what they waited before their start is not known"),
        (served == 0, "no execution names a request (column request)"),
        (served > 0 and bool(bare.any()), f"{some(bare)} have no executions: their service is rest"),
        (bool((ran.rows.enqueue == NULL).all()), "no enqueue_ns of executions: gate and launch are not told apart"),
        (no_mapping, "no mapping of executions: fallback and padding are not told apart"),
        (no_plan > 0, f"{no_plan:,} fallback executions have no planned time to hold against: rest"),
        (unknown, "cores always share their device: what that costs is not told apart from planned"),
        (int(ran.rows.device.max()) < 0, "no device of executions: contention and imbalance are not told apart"),
    )
    return tuple(text for holds, text in said if holds)
