"""What to decide: a bounded change with its owner, how to undo it, and the guardrail that says whether to."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any, Final

from fusetui.triage.finding import Finding
from fusetui.triage.owners import unowned
from fusetui.triage.report.material import Material
from fusetui.triage.report.reproduce import Commands
from fusetui.triage.rollout import Rollout, rollout_of

_MEASURED: Final = {
    "fallback": "share(fallback)", "imbalance": "imbalance", "queueing": "p99(queue_wait)", "batching": "p99(latency)",
}  # fmt: skip
MOST: Final = 8


def decisions(m: Material) -> list[dict[str, Any]]:
    """Of findings worth acting on, the same change once; then changes that the model has tried."""
    found: dict[str, dict[str, Any]] = {}
    for finding in m.triage.findings:
        if finding.severity == "info" or not finding.fix:
            continue
        entry = found.setdefault(finding.fix, _of(finding, m))
        if finding.id not in entry["findings"]:
            entry["findings"].append(finding.id)
    tried = [_tried(action, m) for action in (m.mapping or {}).get("actions", ())]
    return [*found.values(), *tried][:MOST]


def guardrail(m: Material, bottleneck: str | None) -> str:
    """A rule that `fusetui check` and `fusetui compare` judge; undo the change when it is breached."""
    slo_ns = m.header.slo_ns
    first = f"p99(latency) < {slo_ns / 1e6:.15g}ms" if slo_ns is not None else "change(p99(latency)) < 0%"
    measure = _MEASURED.get(bottleneck or "")
    if measure in (None, "p99(latency)"):
        return f"{first} and change(p50(latency)) < 5%"
    return f"{first} and change({measure}) < 0%"


def _guarded(m: Material, bottleneck: str | None) -> dict[str, str]:
    rule = guardrail(m, bottleneck)
    words = ("fusetui compare", shlex.quote(m.spec), "AFTER.arrows", *Commands(m).limits(), "--rule", shlex.quote(rule))
    return {"guardrail": rule, "guard_command": " ".join(words)}


def rollout(m: Material) -> Rollout:
    """Throughput, latency and quality together, and no objective breached."""
    breached = [finding.id for finding in m.triage.findings if finding.severity == "breach"]
    return rollout_of(m.comparison, m.quality, tuple(dict.fromkeys(breached)))


def owner_of(finding: Finding) -> str:
    """Who owns it, or what to add so that somebody does."""
    return finding.owner or unowned(finding.bottleneck or finding.topic)


def _of(finding: Finding, m: Material) -> dict[str, Any]:
    return {
        "change": finding.fix,
        "owner": owner_of(finding),
        "rollback": finding.rollback,
        **_guarded(m, finding.bottleneck),
        "findings": [],
        "expected": "not tried",
        "confidence": finding.confidence,
        "next": finding.next_action,
    }


def _tried(action: Mapping[str, Any], m: Material) -> dict[str, Any]:
    return {
        "change": action["title"],
        "owner": action["owner"] or unowned(action["bottleneck"]),
        "rollback": action["rollback"],
        **_guarded(m, action["bottleneck"]),
        "findings": [],
        "expected": {name: action[name] for name in ("before", "after", "change", "state")},
        "confidence": "likely",
        "next": action["why"],
    }
