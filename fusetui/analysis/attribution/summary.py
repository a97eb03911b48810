"""Where the time went as plain data."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fusetui.analysis.attribution.parts import PARTS, STAGES, Cohort, TailTime


def tail_time_summary(time: TailTime | None) -> dict[str, Any] | None:
    """Where the time went; None where it is not known."""
    if time is None:
        return None
    cohorts = {"p95": time.tail, "p99": time.extreme, "median": time.median}
    return {
        "of": time.of,
        "items": time.items,
        "executions": time.executions,
        "cohorts": {name: None if cohort is None else _cohort(cohort) for name, cohort in cohorts.items()},
        "grown": PARTS[time.grown],
        "stages": [
            {"stage": name, **asdict(stage)} for name, stage in zip(STAGES, time.stages, strict=False)
        ],
        "first_stage": None if time.first is None else STAGES[time.first],
        "budget_of": time.budget_of,
        "notes": list(time.notes),
    }  # fmt: skip


def _cohort(cohort: Cohort) -> dict[str, Any]:
    return {
        "n": cohort.n,
        "from_ns": cohort.from_ns,
        "to_ns": cohort.to_ns,
        "latency_ns": cohort.latency_ns,
        "mean_ns": dict(zip(PARTS, cohort.mean_ns, strict=True)),
    }
