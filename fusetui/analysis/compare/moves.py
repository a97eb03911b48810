"""Quantiles before and after."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from fusetui.analysis.expression.measures import DURATION_FIELDS
from fusetui.analysis.expression.rows import Scope
from fusetui.analysis.intervals import Ratio, quantile_ratio

QUANTILES: Final = (0.5, 0.95, 0.99, 0.999)


@dataclass(frozen=True, slots=True)
class Move:
    """One quantile of one duration; `moved` at a level that holds for all quantiles of the field together."""

    field: str
    q: float
    ratio: Ratio
    moved: int


def level_name(q: float) -> str:
    """p50, p99.9."""
    return f"p{round(100.0 * q, 4):g}"


def moves_of(
    before: Scope, after: Scope, *, level: float = 0.95, seed: int = 0, independent: bool = False
) -> list[Move]:
    """Quantiles of latency, queue wait, service and launch, where either side has any.

    The intervals hold with `level` each; `moved` asks for 1 - (1 - level) / k, where k quantiles of the duration have
    intervals.
    """
    sides = {field: (before.durations(field)[0], after.durations(field)[0]) for field in DURATION_FIELDS}
    # Without a queue wait latency is service: one of them is enough.
    if not any(side.size for side in sides["queue_wait"]) and before.items is before.executions:
        sides.pop("service")
    known = [
        (field, q, quantile_ratio(old, new, q, level=level, seed=seed, independent=independent))
        for field, (old, new) in sides.items()
        if old.size or new.size
        for q in QUANTILES
    ]
    judged = Counter(field for field, _, ratio in known if not ratio.why)
    found = []
    for field, q, ratio in known:
        moved = 0
        if ratio.moved:
            strict = 1.0 - (1.0 - level) / judged[field]
            moved = quantile_ratio(*sides[field], q, level=strict, seed=seed, independent=independent).moved
        found.append(Move(field, q, ratio, moved))
    return found
