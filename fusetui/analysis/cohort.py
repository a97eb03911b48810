"""Where the time of the slowest work went: queue or service, next to the median work."""

from __future__ import annotations

from typing import Final

from fusetui.analysis.quantiles import nearest_rank
from fusetui.analysis.snapshot import LatencyOf, TailCohort
from fusetui.analysis.work import Work

MIN_ITEMS: Final = 20
"""Below this a cohort of the slowest 5 % is one item."""


def cohort_of(work: Work, of: LatencyOf) -> TailCohort | None:
    """Means over items with latency >= p95 and over items <= p50; wait and service add up to the latency.

    None with fewer than MIN_ITEMS items whose wait is known.
    """
    known = work.waited & (work.raw >= 0)
    latency = work.latency[known]
    if latency.size < MIN_ITEMS:
        return None
    p50, p95 = nearest_rank(latency, (0.5, 0.95))
    wait, service = work.wait[known], work.service[known]
    tail, median = latency >= p95, latency <= p50
    return TailCohort(
        of=of,
        n=int(tail.sum()),
        queue_ns=float(wait[tail].mean()),
        service_ns=float(service[tail].mean()),
        median_queue_ns=float(wait[median].mean()),
        median_service_ns=float(service[median].mean()),
    )
