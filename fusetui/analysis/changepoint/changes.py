"""Changes of a tail within one trace: when, how much, and what was marked or first seen at that time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from fusetui.analysis.arrays import Codes, Ints
from fusetui.analysis.changepoint.e_divisive import change_points
from fusetui.analysis.changepoint.series import log_p95, nearest_rank_of
from fusetui.analysis.snapshot import Mark

MIN_ITEMS: Final = 400
_PER: Final = 20
_MOST_WINDOWS: Final = 200
_NEAR_WINDOWS: Final = 2
_MOST_MARKS: Final = 3


@dataclass(frozen=True, slots=True)
class Change:
    """A confirmed change of p95.

    at_ns    end of the first item of the first window of the new part: the first bad moment, where p95 rose
    within_ns  length of that window: how exact the date is
    before_ns, after_ns  p95 of the parts before and after it, up to the next changes
    p        of the permutation test
    marks    marks and first sights at most two windows away, nearest first
    """

    at_ns: int
    within_ns: int
    before_ns: int
    after_ns: int
    p: float
    marks: tuple[Mark, ...] = ()

    @property
    def ratio(self) -> float | None:
        """p95 after over p95 before."""
        return self.after_ns / self.before_ns if self.before_ns else None


def changes_of(ends: Ints, items: Ints, marks: Sequence[Mark] = (), *, seed: int = 0) -> tuple[list[Change], str]:
    """(changes in order of time, why none can be told) of durations with their ends (n,), in the order of ends."""
    n = items.size
    if n < MIN_ITEMS:
        return [], f"changes over time need n ≥ {MIN_ITEMS}, have {n:,}"
    per = max(_PER, math.ceil(n / _MOST_WINDOWS))
    series = log_p95(items, per)
    block = max(1, round(series.size ** (1 / 3) / 2))
    cuts = change_points(series, block=block, seed=seed)
    edges = [0, *(cut * per for cut, _ in cuts), n]
    parts = [nearest_rank_of(items[a:b], 0.95) for a, b in pairwise(edges)]
    found = []
    for number, (cut, p) in enumerate(cuts):
        first = cut * per
        at, within = int(ends[first]), int(ends[min(first + per, n) - 1]) - int(ends[first])
        near = _near(marks, at, _NEAR_WINDOWS * max(within, 1))
        found.append(Change(at, within, round(parts[number]), round(parts[number + 1]), p, near))
    return found, ""


def first_seen(codes: Codes, ends: Ints, words: Sequence[str], what: str) -> list[Mark]:
    """A mark for each word (plans, say) whose first row, by its end (n,), is not at the very beginning."""
    used, first = np.unique(codes, return_index=True)
    begin = int(ends[0]) if ends.size else 0
    return [
        Mark(int(ends[row]), f"{what} {words[code]} first seen")
        for code, row in zip(used.tolist(), first.tolist(), strict=True)
        if code >= 0 and int(ends[row]) > begin
    ]


def _near(marks: Sequence[Mark], at_ns: int, reach_ns: int) -> tuple[Mark, ...]:
    near = [mark for mark in marks if abs(mark.at_ns - at_ns) <= reach_ns]
    return tuple(sorted(near, key=lambda mark: abs(mark.at_ns - at_ns))[:_MOST_MARKS])
