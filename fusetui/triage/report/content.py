"""The whole report as plain data: what every form prints, and what `--json` is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, Final

from fusetui import __version__
from fusetui.analysis.attribution.both import with_causes
from fusetui.analysis.compare.plain import comparison_plain
from fusetui.analysis.summary import summarise_snapshot
from fusetui.triage.finding import Finding
from fusetui.triage.report.clean import clean, named
from fusetui.triage.report.decisions import decisions, owner_of, rollout
from fusetui.triage.report.figures import figures
from fusetui.triage.report.limits import limits
from fusetui.triage.report.material import Material
from fusetui.triage.report.moments import utc
from fusetui.triage.report.reproduce import Commands
from fusetui.triage.report.trend import first_bad, no_tail, timeline, trend
from fusetui.triage.report.words import ns
from fusetui.triage.rollout import rollout_plain

REPORT_VERSION: Final = 2
_MEASURES: Final = (
    "latency_ns", "queue_wait_ns", "service_ns", "depth", "throughput_per_s", "requests", "executions", "span_ns",
    "busy_ns", "open_waiting", "open_running", "oldest_open_ns",
)  # fmt: skip


def report_of(m: Material, rename: Callable[[str], str] = str) -> dict[str, Any]:
    """JSON-ready: times in ns on the trace clock, absent is None, every text safe to print.

    rename  sees every text, to take names out: `redact.Redactor`
    """
    summary = summarise_snapshot(m.snapshot)
    told: dict[str, Any] = {
        "report": "triage",
        "report_version": REPORT_VERSION,
        "fusetui": __version__,
        "trace": _trace(m),
        "window": _window(m),
        "verdict": verdict(m),
        "measures": {name: summary[name] for name in _MEASURES},
        "trend": trend(m),
        "timeline": timeline(m, m.header.clock),
        "attribution": with_causes(m.snapshot.tail_time, m.causes),
        "comparison": _comparison(m),
        "findings": [_finding(finding, m) for finding in m.triage.findings],
        "matrix": [asdict(row) for row in m.triage.matrix],
        "decisions": decisions(m),
        "decided": [asdict(one) for one in m.decided],
        "bookmarks": [asdict(mark) for mark in m.bookmarks],
        "rollout": rollout_plain(rollout(m)),
        "mapping": None if m.mapping is None else _mapping(m.mapping, Commands(m).retune()),
        "limits": limits(m),
    }
    told["figures"] = figures(m, told)
    found: dict[str, Any] = clean(told, rename)
    return found


def verdict(m: Material) -> dict[str, Any]:
    """state: breach, warn, quiet or "not enough data"; the first finding says why."""
    first = next((finding for finding in m.triage.findings if finding.severity != "info"), None)
    named_ = m.triage.first
    bad_ns, how = first_bad(m)
    owned = named_ or first
    if not m.triage.judged:
        state, sentence = "not enough data", f"not enough data to judge: {m.triage.why_not}"
    elif first is None and bad_ns is not None:
        # Rules may lack the columns to say why; a tail that grew is not quiet for that.
        state, sentence = "warn", f"the tail is bad since {utc(bad_ns, m.header.clock)} and no rule says why: {how}"
    elif first is None:
        calm = no_tail(m) or "no rule found anything above a note"
        state, sentence = "quiet", f"nothing to act on: {calm}, {_tail(m)}"
    else:
        state, sentence = first.severity, first.sentence
    return {
        "state": state,
        "sentence": sentence,
        "bottleneck": None if named_ is None else named_.bottleneck,
        "owner": "" if owned is None else owner_of(owned),
        "next": "" if first is None else first.next_action,
    }


def _tail(m: Material) -> str:
    latency = m.snapshot.latency
    name, value = ("p95", latency.p95_ns) if latency.p99_ns is None else ("p99", latency.p99_ns)
    return f"{name} of {m.snapshot.latency_of} latency {'≥ ' if name in latency.at_least else ''}{ns(value)}"


def _trace(m: Material) -> dict[str, Any]:
    header = m.header
    return {
        "spec": m.spec,
        "files": [asdict(file) for file in m.files],
        "rows": m.rows,
        "source": header.source,
        "simulated": header.source == "simulated",
        "clock": header.clock,
        "host": header.host,
        "contract_version": header.version,
        "slo_ns": header.slo_ns,
        "hardware": named(header.hardware),
        "build": named(header.build),
        "plans": named(header.plans),
    }


def _window(m: Material) -> dict[str, Any]:
    snapshot, clock = m.snapshot, m.header.clock
    return {
        "from_ns": snapshot.window_start_ns,
        "to_ns": snapshot.now_ns,
        "from": utc(snapshot.window_start_ns, clock),
        "to": utc(snapshot.now_ns, clock),
        "whole_trace": m.window_ns is None and not m.filter,
        "filter": m.filter,
    }


def _finding(finding: Finding, m: Material) -> dict[str, Any]:
    found = asdict(finding)
    found["owner"] = owner_of(finding)
    found["since"] = None if finding.since_ns is None else utc(finding.since_ns, m.header.clock)
    found["replay"], found["slice_command"] = Commands(m).replay(finding.slice), Commands(m).slice(finding.slice)
    return found


def _comparison(m: Material) -> dict[str, Any] | None:
    if m.comparison is None:
        return None
    kinds = {name: total.measure.kind for name, total in m.comparison.totals.items()}
    told = comparison_plain(m.comparison)
    told["totals"] = [{**total, "kind": kinds[total["measure"]]} for total in told["totals"]]
    return {"before": m.baseline, "command": Commands(m).compare(), **told}


def _mapping(report: Mapping[str, Any], command: str) -> dict[str, Any]:
    """Without the header, and with the names of plans as values."""
    offline = report["offline_profile"]
    return {
        "command": command,
        "offline": {**offline, "described": named(offline["described"])},
        "telemetry": report["runtime_telemetry"],
        "model": report["model"],
        **{key: report[key] for key in ("actions", "instead", "rejected", "unverified", "together")},
    }
