"""Evidence of one trace that points two ways: each of it alone would be read wrongly."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from fusetui.triage.blame import OF_DRIVER
from fusetui.triage.counters import counters
from fusetui.triage.finding import Bottleneck, Fact
from fusetui.triage.measures import NAMED, Measures
from fusetui.triage.rule import Seen
from fusetui.triage.rules.before_after import MOVED, baseline_rule, both_sides, change, said
from fusetui.triage.rules.power import fallen
from fusetui.triage.slots import unplanned_share
from fusetui.triage.text import name, num, pct

WRONG: Final = 0.3
SHOWS: Final = 0.02
"""Share of the slowest's time, or of busy time in slow slots above calm ones, from which rows show a driver at all."""


def _groups(m: Measures) -> Iterator[Seen]:
    """Predictions that are right in total because their errors cancel."""
    known = [row for row in m.groups if row.measured is not None and row.residual is not None]
    if len(known) < 2:
        return
    predicted = sum(row.plan.predicted_ns for row in known)
    took = sum(row.measured.p50_ns for row in known if row.measured is not None)
    worst = max(known, key=lambda row: abs(row.residual or 0.0))
    total = took / predicted - 1 if predicted > 0 else 0.0
    if abs(total) > MOVED or abs(worst.residual or 0.0) < WRONG:
        return
    what = name(" ".join(worst.plan.ops))
    yield Seen(
        f"the plan is right in total ({said(total)}), but {what} took {said(worst.residual or 0.0)} of its prediction",
        "warn", "sure", "measured beside predicted, group by group; the prediction is modelled",
        (Fact("measured over predicted − 1, all groups", total, "share", ("name", "start_ns", "end_ns")),
         Fact(f"the same, {what}", worst.residual, "share", ("name", "start_ns", "end_ns"))),
        subject=what,
    )  # fmt: skip


def _clocks(m: Measures) -> Iterator[Seen]:
    base = both_sides(m)
    service = change(m.snapshot.service.p50_ns, base.service.p50_ns) if base is not None else None
    for clock in counters(m.snapshot, "clock"):
        moved: float | None = None
        before = (
            next((c for c in counters(base, "clock") if c.label == clock.label), None) if base is not None else None
        )
        if before is not None and service is not None and service >= MOVED:
            moved = change(float(np.nanmean(clock.by_slot)), float(np.nanmean(before.by_slot)))
        within = fallen(clock)
        if (moved is None or moved > -MOVED / 2) and not (within and m.trouble):
            continue
        fell = moved if moved is not None else within[1] / within[0] - 1 if within else 0.0
        yield Seen(
            f"what looks like slower kernels runs at a lower clock: {name(clock.label)} {said(fell)}"
            + ("" if service is None else f", median service {said(service)}"),
            "warn", "likely", "kernel time goes with the clock where it is bound by it",
            (Fact(f"{name(clock.label)}, change", fell, "share", ("value", "name")),),
            subject=clock.label, contradicts=("compute/counter", "imbalance/tail"),
        )  # fmt: skip


def _mix(m: Measures) -> Iterator[Seen]:
    drift = m.snapshot.mapping_detail.drift
    if drift is None or drift.against != "envelope" or drift.verdict == "stable":
        return
    # Expected shares are raised by half a count, so that none is 0.
    outside = float(drift.seen[drift.expected * drift.seen_n < 1].sum())
    yield Seen(
        f"these are not the shapes the plan was made for: index {num(drift.index)}, {pct(outside)} outside the"
        " envelope: no before and after across that",
        "warn", "sure", "shapes are counted", (Fact("index", drift.index, "", ("shape",)),),
        contradicts=("fallback/tail",),
    )  # fmt: skip


def _cause(m: Measures) -> Iterator[Seen]:
    """A driver that the model blames for the tail, and of which the rows show nothing more where the tail is."""
    at = None if m.causes is None else m.causes.p99 if m.causes.p99.named else m.causes.p95
    row = None if at is None else next((row for row in at.rows if row.name == at.named), None)
    if m.causes is None or at is None or row is None or row.share_ns < NAMED * at.all_ns:
        return
    bottleneck = OF_DRIVER[row.name]
    seen = _measured(m, bottleneck)
    if seen is None or seen >= SHOWS:
        return
    largest = max(m.blame, key=lambda of: m.blame[of].time)
    yield Seen(
        f"the model blames {row.name} for {pct(row.share_ns / at.all_ns)} of p{at.q * 100:g}, the rows do not show it:"
        f" {pct(seen)} more of it where the tail is"
        + (f"; they show {largest}, {pct(m.blame[largest].time)}" if m.blame[largest].time >= NAMED else ""),
        "warn" if m.trouble else "info", "sure", f"measured beside modelled; {m.causes.fit}",
        (Fact(f"share of p{at.q * 100:g}, modelled", row.share_ns / at.all_ns, "share"),
         Fact("more of it where the tail is, measured", seen, "share", ("mapping", "start_ns", "end_ns"))),
        subject=row.name, contradicts=(f"{bottleneck}/tail",),
    )  # fmt: skip


def _measured(m: Measures, of: Bottleneck) -> float | None:
    """By how much the rows show more of it where the tail is: of the slowest's time, or of busy time in slow slots.

    None where no row could show it.
    """
    shown = m.blamed(of).time
    if of == "fallback":
        rose = m.contrast and m.contrast.of(unplanned_share(m.snapshot))
        return max(shown, rose[0] - rose[1]) if rose else None
    if of == "imbalance":
        rose = m.contrast and m.contrast.of(m.snapshot.cores.lambda_by_slot)
        return max(shown, rose[0] - rose[1]) if rose else None
    return shown if of in ("queueing", "batching") else None


RULES: Final = (
    baseline_rule(
        "cause", _cause, "causes, tail_time, mapping_detail.time_by_slot, cores.lambda_by_slot",
        "which of the two is right: the model may see what waits behind, or may be wrong",
        "look at the rows of the slow slots; run once without the driver", "",
    ),
    baseline_rule(
        "groups", _groups, "groups of the plan, measured", "that another plan is better",
        "look at that group's residual over time", "group",
    ),
    baseline_rule(
        "clocks", _clocks, "counter_rows: clock, service, baseline", "that no kernel changed",
        "compare at equal clocks", "counter",
    ),
    baseline_rule(
        "mix", _mix, "mapping_detail.drift", "that the plan is bad for its own mix", "compare within one shape",
    ),
)  # fmt: skip
