"""The tail cohort against the median cohort, part by part."""

from __future__ import annotations

from typing import Final

import numpy as np

from fusetui.analysis.arrays import Bools
from fusetui.analysis.attribution.backlog import backlog_of
from fusetui.analysis.attribution.parts import REST, Cohort, TailTime
from fusetui.analysis.attribution.split import Split, known_items, split
from fusetui.analysis.attribution.stages import stage_budgets
from fusetui.analysis.columns import Columns, Reader
from fusetui.analysis.quantiles import nearest_rank
from fusetui.analysis.work import executions, requests

MIN_ITEMS: Final = 20
"""Below this the slowest twentieth is one item."""
_EXTREME: Final = 100
_MEDIAN: Final = (0.45, 0.55)


def tail_time(rows: Columns, reader: Reader, slo_ns: int | None) -> TailTime | None:
    """From the executions and requests of a window; None with fewer than MIN_ITEMS items whose wait is known."""
    ran, asked = executions(rows), requests(rows)
    same = len(asked) < MIN_ITEMS and len(ran) > 0
    items = known_items(ran if same else asked)
    if len(items) < MIN_ITEMS:
        return None
    found = split(items, ran, reader, same)
    latency, parts = found.latency, found.parts
    low, high, p95, p99 = nearest_rank(latency, (*_MEDIAN, 0.95, 0.99))
    stages, first, budget_of = stage_budgets(parts, latency, found.end, slo_ns)
    notes = found.notes
    if found.executions == 0 and (parts[:, REST] == latency).all():
        stages, first, notes = (), None, (*notes, "nothing but the whole latency is told: no stage is named")
    return TailTime(
        of="execution" if same else "request",
        items=len(items),
        executions=found.executions,
        tail=_cohort(found, latency >= p95),
        extreme=_cohort(found, latency >= p99) if len(items) >= _EXTREME else None,
        median=_cohort(found, (latency >= low) & (latency <= high)),
        stages=stages,
        first=first,
        budget_of=budget_of,
        notes=notes,
        backlog=None if same else backlog_of(items.rows.enqueue, found.end),
    )


def _cohort(found: Split, chosen: Bools) -> Cohort:
    mean, latency = np.mean(found.parts[chosen], axis=0), found.latency[chosen]
    bare = float(found.bare[chosen].mean())
    return Cohort(int(chosen.sum()), int(latency.min()), int(latency.max()), tuple(mean.tolist()), bare)
