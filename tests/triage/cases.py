"""Reported problems as small traces. Numbers are those of the list they come from; see NOT_COVERED for the others."""

from __future__ import annotations

from typing import Final

from cases_honesty import HONESTY
from cases_mapping import MAPPING
from cases_placement import PLACEMENT
from cases_queue import QUEUE

CASES: Final = {case.__name__: case for case in (*MAPPING, *QUEUE, *PLACEMENT, *HONESTY)}

NOT_COVERED: Final = {
    8: "p99 never below the first bucket: needs quantiles from foreign histogram buckets (a Prometheus source)",
    9: "p99 stays at the top bucket: needs quantiles from foreign histogram buckets (a Prometheus source)",
    10: "bucket bounds that change between scrapes: needs a Prometheus source",
    12: "metric families that vanish between versions: needs a Prometheus source",
}
"""What contract rows cannot express yet, and the source it needs."""
