"""Evidence of one trace that points two ways: each of it alone would be read wrongly."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from fusetui.triage.counters import counters
from fusetui.triage.finding import Fact
from fusetui.triage.measures import Measures
from fusetui.triage.rule import Seen
from fusetui.triage.rules.before_after import MOVED, baseline_rule, both_sides, change, said
from fusetui.triage.rules.power import fallen
from fusetui.triage.text import name, num, pct

WRONG: Final = 0.3


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


RULES: Final = (
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
