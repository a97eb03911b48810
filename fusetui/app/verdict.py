"""The sentence on line two: is it well, since when not, where the time goes, and what is not known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from fusetui.analysis.snapshot import Snapshot, Tail
from fusetui.app import fmt
from fusetui.app.finding_text import by_model, in_verdict
from fusetui.app.gauges import in_words, only_counters

if TYPE_CHECKING:
    from fusetui.analysis.attribution.causes import Causes
    from fusetui.triage.finding import Finding, Triage

Severity = Literal["ok", "calm", "warn", "breach", "unknown"]

_QUEUE_STAGE = 1
_TROUBLE = {"reconnecting": "warn", "hung": "breach", "lost": "breach", "failed": "breach"}


@dataclass(frozen=True, slots=True)
class Verdict:
    """severity: ok and breach only against an objective, calm without one; text: one line, most important first.

    first_stage  the pipeline stage (0..3) that left its budget first, None: none did or it is not known
    finding      what it tells of; hint: the key that proves it, or that leads back
    """

    severity: Severity
    text: str
    first_stage: int | None = None
    finding: Finding | None = None
    hint: str = ""


def verdict(snapshot: Snapshot | None, triage: Triage | None = None, causes: Causes | None = None) -> Verdict:
    """What the numbers say, against the objective at p99 in the header if there is one; the top finding first.

    causes  of the window, for what p99 would be without it
    """
    says = _of_numbers(snapshot)
    finding = top_finding(triage)
    if snapshot is None or finding is None or _trouble(snapshot) is not None:
        return says
    severity, head = _headline(snapshot, snapshot.header.slo_ns)
    model = "model: " if by_model(finding, causes) else ""
    losses = "".join(f"; {loss}" for loss in _losses(snapshot))
    first = says.first_stage if says.first_stage is not None else _first_stage(snapshot)
    if severity == "breach":
        text = f"{head}: {model}{in_verdict(finding, causes)}{losses}"
        return replace(says, text=text, first_stage=first, finding=finding)
    told = finding.sentence if finding.bottleneck is None else f"{finding.sentence}{_where(snapshot, finding)}"
    severity = "breach" if finding.severity == "breach" else "warn"
    return Verdict(severity, f"{model}{told}; {head}{losses}", first, finding)


def top_finding(triage: Triage | None) -> Finding | None:
    """What to look at first: a bottleneck, else whatever is above info and more than that the objective is missed."""
    if triage is None or not triage.judged:
        return None
    others = (one for one in triage.findings if one.severity != "info" and one.topic != "tail")
    return triage.first or next(others, None)


def _where(snapshot: Snapshot, finding: Finding) -> str:
    """` (compile plan, since 03:10:12Z)`, without what the sentence says itself."""
    since = "" if finding.since_ns is None else fmt.moment(finding.since_ns, 3600e9, snapshot.header.clock).strip()
    told = [finding.stage or "", f"since {since}" if since and since not in finding.sentence else ""]
    return f" ({', '.join(word for word in told if word)})" if any(told) else ""


def _of_numbers(snapshot: Snapshot | None) -> Verdict:
    """What the measures say by themselves."""
    if snapshot is None:
        return Verdict("unknown", "no data yet")
    slo_ns = snapshot.header.slo_ns
    trouble = _trouble(snapshot)
    severity, head = _headline(snapshot, slo_ns)
    notes = [*_queue(snapshot), *_contradictions(snapshot), *_placement(snapshot), *_unknown(snapshot)]
    losses = _losses(snapshot)
    if trouble is not None:
        return Verdict(trouble[0], "; ".join((trouble[1], head)))
    if severity in ("ok", "calm") and (losses or _contradictions(snapshot)):
        severity = "warn"
    if severity == "unknown":
        return Verdict(severity, "; ".join((head, *losses, *notes)))
    calm = ["nothing lost"]
    tail = [] if slo_ns else ["no SLO set"]
    text = f"{head}: " + "; ".join((*losses, *notes, *([] if losses else calm), *tail))
    return Verdict(severity, text, _first_stage(snapshot) if severity == "breach" or slo_ns is None else None)


def _first_stage(snapshot: Snapshot) -> int | None:
    """The stage that left its budget first. Where budgets are not known: the queue, when there is an objective and
    most of what the tail has over the median was waited there; service alone names no stage."""
    if snapshot.tail_time is not None and snapshot.tail_time.stages:
        return snapshot.tail_time.first
    if snapshot.header.slo_ns is None:
        return None
    cohort = snapshot.cohort
    if cohort is None:
        return None
    queue = cohort.queue_ns - cohort.median_queue_ns
    service = cohort.service_ns - cohort.median_service_ns
    return _QUEUE_STAGE if queue > 0 and queue > service else None


def in_trouble(snapshot: Snapshot | None) -> bool:
    """Whether the source itself needs attention, before anything it told."""
    return snapshot is not None and _trouble(snapshot) is not None


def _trouble(snapshot: Snapshot) -> tuple[Severity, str] | None:
    health = snapshot.health
    level = _TROUBLE.get(health.state)
    if level is None:
        return None
    detail = health.last_error or health.detail
    text = f"source {health.state}: {detail}" if detail else f"source {health.state}"
    return ("breach" if level == "breach" else "warn"), text


def _headline(snapshot: Snapshot, slo_ns: int | None) -> tuple[Severity, str]:
    latency = snapshot.latency
    if latency.n == 0:
        return "unknown", _nothing(snapshot)
    if slo_ns is None:
        return "calm", f"{_noun(snapshot)} {_quantiles(latency)}"
    over = next(
        (
            (name, ns)
            for name, ns in (("p99", latency.p99_ns), ("p95", latency.p95_ns), ("p50", latency.p50_ns))
            if ns is not None
        ),
        None,
    )
    scale, unit = fmt.duration_unit(slo_ns)
    slo = f"{fmt.short(slo_ns / scale)} {unit}"
    if over is None:
        return "unknown", f"{_noun(snapshot)}: too few samples to hold against SLO {slo} ({_why(latency)})"
    name, ns = over
    if ns > slo_ns:
        return "breach", f"{name} {_value(latency, name, ns)} over SLO {slo}{_when(snapshot, slo_ns)}"
    if name != "p99":
        return "unknown", f"{name} {_value(latency, name, ns)} under SLO {slo}, but {_why(latency)}"
    if "p99" in latency.at_least:
        return "unknown", f"p99 ≥ {_text(ns)}, SLO {slo}: work still open may pass it"
    return "ok", f"{_noun(snapshot)} {_quantiles(latency)} under SLO {slo}"


def _why(latency: Tail) -> str:
    """Why p99 is not told; what is said of rarer quantiles does not matter here."""
    return latency.why.partition(";")[0] or "p99 is not known"


def _nothing(snapshot: Snapshot) -> str:
    if snapshot.filter_text:
        return "nothing matches the filter in this window"
    waiting = (snapshot.open_waiting or 0) + (snapshot.open_running or 0)
    if waiting:
        return f"nothing finished in this window; {waiting} still open"
    return in_words(snapshot) if only_counters(snapshot) else "no executions and no requests in this window"


def _noun(snapshot: Snapshot) -> str:
    return "requests" if snapshot.latency_of == "request" else "executions"


def _quantiles(tail: Tail) -> str:
    p99 = "p99 —" if tail.p99_ns is None else f"p99 {_value(tail, 'p99', tail.p99_ns)}"
    p95 = "p95 —" if tail.p95_ns is None else f"p95 {_value(tail, 'p95', tail.p95_ns)}"
    return f"{p99}, {p95}, n {fmt.count(tail.n).strip()}"


def _value(tail: Tail, name: str, ns: int) -> str:
    return f"≥ {_text(ns)}" if name in tail.at_least else _text(ns)


def _text(ns: float | None) -> str:
    return fmt.duration(ns).strip()


def _when(snapshot: Snapshot, slo_ns: int) -> str:
    """Since when slots are over the objective, or when the last one was; "" when the slots do not tell."""
    p99 = snapshot.latency_series.p99_ns
    known = np.flatnonzero(~np.isnan(p99))
    over = known[p99[known] > slo_ns]
    if not over.size:
        return ""

    def at(slot: int) -> str:
        return fmt.moment(int(snapshot.slot_start_ns[slot]), 3600e9, snapshot.header.clock)

    if over[-1] != known[-1]:
        return f", last at {at(int(over[-1]))}"
    calm = known[p99[known] <= slo_ns]
    if not calm.size:
        return " all the window"
    return f" since {at(int(known[known > calm[-1]][0]))}"


def _queue(snapshot: Snapshot) -> list[str]:
    cohort = snapshot.cohort
    notes = []
    if cohort is not None and cohort.queue_ns + cohort.service_ns > 0:
        share = cohort.queue_ns / (cohort.queue_ns + cohort.service_ns)
        usual = cohort.median_queue_ns + cohort.median_service_ns
        than = f" (median {fmt.percent(cohort.median_queue_ns / usual).strip()})" if usual > 0 else ""
        notes.append(f"queue wait is {fmt.percent(share).strip()} of the tail{than}")
    waits = [row for row in snapshot.streams if row.wait.p99_ns is not None]
    if len(waits) > 1:
        worst = max(waits, key=lambda row: row.wait.p99_ns or 0)
        if worst.wait.p99_ns:
            longest = "longest" if notes else "queue wait longest"
            notes.append(f"{longest} on stream {fmt.clip(worst.name, 24)}, p99 {_text(worst.wait.p99_ns)}")
    return notes


def _contradictions(snapshot: Snapshot) -> list[str]:
    """Evidence that cannot all be true."""
    notes = []
    wait, latency = snapshot.queue_wait, snapshot.latency
    if snapshot.latency_of == "execution" and wait.p99_ns and latency.p99_ns and wait.p99_ns > latency.p99_ns * 1.05:
        notes.append("contradiction: queue wait p99 is over latency p99")
    if snapshot.launch.clock_errors:
        count = fmt.count(snapshot.launch.clock_errors).strip()
        notes.append(f"{count} started before their launch: clocks disagree")
    return notes


def _placement(snapshot: Snapshot) -> list[str]:
    imbalance = snapshot.cores.imbalance
    return [] if imbalance.lambda_ is None else [f"λ {fmt.ratio(imbalance.lambda_).strip()}"]


def _losses(snapshot: Snapshot) -> list[str]:
    health = snapshot.health
    parts = [
        (health.dropped_rows, "events dropped"),
        (health.rejected_batches, "batches rejected"),
        (health.bad_rows, "events with impossible times"),
    ]
    if health.dropped_batches and not health.dropped_rows:
        parts[0] = (health.dropped_batches, "batches dropped")
    return [f"{fmt.count(count).strip()} {what}" for count, what in parts if count]


def _unknown(snapshot: Snapshot) -> list[str]:
    """What the numbers above cannot see."""
    launch = snapshot.launch
    if launch.total and not launch.joined:
        return ["queue wait unknown (no enqueue times)"]
    if launch.orphans > launch.total * 0.05:
        return [f"queue wait known for {fmt.percent(launch.joined / launch.total).strip()} of executions"]
    return []
