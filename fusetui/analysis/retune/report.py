"""The closed-loop mapping report as plain data: offline profile, runtime telemetry, retuning actions."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from fusetui.analysis.retune.propose import Retuned
from fusetui.analysis.retune.verify import NAMES, Proposal
from fusetui.analysis.twin.model import Tail, Twin
from fusetui.telemetry.header import Header

MOST_BUCKETS: Final = 10
_MAPPING: Final = (
    "planned", "adapted", "fallback", "padding", "padded", "compiles", "stall_ns", "accuracy", "gain",
    "fallback_cost_ns", "largest_planned_batch", "drift",
)  # fmt: skip


def report_of(
    header: Header,
    summary: Mapping[str, Any],
    twin: Twin | str,
    retuned: Retuned | None,
    more: Sequence[Proposal],
    offline: Mapping[str, Any],
    silent: Mapping[str, Any] | None,
    notes: Sequence[str],
    command: str,
) -> dict[str, Any]:
    """JSON-ready; times in ns, absent is None.

    twin     or why there is none; more: proposals that need none
    silent   evidence of a fallback that feeds itself, see `silent`
    command  what opens the trace, to which a slice's times and filter are added
    """
    begin = int(summary["now_ns"]) - int(summary["window_ns"])
    found = [*more, *(() if retuned is None else (*retuned.verified, *retuned.unverified))]

    def told(proposals: Sequence[Proposal]) -> list[dict[str, Any]]:
        return [_proposal(p, begin, command) for p in proposals]

    return {
        "report": "closed-loop mapping",
        "simulated": header.source == "simulated",
        "header": asdict(header.redacted()),
        "window": {"from_ns": begin, "to_ns": int(summary["now_ns"]), "requests": summary["requests"],
                   "executions": summary["executions"], "filter": summary["filter"]},
        "offline_profile": dict(offline),
        "runtime_telemetry": _telemetry(summary, silent),
        "model": _model(twin),
        "actions": told([p for p in found if p.state in ("verified", "measured")]),
        "instead": told(() if retuned is None else retuned.instead),
        "together": None if retuned is None else _tail(retuned.together_ns),
        "rejected": told(() if retuned is None else retuned.rejected),
        "unverified": told([p for p in found if p.state == "unverified"]),
        "notes": [*notes, *(twin.notes if isinstance(twin, Twin) else ())],
    }  # fmt: skip


def _model(twin: Twin | str) -> dict[str, Any]:
    if isinstance(twin, str):
        return {"twin": False, "why_not": twin, "fit": None}
    fit = twin.fit
    return {
        "twin": True,
        "exact": twin.exact,
        "fit": {
            "n": fit.n, "good": fit.good, "text": fit.text, "measured": _tail(fit.measured_ns),
            "simulated": _tail(fit.simulated_ns),
        },
    }  # fmt: skip


def _tail(tail: Tail | None) -> dict[str, int | None] | None:
    return None if tail is None else {f"{name}_ns": value for name, value in zip(NAMES, tail, strict=True)}


def _telemetry(summary: Mapping[str, Any], silent: Mapping[str, Any] | None) -> dict[str, Any]:
    mapping = summary["mapping"]
    return {
        "latency_ns": summary["latency_ns"],
        "queue_wait_ns": summary["queue_wait_ns"],
        "throughput_per_s": summary["throughput_per_s"],
        "depth": summary["depth"],
        **{name: mapping[name] for name in _MAPPING},
        "metastable": silent,
        "buckets": mapping["buckets"][:MOST_BUCKETS],
    }


def _proposal(proposal: Proposal, begin: int, command: str) -> dict[str, Any]:
    action = proposal.action
    shown = action.slice
    at = [f"{max(ns - begin, 0) / 1e9:.3f}s" for ns in (shown.from_ns, shown.to_ns)]
    only = f" --filter {shlex.quote(shown.filter)}" if shown.filter else ""
    replay = f"{command} --from {at[0]} --to {at[1]}{only}"
    return {
        "title": action.title,
        "state": proposal.state,
        "reason": proposal.reason,
        "bottleneck": action.bottleneck,
        "owner": action.owner,
        "stream": action.stream or None,
        "why": action.why,
        "before": _tail(proposal.before_ns),
        "after": _tail(proposal.after_ns),
        "change": dict(zip(NAMES, proposal.change, strict=True)),
        "harm": [asdict(harm) for harm in proposal.harm],
        "switching_cost": asdict(action.cost),
        "evidence": {**asdict(shown), "replay": replay},
        "does_not_prove": list(action.does_not_prove),
        "rollback": action.rollback,
        "detail": list(action.detail),
    }
