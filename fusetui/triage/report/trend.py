"""The one metric of a report over time: p99 of latency, its objective, and the first bad moment."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from fusetui.analysis.attribution.parts import STAGES
from fusetui.telemetry.header import Clock
from fusetui.triage.measures import TAIL
from fusetui.triage.report.material import Material
from fusetui.triage.report.moments import utc
from fusetui.triage.report.words import ns

LASTS: Final = 2
"""Slots in a row over the objective: one alone may be one slow item."""


def trend(m: Material) -> dict[str, Any]:
    """Per slot of the window; `p99_ns` is None where nothing ended, and the slowest where fewer than 100 did."""
    snapshot, series = m.snapshot, m.snapshot.latency_series
    at_ns, how = first_bad(m)
    return {
        "of": snapshot.latency_of,
        "slot_ns": snapshot.slot_ns,
        "start_ns": snapshot.slot_start_ns.tolist(),
        "n": series.n.tolist(),
        "p50_ns": series.p50_ns.tolist(),
        "p99_ns": series.p99_ns.tolist(),
        "slo_ns": m.header.slo_ns,
        "first_bad_ns": at_ns,
        "first_bad": None if at_ns is None else utc(at_ns, m.header.clock),
        "first_bad_how": how,
    }


def first_bad(m: Material) -> tuple[int | None, str]:
    """(when it began to be bad, None: at no time; how that is known)."""
    slo_ns, time = m.header.slo_ns, m.snapshot.tail_time
    if slo_ns is not None:
        return _over(m, slo_ns)
    if calm := no_tail(m):
        return None, calm
    left = [] if time is None else [(stage.left_ns, place != time.first) for place, stage in enumerate(time.stages)]
    known = [(at, not_first, place) for place, (at, not_first) in enumerate(left) if at is not None]
    if known:
        # Of several at once it is the one that the stages name first.
        at, _, place = min(known)
        name = STAGES[place]
        return at, f"the stage {name} left its budget: what the slowest spend there in calm parts of this trace"
    rose = next((change for change in m.changes if change.after_ns > change.before_ns), None)
    if rose is not None:
        return rose.at_ns, f"a change point, p95 rose from {ns(rose.before_ns)} to {ns(rose.after_ns)}"
    return None, "no objective is set, no stage left its budget and no change point shows p95 rising"


def no_tail(m: Material) -> str:
    """Why nothing can have begun to be bad, where no objective says what bad is; "" where it can."""
    latency = m.snapshot.latency
    slowest, median = latency.p99_ns or latency.p95_ns, latency.p50_ns
    if m.header.slo_ns is not None or slowest is None or not median or latency.at_least:
        return ""
    if m.snapshot.latency_of == "execution" and m.snapshot.idle is not None:
        return "the capture is of one program, whose kernels differ from phase to phase: no item of it has a tail"
    medians = m.snapshot.latency_series.p50_ns
    # A median of all may lie behind the moment from which all were slow.
    if slowest < TAIL * min(float(np.nanmin(medians, initial=median)), median):
        return f"the tail is flat, the median {ns(median)}"
    return ""


def _over(m: Material, slo_ns: int) -> tuple[int | None, str]:
    p99 = m.snapshot.latency_series.p99_ns
    slots = np.flatnonzero(p99 == p99)
    over = p99[slots] > slo_ns
    runs = over[: len(over) - LASTS + 1].copy()
    for later in range(1, LASTS):
        runs &= over[later : len(over) - LASTS + 1 + later]
    if len(over) >= LASTS and runs.any():
        slot = int(slots[int(runs.argmax())])
        begins = slot == int(slots[0])
        more = ": it was over when the window began, so it began earlier" if begins else ""
        return int(m.snapshot.slot_start_ns[slot]), f"p99 over the objective in {LASTS} slots in a row{more}"
    alone = int(over.sum())
    return None, f"p99 was over the objective in {alone} slots, never in {LASTS} in a row" if alone else (
        "p99 of no slot was over the objective"
    )


def timeline(m: Material, clock: Clock, most: int = 40) -> list[dict[str, Any]]:
    """What happened when: the first bad moment, stages, change points, marks of the trace and bookmarks."""
    found: list[tuple[int, str, str]] = []
    at_ns, how = first_bad(m)
    if at_ns is not None:
        found.append((at_ns, f"first bad moment: {how}", "trend"))
    if m.snapshot.tail_time is not None:
        for stage, name in zip(m.snapshot.tail_time.stages, STAGES, strict=False):
            if stage.left_ns is not None:
                found.append((stage.left_ns, f"{name} left its budget", "tail time by stage"))
    for change in m.changes:
        ratio = change.ratio
        word = "rose" if change.after_ns > change.before_ns else "fell"
        by = "" if ratio is None else f" to {ratio:.2f}×"
        near = ", ".join(mark.name for mark in change.marks)
        beside = f", beside {near}" if near else ""
        found.append((change.at_ns, f"p95 {word}{by}{beside}", "change point"))
    found += [(mark.from_ns, mark.label or "bookmark", "bookmark") for mark in m.bookmarks]
    found += [(mark.at_ns, mark.name, "mark of the trace") for mark in m.snapshot.marks]
    # What was found goes before what was marked, so that a trace of a thousand marks does not push it out.
    kept = sorted(found[:most])
    left = len(found) - len(kept)
    rows = [{"at_ns": at, "at": utc(at, clock), "event": event, "by": by} for at, event, by in kept]
    return rows if not left else [*rows, {"at_ns": None, "at": "", "event": f"and {left} more marks", "by": ""}]
