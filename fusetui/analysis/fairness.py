"""Fairness across streams: was each served in proportion to what it asked for?

Work asks to be served from the moment it is enqueued until it ends, so a stream's demand is the time its work spent
in the system, done and open, and its ratio is service received / demand: 1 when nothing ever waited, 0.1 when work
spent nine tenths of its time in the queue. Jain's index J = (Σx)² / (n Σx²) of the ratios over the backlogged
streams is 1 when all were slowed down alike and 1/n when one alone was served. Backlogged: work waits now, or
waiting was at least 1 % of the demand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fusetui.analysis.imbalance import spread_of
from fusetui.analysis.snapshot import Fairness

BACKLOG_SHARE: Final = 0.01


def fairness_of(streams: Sequence[tuple[str, int, int, int]]) -> Fairness:
    """Fairness over streams given as (name, served_ns, demand_ns, waiting now)."""
    ratios = [
        (served / demand, name)
        for name, served, demand, waiting in streams
        if demand > 0 and (waiting > 0 or demand - served >= BACKLOG_SHARE * demand)
    ]
    if len(ratios) < 2:
        return Fairness(backlogged=len(ratios), why="fewer than two streams are backlogged")
    worst_ratio, worst = min(ratios)
    _, jain, why = spread_of([ratio for ratio, _ in ratios])
    return Fairness(jain, worst, worst_ratio, len(ratios), "no backlogged stream was served" if why else "")
