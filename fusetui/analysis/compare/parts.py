"""Where the latency moved: its additive parts (`attribution.parts`) before and after, of all items and of the tail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fusetui.analysis.arrays import Ints
from fusetui.analysis.attribution.parts import PARTS
from fusetui.analysis.attribution.split import known_items, split
from fusetui.analysis.attribution.tailtime import MIN_ITEMS
from fusetui.analysis.expression.rows import Scope
from fusetui.analysis.intervals import Ratio, mean_ratio_of
from fusetui.analysis.quantiles import nearest_rank

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
        rows = [PartMove(cohort, PARTS[k], mean_ratio_of(sides[0][:, k], sides[1][:, k], level=strict)) for k in used]
        found += sorted(rows, key=lambda row: -abs((row.ratio.after or 0.0) - (row.ratio.before or 0.0)))
    return found, ""


def _split(scope: Scope) -> tuple[Ints, Ints] | None:
    same = scope.items is scope.executions
    items = known_items(scope.items)
    if len(items) < MIN_ITEMS:
        return None
    made = split(items, scope.executions, scope.reader, same)
    return made.parts, made.latency


def _chosen(parts: Ints, latency: Ints, tail: bool) -> Ints:
    chosen = latency >= nearest_rank(latency, [0.95])[0] if tail else np.ones(latency.size, np.bool_)
    return parts[chosen]
