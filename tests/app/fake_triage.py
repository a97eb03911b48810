"""Findings whose every field is known, for the panes and keys about them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fake_snapshot import MS

from fusetui.analysis.snapshot import Snapshot
from fusetui.triage.finding import EvidenceRow, Fact, Finding, Slice, Triage

MATRIX = tuple(
    EvidenceRow(kind, f"tells {kind}", f"proves no {kind}", presence, coverage, f"have {kind}", f"next {kind}")
    for kind, presence, coverage in (
        ("occupancy and timeline", "full", 1.0),
        ("cache, SRAM and bandwidth", "partial", 0.42),
        ("counter-profile alignment", "none", 0.0),
        ("thermal and power", "partial", 0.66),
        ("before/after scenario pack", "none", None),
    )
)  # type: ignore[arg-type]


def findings_of(snapshot: Snapshot) -> tuple[Finding, ...]:
    """One breach with a slice of its own, one warning, one contradiction, one that is good to know."""
    window = Slice(snapshot.window_start_ns, snapshot.now_ns, snapshot.filter_text)
    queueing = Finding(
        "queueing/tail", "queueing on stream prefill: 41 % of the tail is queue wait", "breach",
        Slice(snapshot.now_ns - 4_000 * MS, snapshot.now_ns - 1_000 * MS, 'stream = "prefill"'),
        bottleneck="queueing", subject="prefill", subject_kind="stream", stage="runtime queue", share=0.62, cause=0.41,
        since_ns=snapshot.now_ns - 4_000 * MS,
        evidence=(
            Fact("queue wait p99", 41.2e6, "ns", ("enqueue_ns", "start_ns")),
            Fact("share of the slowest's latency", 0.41, "share"),
            Fact("depth, mean", 37.0, "count"), Fact("rate over calm", 1.4, ""), Fact("power", 611.0, "W"),
            Fact("absent", None, "ns"),
        ),
        does_not_prove=("why the queue is there",), owner="sched-team", fix="admit a fifth less",
        rollback="admit again",
        next_action="see which stream waits", screen="queue", pane="queue_heat", confidence_why="measured",
    )  # fmt: skip
    burst = Finding(
        "burst/group", "g3 peaks 1.8 times over DRAM", "warn", window, bottleneck="memory burst", stage="completion",
        cause=0.17, owner="compiler-team", screen="cores", pane="cores_busy",
    )  # fmt: skip
    against = Finding(
        "contradiction/launch", "launches fell by 38 % but p95 rose by 22 %", "warn", window, topic="contradiction",
        contradicts=("launch/exposed",), screen="tail", pane="tail",
    )  # fmt: skip
    known = Finding("host/calls", "launch calls are slow", "info", window, bottleneck="host", screen="queue", pane="x")
    return queueing, burst, against, known


def fake_triage(snapshot: Snapshot, *_: Any, **__: Any) -> Triage:
    """In place of the rules."""
    return Triage(findings_of(snapshot), MATRIX, quiet=False)


def quiet_triage(snapshot: Snapshot, *_: Any, **__: Any) -> Triage:
    """Nothing found."""
    return Triage((), MATRIX)


def only(triage: Triage, *ids: str) -> Triage:
    """Those of its findings."""
    return replace(triage, findings=tuple(one for one in triage.findings if one.id in ids))
