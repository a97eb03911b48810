"""What the evidence of a report does not prove, said once each."""

from __future__ import annotations

from collections.abc import Iterator

from fusetui.triage.report.material import Material


def limits(m: Material) -> list[str]:
    """Losses of reading first, for they bear on every number; then of the whole, of evidence, of findings."""
    return list(dict.fromkeys(line for line in (*m.notes, *_whole(m), *_missing(m), *_findings(m)) if line))


def _whole(m: Material) -> Iterator[str]:
    if m.header.source == "simulated":
        yield "the trace is simulated: no number is of a real device"
    if not m.triage.judged:
        yield f"too little to judge: {m.triage.why_not}"
    if isinstance(m.causes, str):
        yield f"shares are of time, not of cause: {m.causes}"
    else:
        yield f"causes are the model's: {m.causes.fit}"
        yield from m.causes.notes
    latency = m.snapshot.latency
    if latency.at_least:
        yield f"work was still open: {', '.join(sorted(latency.at_least))} of latency are lower bounds"
    if latency.why:
        yield latency.why
    if m.changes_why:
        yield f"change points: {m.changes_why}"
    if m.header.clock == "trace":
        yield "the clock counts from the begin of the trace: no wall-clock time is known"


def _missing(m: Material) -> Iterator[str]:
    for row in m.triage.matrix:
        if row.presence == "none":
            yield f"no {row.kind}: {row.have}"
    yield from m.snapshot.notes


def _findings(m: Material) -> Iterator[str]:
    for finding in m.triage.findings:
        if finding.severity != "info":
            for open_ in finding.does_not_prove:
                yield f"{finding.id} does not prove {open_}"
