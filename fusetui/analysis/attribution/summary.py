"""Both columns as plain data."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fusetui.analysis.attribution.causes import Causes, CausesAt
from fusetui.analysis.attribution.columns import two_columns
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


def with_causes(time: TailTime | None, causes: Causes | str) -> dict[str, Any]:
    """Both: `causes`, and `columns` with a row of time and cause each for p95 and p99; empty where one is missing."""
    told = tail_time_summary(time) or {}
    told["causes"] = causes_summary(causes)
    columns = {}
    if time is not None:
        for name in ("p95", "p99"):
            at = None if isinstance(causes, str) else getattr(causes, name)
            columns[name] = [asdict(row) for row in two_columns(time, at, extreme=name == "p99")]
    return {**told, "columns": columns}


def causes_summary(causes: Causes | str) -> dict[str, Any]:
    """What caused it, by the model; `why` where there are no causes."""
    if isinstance(causes, str):
        return {"of": "model", "why": causes}
    return {
        "of": "model",
        "why": "",
        "fit": causes.fit,
        "scale": causes.scale,
        "n": causes.n,
        "runs": causes.runs,
        "p95": _causes_at(causes.p95),
        "p99": _causes_at(causes.p99),
        "left_out": list(causes.left_out),
        "notes": list(causes.notes),
    }


def _cohort(cohort: Cohort) -> dict[str, Any]:
    return {
        "n": cohort.n,
        "from_ns": cohort.from_ns,
        "to_ns": cohort.to_ns,
        "latency_ns": cohort.latency_ns,
        "mean_ns": dict(zip(PARTS, cohort.mean_ns, strict=True)),
    }


def _causes_at(at: CausesAt) -> dict[str, Any]:
    shares = dict(zip(at.attribution.drivers, map(float, at.attribution.shares), strict=True))
    return {
        "as_is_ns": at.all_ns,
        "without_all_ns": at.none_ns,
        "drivers": [{**asdict(row), "share": shares[row.name]} for row in at.rows],
        "named": at.named or None,
        "together": [{"drivers": [a, b], "ns": ns} for a, b, ns in at.together],
    }
