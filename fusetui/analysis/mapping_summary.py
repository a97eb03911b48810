"""The mapping measures as plain data."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fusetui.analysis.mapping import WAYS, MappingDetail

_RENAMED = {"fallback_ns": "fallback_cost_ns"}


def mapping_summary(detail: MappingDetail) -> dict[str, Any]:
    """Totals, buckets, drift, evidence of a metastable fallback and notes; NaN where a number is not known."""
    totals = {_RENAMED.get(name, name): value for name, value in asdict(detail.totals).items()}
    drift = detail.drift
    plain = None
    if drift is not None:
        shares = zip(drift.shapes, drift.expected.tolist(), drift.seen.tolist(), strict=True)
        plain = {
            **{name: getattr(drift, name) for name in ("against", "of", "index", "by_chance", "verdict")},
            "expected_n": drift.expected_n,
            "seen_n": drift.seen_n,
            "shares": [{"shape": shape, "expected": before, "seen": after} for shape, before, after in shares],
        }
    return {
        **totals,
        "largest_planned_batch": detail.largest_planned,
        "drift": plain,
        "metastable": None if detail.metastable is None else asdict(detail.metastable),
        "buckets": [_bucket(detail, at) for at in range(len(detail.shapes))],
        "mapping_notes": list(detail.notes),
    }


def _bucket(detail: MappingDetail, at: int) -> dict[str, Any]:
    return {
        "plan": detail.plans[at] or None,
        "shape": detail.shapes[at] or None,
        "executions": dict(zip(WAYS, detail.counts[at].tolist(), strict=True)),
        "time_ns": {way: round(ns) for way, ns in zip(WAYS, detail.time_ns[at].tolist(), strict=True)},
        "hit_share": float(detail.hit_share[at]),
        "padding": float(detail.padding[at]),
        "padding_n": int(detail.padding_n[at]),
        "padded": int(detail.padded[at]),
        "padded_ns": int(detail.padded_ns[at]),
        "compiles": int(detail.compiles[at]),
        "stall_ns": round(float(detail.stall_ns[at])),
        "accuracy": float(detail.accuracy[at]),
        "gain": float(detail.gain[at]),
        "fallback_cost_ns": float(detail.fallback_ns[at]),
    }
