"""Where the latency moved: its additive parts (`attribution.parts`) before and after, of all items and of the tail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from fusetui.analysis.arrays import Ints
from fusetui.analysis.attribution.parts import PARTS
from fusetui.analysis.attribution.split import known_items, split
from fusetui.analysis.attribution.tailtime import MIN_ITEMS
from fusetui.analysis.expression.rows import Scope
from fusetui.analysis.intervals import Ratio, dependence, mean_ratio_of
from fusetui.analysis.quantiles import nearest_rank

TAIL: Final = 0.95
Cohort = Literal["all", "tail"]


@dataclass(frozen=True, slots=True)
class PartMove:
    """The mean of one part over a cohort; the differences of all parts add up to that of the mean latency."""

    cohort: Cohort
    part: str
    ratio: Ratio


def parts_of(before: Scope, after: Scope, *, level: float = 0.95) -> tuple[list[PartMove], str]:
    """Parts that either side has, largest difference first within a cohort; and why there are none.

    level holds for all parts of a cohort together. tail: items at or above the p95 of their own side
    """
    both = [_split(scope) for scope in (before, after)]
    if both[0] is None or both[1] is None:
        return [], f"where the time went needs {MIN_ITEMS} items whose begin is known, on both sides"
    found: list[PartMove] = []
    for cohort in ("all", "tail"):
        sides = [_chosen(parts, latency, cohort == "tail") for parts, latency in (both[0], both[1])]
        used = [number for number in range(len(PARTS)) if any(side[:, number].any() for side in sides)]
        strict = 1.0 - (1.0 - level) / max(len(used), 1)
        rows = []
        for k in used:
            worth = (_worth(*both[0], k), _worth(*both[1], k)) if cohort == "tail" else None
            ratio = mean_ratio_of(sides[0][:, k], sides[1][:, k], level=strict, worth=worth)
            rows.append(PartMove(cohort, PARTS[k], ratio))
        found += sorted(rows, key=lambda row: -abs((row.ratio.after or 0.0) - (row.ratio.before or 0.0)))
    return found, ""


def _split(scope: Scope) -> tuple[Ints, Ints] | None:
    same = scope.items is scope.executions
    items = known_items(scope.items)
    if len(items) < MIN_ITEMS:
        return None
    made = split(items, scope.executions, scope.reader, same)
    return made.parts, made.latency


def _worth(parts: Ints, latency: Ints, part: int) -> float:
    """How many items of the tail an independent one is worth, where the tail begins at a quantile of the same sample.

    The variance of its mean is that of the tail's items + q (mean - mean at the quantile)²: the quantile moves too
    (Hong and Liu, Management Science 55, 2009, of the mean beyond a quantile).
    """
    cut = nearest_rank(latency, [TAIL])[0]
    slow = np.flatnonzero(latency >= cut)
    values = parts[slow, part].astype(np.float64)
    spread = float(values.var())
    if spread == 0.0:
        return 1.0
    nearest = values[np.argsort(latency[slow], kind="stable")[: max(slow.size // 4, 1)]]
    moves = 1.0 + TAIL * float(values.mean() - nearest.mean()) ** 2 / spread
    return dependence(latency, TAIL) * moves


def _chosen(parts: Ints, latency: Ints, tail: bool) -> Ints:
    chosen = latency >= nearest_rank(latency, [TAIL])[0] if tail else np.ones(latency.size, np.bool_)
    return parts[chosen]
