"""The same work in several ways: how close the plan was to the best, what adapting gained, what falling back cost.

Definitions in `mapping`. All arrays per cell (C,): executions with the same name, group, shape asked for, plan and
mapping; t is their nearest-rank median.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from fusetui.analysis.arrays import Bools, Codes, Floats, Ints
from fusetui.analysis.columns import Columns
from fusetui.telemetry.schema import ADAPTED, FALLBACK, MAPPINGS, PLANNED

MIN_RUNS: Final = 5
"""Runs from which on the median of a way is believed."""
_TABLE: Final = 1 << 22
_PLANNED, _ADAPTED, _FALLBACK = (MAPPINGS.index(name) for name in (PLANNED, ADAPTED, FALLBACK))


@dataclass(frozen=True, slots=True)
class Ways:
    """row: one execution of the cell; n, t: how many, median ns; best: of any way of the same work, NaN: one way only;
    static: of the planned way of the same work, NaN: none; rival: of the best way that is no fallback, NaN: none."""

    row: Ints
    mapping: Codes
    n: Ints
    t: Floats
    best: Floats
    static: Floats
    rival: Floats

    @property
    def planned(self) -> Bools:
        """Cells that mapping accuracy is of."""
        return np.asarray((self.mapping == _PLANNED) & ~np.isnan(self.best))

    @property
    def adapted(self) -> Bools:
        """Cells that adaptation gain is of."""
        return np.asarray((self.mapping == _ADAPTED) & ~np.isnan(self.static))

    @property
    def fallback(self) -> Bools:
        """Cells that fallback cost is of."""
        return np.asarray((self.mapping == _FALLBACK) & ~np.isnan(self.rival))


def dense(*columns: Codes) -> Ints:
    """Ids 0, 1, … of the different rows of columns (n,) of integers below 2^31, those below 0 all one, in no
    particular order."""
    ids = np.maximum(columns[0], -1).astype(np.int64) + 1
    for column in columns[1:]:
        if column.strides != (0,):
            code = np.maximum(column, -1).astype(np.int64) + 1
            ids = _compact(ids * (int(code.max()) + 1) + code)
    return _compact(ids)


def _some(column: Codes, rows: Ints) -> Codes:
    """The column of some rows; one value for all (stride 0) stays so."""
    return column[: len(rows)] if column.strides == (0,) else column[rows]


def first_of(ids: Ints) -> Ints:
    """The first row of each dense id."""
    first = np.zeros(int(ids.max()) + 1, np.int64)
    first[ids[::-1]] = np.arange(len(ids))[::-1]
    return first


def _compact(ids: Ints) -> Ints:
    size = int(ids.max()) + 1
    if size > _TABLE:
        return np.unique(ids, return_inverse=True)[1].reshape(-1)
    used = np.zeros(size, np.int64)
    used[ids] = 1
    return (np.cumsum(used) - 1)[ids]


def ways_of(ran: Columns, shape: Codes) -> Ways | None:
    """Ways among executions (n,) with the shape asked for; None where none has a mapping."""
    chosen = ran.mapping >= 0
    if not chosen.any():
        return None
    rows = np.flatnonzero(chosen)
    asked = shape[rows]
    work = dense(_some(ran.name, rows), _some(ran.group, rows), asked)
    cell = dense(work, _some(ran.plan, rows), ran.mapping[rows])
    n, t = _medians(cell, (ran.end - ran.start)[rows])
    first = first_of(cell)
    mapping, plan, group = ran.mapping[rows[first]], ran.plan[rows[first]], ran.group[rows[first]]
    good = n >= MIN_RUNS
    as_named = _Rivals(work[first], good, mapping, t)
    grouped = good & (plan >= 0) & (group >= 0)
    kind = dense(plan, group, asked[first])
    grouped &= _alone(dense(kind, mapping))
    as_group = _Rivals(kind, grouped, mapping, t)
    return Ways(
        row=rows[first],
        mapping=mapping,
        n=n,
        t=t,
        best=np.fmin(as_named.best, as_group.best),
        static=np.fmin(as_named.static, as_group.static),
        rival=np.fmin(as_named.rival, as_group.rival),
    )


class _Rivals:
    """Best times of the same work (C,): cells of one `work` id, `good` ones only."""

    def __init__(self, work: Ints, good: Bools, mapping: Codes, t: Floats) -> None:
        size = int(work.max()) + 1
        several = np.bincount(work[good], minlength=size) >= 2
        self.best = np.where(good & several[work], _least(work, good, t, size), np.nan)
        self.static = np.where(good, _least(work, good & (mapping == _PLANNED), t, size), np.nan)
        self.rival = np.where(good, _least(work, good & (mapping != _FALLBACK), t, size), np.nan)


def _least(work: Ints, chosen: Bools, t: Floats, size: int) -> Floats:
    """The smallest t of the chosen cells with the same work (C,), NaN without any."""
    least = np.full(size, np.inf)
    np.minimum.at(least, work[chosen], t[chosen])
    found: Floats = least[work]
    return np.where(np.isinf(found), np.nan, found)


def _alone(way: Ints) -> Bools:
    """Cells that are the only one of their way: the group ran under one name in it."""
    alone: Bools = np.bincount(way)[way] == 1
    return alone


def _medians(cell: Ints, service: Ints) -> tuple[Ints, Floats]:
    """Count and nearest-rank median of each cell."""
    order = np.argsort(service, kind="stable")
    n = np.bincount(cell)
    narrow = np.uint16 if len(n) <= 1 << 16 else np.int64
    order = order[np.argsort(cell[order].astype(narrow), kind="stable")]
    first = np.cumsum(n) - n
    middle = first + (n + 1) // 2 - 1
    return n, np.maximum(service[order[middle]], 0).astype(np.float64)
