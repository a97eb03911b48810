"""Time and cause as plain data; imports the simulation, which plain snapshots do without."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fusetui.analysis.attribution.causes import Causes, CausesAt
from fusetui.analysis.attribution.columns import two_columns
from fusetui.analysis.attribution.parts import TailTime
from fusetui.analysis.attribution.summary import tail_time_summary


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


def _causes_at(at: CausesAt) -> dict[str, Any]:
    shares = dict(zip(at.attribution.drivers, map(float, at.attribution.shares), strict=True))
    return {
        "as_is_ns": at.all_ns,
        "without_all_ns": at.none_ns,
        "drivers": [{**asdict(row), "share": shares[row.name]} for row in at.rows],
        "named": at.named or None,
        "together": [{"drivers": [a, b], "ns": ns} for a, b, ns in at.together],
    }
