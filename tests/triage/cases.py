"""Reported problems as small traces. Numbers are those of the list they come from."""

from __future__ import annotations

from typing import Final

from cases_honesty import HONESTY
from cases_mapping import MAPPING
from cases_metrics import METRICS
from cases_placement import PLACEMENT
from cases_queue import QUEUE

CASES: Final = {case.__name__: case for case in (*MAPPING, *QUEUE, *PLACEMENT, *HONESTY, *METRICS)}
