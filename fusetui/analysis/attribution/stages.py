"""Which stage of the pipeline left its budget first."""

from __future__ import annotations

from typing import Final

import numpy as np

from fusetui.analysis.arrays import Floats, Ints
from fusetui.analysis.attribution.parts import STAGE_OF, STAGES, BudgetOf, StageBudget

MIN_SLICES: Final = 8
MOST_SLICES: Final = 60
PER_SLICE: Final = 40
"""Items a slice has at least, so that its slowest twentieth is two."""
SLOWEST: Final = 0.05
SPREADS: Final = 6.0
_TO_SIGMA: Final = 1.4826 / 2**0.5
"""Median absolute difference of two draws to standard deviation, of a normal distribution."""
_FLOOR: Final = 0.1
PERSISTS: Final = 2


def stage_budgets(
    parts: Ints, latency: Ints, end: Ints, slo_ns: int | None
) -> tuple[tuple[StageBudget, ...], int | None, BudgetOf]:
    """(budgets by STAGES, the stage that left its budget first, what budgets are of); () of too few items.

    Items are cut in time order into slices of equal numbers. A slice is what its slowest twentieth spent in each
    stage, on average. Calm slices are the quarter with the shortest tails; a budget is their median and six spreads
    from slice to slice (a tenth of the latency at least, so that nothing is found in what takes next to nothing), or
    with an objective that objective shared out as they spend it, at least a tenth: of a slice within the objective no
    stage is over, and where all are, what left its calm budget is told. A stage has left its budget in the first of
    two slices in a row above it, when the first of its slowest that took more ended. Of several that left at once it
    is the one furthest over.
    """
    slices = min(len(latency) // PER_SLICE, MOST_SLICES)
    budget_of: BudgetOf = "calm" if slo_ns is None else "slo"
    if slices < MIN_SLICES:
        return (), None, budget_of
    spent, slow, which = _slices(parts, latency, end, slices)
    budget = _budget(spent, slo_ns)
    over = spent > budget
    if slo_ns is not None:
        over &= spent.sum(axis=1, keepdims=True) > slo_ns
    stays = over[:-1] & over[1:]
    left = np.where(stays.any(axis=0), stays.argmax(axis=0), slices)

    def left_ns(stage: int) -> int | None:
        """When the first of the slowest that took more ended, in the slice in which the stage left."""
        there = slow[which == left[stage]]
        took = parts[there][:, [part for part, of in enumerate(STAGE_OF) if of == stage]].sum(axis=1)
        return int(end[there][took > budget[stage]].min()) if there.size else None

    found = tuple(StageBudget(float(budget[i]), float(spent[:, i].max()), left_ns(i)) for i in range(len(STAGES)))
    first = int(left.min())
    if first == slices:
        calm = stage_budgets(parts, latency, end, None) if slo_ns is not None else None
        return calm if calm is not None and calm[1] is not None else (found, None, budget_of)
    excess = np.where(left == first, spent[first : first + PERSISTS].mean(axis=0) - budget, -np.inf)
    return found, int(excess.argmax()), budget_of


def _slices(parts: Ints, latency: Ints, end: Ints, slices: int) -> tuple[Floats, Ints, Ints]:
    """([slices, STAGES] mean ns of the slowest, (s,) where those are among the items, (s,) of which slice)."""
    order = np.argsort(end, kind="stable")
    edges = np.arange(slices + 1) * len(order) // slices
    which = np.repeat(np.arange(slices), np.diff(edges))
    ranked = np.lexsort((-latency[order], which))
    rank = np.arange(len(order)) - edges[which]
    slow = ranked[rank < np.maximum(np.diff(edges) * SLOWEST, 2)[which]]
    rows = order[slow]
    n = np.bincount(which[slow], minlength=slices)
    spent = np.zeros((slices, len(STAGES)))
    for part, stage in enumerate(STAGE_OF):
        spent[:, stage] += np.bincount(which[slow], parts[rows, part], slices) / n
    return spent, rows, which[slow]


def _budget(spent: Floats, slo_ns: int | None) -> Floats:
    total = spent.sum(axis=1)
    calm = spent[np.argsort(total, kind="stable")[: len(total) // 4]]
    usual = np.median(calm, axis=0)
    if slo_ns is not None:
        share: Floats = usual / usual.sum() if usual.sum() > 0 else np.full(len(STAGES), 1.0 / len(STAGES))
        return slo_ns * np.maximum(share, _FLOOR)
    # A lasting change is one step among many small ones: it does not widen the spread that has to show it.
    spread = _TO_SIGMA * np.median(np.abs(np.diff(spent, axis=0)), axis=0)
    return usual + np.maximum(SPREADS * spread, _FLOOR * float(calm.sum(axis=1).mean()))
