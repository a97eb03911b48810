"""Why executions took as long as they did: against their like, per job (of one request on one core and stream)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from fusetui.analysis.arrays import Bools, Floats, Ints, repeated
from fusetui.analysis.attribution.ids import distinct, ids_of
from fusetui.analysis.attribution.likes import expected_times, medians
from fusetui.analysis.attribution.parts import CONTENTION, FALLBACK, IMBALANCE, PADDING, PARTS, REST
from fusetui.analysis.columns import NULL, Columns
from fusetui.analysis.mapping_ways import dense
from fusetui.analysis.work import Work
from fusetui.telemetry.schema import MAPPINGS

CELLS: Final = 60
SLOW_FROM: Final = 1.1
"""A core this much slower than its like is slow; less is the noise of a median of few."""
_MOST_BESIDE: Final = 64
_PLANNED, _ADAPTED, _FALLBACK = (MAPPINGS.index(word) for word in ("planned", "adapted", "fallback"))


@dataclass(frozen=True, slots=True)
class Excess:
    """Per job; job (executions,) says which one an execution is of.

    shares     [jobs, PARTS] of its executions' time that are above its plan: planned is what is left of 1
    late       (jobs,) share of the launch time before each that a plan of its stream would not have had
    no_plan    fallback executions without a planned time to hold against: all of theirs is in rest
    beside     whether executions share devices; alone: whether enough ran alone to tell what sharing costs
    """

    job: Ints
    shares: Floats
    late: Floats
    no_plan: int
    beside: bool
    alone: bool

    def of(self, rows: Ints, took: Ints) -> list[tuple[int, Ints]]:
        """(part, ns) of the time that executions took (m,), whole ns that never sum to more; parts that none has left
        out."""
        job = self.job[rows]
        found = []
        upto, before = np.zeros(len(self.shares)), np.zeros(len(took), np.int64)
        for part in np.flatnonzero(self.shares.any(axis=0)).tolist():
            upto = upto + self.shares[:, part]
            edge = np.rint(np.minimum(upto, 1.0)[job] * took).astype(np.int64)
            found.append((part, edge - before))
            before = edge
        return found

    def late_of(self, rows: Ints, launched: Ints) -> Ints:
        """(m,) ns of the launch time before executions that a plan would not have had."""
        if not self.late.any():
            return np.zeros(len(rows), np.int64)
        return np.rint(launched * self.late[self.job[rows]]).astype(np.int64)


@dataclass(slots=True)
class _Jobs:
    """(j,) each; of [executions] says which job an execution is of.

    kind  of jobs that are like each other: of one stream, shape and head; head: name of a launch of no request, else -1
    """

    of: Ints
    took: Floats
    start: Ints
    end: Ints
    place: Ints
    device: Ints
    kind: Ints
    mapping: Ints
    stream: Ints
    shape: Ints
    head: Ints


def excess_of(
    ran: Work, place: Ints, device: Ints, beside: Floats, shape_words: list[str], *, launches: bool = False
) -> Excess:
    """place, device (n,): dense ids of core and of (host, device); beside (n,): its other cores that ran meanwhile.

    launches  a job is one launch, whatever request it names: where executions are the items
    """
    rows = ran.rows if not launches else replace(ran.rows, request=repeated(NULL, len(ran), np.int64))
    jobs = _jobs(rows, ran.service, device, place)
    with_others = np.bincount(jobs.of, beside * ran.service, len(jobs.took)) / np.maximum(jobs.took, 1.0)
    slow = _slow(jobs)
    crowded, alone = _crowded(jobs, slow, with_others)
    shares = np.zeros((len(jobs.took), len(PARTS)))
    calm = 1.0 / crowded
    shares[:, CONTENTION] = 1.0 - calm
    shares[:, IMBALANCE] = calm * (1.0 - 1.0 / slow)
    left = jobs.took * calm / slow
    other = (jobs.mapping == _FALLBACK) | (jobs.mapping == _ADAPTED)
    plan = _plan(jobs, jobs.took / slow, other, shape_words)
    over = np.maximum(left - plan, 0.0)
    lost = (jobs.mapping == _FALLBACK) & np.isnan(plan)
    took = np.maximum(jobs.took, 1.0)
    shares[:, FALLBACK] = np.where((jobs.mapping == _FALLBACK) & ~lost, over, 0.0) / took
    shares[:, PADDING] = np.where((jobs.mapping == _ADAPTED) & ~np.isnan(plan), over, 0.0) / took
    shares[:, REST] = np.where(lost, left, np.where(other | np.isnan(plan), 0.0, over)) / took
    np.nan_to_num(shares, copy=False)
    late = _late(jobs, rows)
    return Excess(jobs.of, shares, late, int(lost[jobs.of].sum()), bool((with_others > 0.1).any()), alone)


def _jobs(rows: Columns, service: Ints, device: Ints, place: Ints) -> _Jobs:
    mapping = np.broadcast_to(rows.mapping, len(rows)).astype(np.int64)
    request = _numbered(rows.request)
    by_request = dense(request, rows.host, rows.place, rows.stream, rows.shape, mapping)
    # Without a request, a launch of its own begins another job and the nodes of a graph go on with it.
    nobody = rows.request == NULL
    of, mine = by_request, np.zeros(0, np.int64)
    if nobody.any():
        order = np.lexsort((rows.start, rows.place))
        heads = np.empty(len(rows), np.int64)
        heads[order] = np.cumsum((rows.node <= 0)[order])
        of = ids_of(np.where(nobody, -1 - heads, by_request))
        mine = order[nobody[order]][::-1]
    n = int(of.max()) + 1
    one = np.empty(n, np.int64)
    one[of] = np.arange(len(of))
    start, end = np.full(n, np.iinfo(np.int64).max), np.full(n, NULL)
    np.minimum.at(start, of, rows.start)
    np.maximum.at(end, of, rows.end)
    stream, shape = rows.stream[one].astype(np.int64), rows.shape[one].astype(np.int64)
    head = np.full(n, -1)
    head[of[mine]] = rows.name[mine]  # of several the first in time is written last
    return _Jobs(
        of, np.bincount(of, service, n).astype(np.float64), start, end, place[one], device[one],
        dense(stream, shape, head), mapping[one], stream, shape, head,
    )  # fmt: skip


def _plan(jobs: _Jobs, took: Floats, other: Bools, shape_words: list[str]) -> Floats:
    """(j,) expected times; what fell back or was adapted under a name that never ran planned is held against any."""
    plan = expected_times(dense(jobs.stream, jobs.head), jobs.shape, jobs.kind, took, jobs.mapping, shape_words)
    lost = other & np.isnan(plan) & (jobs.head >= 0)
    if not lost.any():
        return plan
    kind = dense(jobs.stream, jobs.shape)
    return np.where(lost, expected_times(jobs.stream, jobs.shape, kind, took, jobs.mapping, shape_words), plan)


def _numbered(request: Ints) -> Ints:
    """(n,) dense ids of request numbers, -1 of none."""
    known = request != NULL
    if known.all():
        return ids_of(request)
    found = np.full(len(request), -1)
    found[known] = ids_of(request[known])
    return found


def _late(jobs: _Jobs, rows: Columns) -> Floats:
    """(j,) of fallback jobs the share of their launch calls above the median of planned jobs of the stream, else 0."""
    fell = jobs.mapping == _FALLBACK
    if not fell.any():
        return np.zeros(len(jobs.took))
    calls = np.bincount(jobs.of, np.where(rows.launch == NULL, 0, rows.launch), len(jobs.took)).astype(np.float64)
    stream = dense(jobs.stream)
    usual = medians(stream, calls, int(stream.max()) + 1, jobs.mapping == _PLANNED)[stream]
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(calls > 0, 1.0 - usual / calls, 0.0)
    return np.where(fell, np.clip(np.nan_to_num(share), 0.0, 1.0), 0.0)


def _ratio(jobs: _Jobs, chosen: Bools | None = None, took: Floats | None = None) -> Floats:
    """(j,) time over the median of the same shape and mapping among the chosen; NaN where too few."""
    like = dense(jobs.kind, jobs.mapping)
    took = jobs.took if took is None else took
    typical = medians(like, took, int(like.max()) + 1, chosen)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio: Floats = took / typical[like]
    return np.where(np.isfinite(ratio), ratio, np.nan)


def _slow(jobs: _Jobs) -> Floats:
    """(j,) how many times slower its core was than its like in that sixtieth of the window, 1 of most."""
    places = int(jobs.place.max()) + 1
    none = np.ones(len(jobs.took))
    if len(distinct(jobs.place)) < 2:
        return none
    first, last = int(jobs.start.min()), int(jobs.start.max())
    cell = ((jobs.start - first) / (last - first + 1) * CELLS).astype(np.int64)
    ratio = _ratio(jobs)
    by_cell = medians(cell * places + jobs.place, ratio, CELLS * places, ~np.isnan(ratio)).reshape(CELLS, places)
    ordered = np.sort(by_cell, axis=1)  # NaN last
    known = (~np.isnan(by_cell)).sum(axis=1)
    usual = ordered[np.arange(CELLS), np.maximum((known + 1) // 2 - 1, 0)]
    slower: Floats = (by_cell / usual[:, None])[cell, jobs.place]
    return np.where(slower >= SLOW_FROM, slower, none)


def _crowded(jobs: _Jobs, slow: Floats, beside: Floats) -> tuple[Floats, bool]:
    """(j,) how many times longer than alone jobs take with so many beside them; whether enough ran alone to tell."""
    many = np.minimum(np.rint(beside), _MOST_BESIDE).astype(np.int64)
    factor = np.ones(_MOST_BESIDE + 1)
    alone = beside <= 0.1
    ratio = _ratio(jobs, alone, jobs.took / slow)
    if not (many > 0).any():
        return factor[many], True
    level = np.where(alone, 0, np.maximum(many, 1))
    usual = medians(level, ratio, _MOST_BESIDE + 1, ~np.isnan(ratio))
    if np.isnan(usual[0]):
        return factor[many], False
    # Work that asks for little bandwidth suffers less: its own kind tells, where enough of it ran so.
    cell = jobs.kind * (_MOST_BESIDE + 1) + level
    own = medians(cell, ratio, (int(jobs.kind.max()) + 1) * (_MOST_BESIDE + 1), ~np.isnan(ratio))[cell]
    found = np.where(np.isnan(own), usual[level], own)
    return np.where(alone | ~(found > 1.0), 1.0, found), True
