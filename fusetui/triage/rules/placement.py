"""Core imbalance: in the tail, over the window, and within parallel steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from fusetui.triage.finding import Fact
from fusetui.triage.measures import NAMED, Measures
from fusetui.triage.rule import Rule, Seen
from fusetui.triage.text import many, name, ns, num, pct, since, tail_text
from fusetui.triage.where import core_filter

UNEVEN: Final = 0.25
LEAST_BUSY: Final = 0.05
EVEN_COUNTS: Final = 0.1
SMALL: Final = 0.05
TURNS: Final = 1.05
"""Busy time of all cores over that of any: up to here one at a time runs, as of a thread that the system moves."""
SAME: Final = 0.8
LEAST_SLOTS: Final = 20
STRETCH: Final = 0.15
_PLACE: Final = ("device", "core", "start_ns", "end_ns")


def busiest(m: Measures) -> str:
    """Label of the busiest core in the slots of the tail, else of the window; "" without cores."""
    cores = m.snapshot.cores
    if not cores.labels:
        return ""
    share = cores.busy_share[:, m.contrast.bad] if m.contrast else cores.busy_share
    return cores.labels[int(np.argmax(np.nansum(share, axis=1)))]


def _tail(m: Measures) -> Iterator[Seen]:
    blame = m.blamed("imbalance")
    if blame.cause < NAMED:
        return
    label = busiest(m)
    confidence, why = m.confidence("imbalance")
    start = m.since("core placement")
    imbalance = m.snapshot.cores.imbalance
    yield Seen(
        f"core imbalance: {pct(blame.cause)} of the tail waited for a slow or busy core while others stood idle,"
        f" busiest {name(label)}; {tail_text(m)}{since(m, start)}",
        m.severity("imbalance"),
        "likely" if start is not None else confidence,
        why,
        (
            Fact("share of the slowest's latency", blame.time, "share", _PLACE),
            Fact("λ = max/mean − 1 of busy time", imbalance.lambda_, "", _PLACE),
        ),
        blame.time,
        blame.cause,
        label,
        core_filter(m.snapshot, label),
        since_ns=start,
    )


def _uneven(m: Measures) -> Iterator[Seen]:
    cores, span = m.snapshot.cores, m.snapshot.span_ns
    uneven = cores.imbalance.lambda_
    if uneven is None or uneven < UNEVEN or not span or cores.busy_ns.mean() < LEAST_BUSY * span:
        return
    if m.snapshot.busy_ns and cores.busy_ns.sum() <= TURNS * m.snapshot.busy_ns:
        return
    n = cores.executions
    by_count = float(n.max() / n.mean() - 1)
    even = by_count < EVEN_COUNTS
    at = int(np.argmax(cores.busy_ns))
    yield Seen(
        f"λ {num(uneven)}: {cores.level} {name(cores.labels[at])} is busy {num(1 + uneven)}× the mean"
        + (f"; executions are even (λ {num(by_count)}), so its items are more work or it is slow" if even else ""),
        "warn",
        "sure",
        "busy time is counted",
        (
            Fact("λ of busy time", uneven, "", _PLACE),
            Fact("λ of executions", by_count, "", _PLACE),
            Fact("Jain's index, which hides one straggler", cores.imbalance.jain, "", _PLACE),
        ),
        cause=max(m.blamed("imbalance").cause, uneven / (1 + uneven)),
        subject=cores.labels[at],
        filter=core_filter(m.snapshot, cores.labels[at]),
    )


def _systematic(m: Measures) -> Iterator[Seen]:
    cores = m.snapshot.cores
    uneven, share = cores.imbalance.lambda_, cores.busy_share
    if uneven is None or not SMALL <= uneven < UNEVEN:
        return
    known = ~np.isnan(cores.lambda_by_slot) & (np.nansum(share, axis=0) > 0)
    if known.sum() < LEAST_SLOTS or len(cores.labels) < 2:
        return
    most = np.argmax(np.nan_to_num(share[:, known]), axis=0)
    counts = np.bincount(most, minlength=len(cores.labels))
    at = int(np.argmax(counts))
    if counts[at] < SAME * known.sum():
        return
    yield Seen(
        f"λ is only {num(uneven)}, but it is always {name(cores.labels[at])}: busiest in"
        f" {pct(counts[at] / known.sum())} of {many(int(known.sum()))} slots",
        "warn" if m.trouble else "info",
        "sure",
        "the same core in most slots is not chance",
        (
            Fact("λ of busy time", uneven, "", _PLACE),
            Fact("share of slots in which it is the busiest", float(counts[at] / known.sum()), "share", _PLACE),
        ),
        cause=uneven / (1 + uneven),
        subject=cores.labels[at],
        filter=core_filter(m.snapshot, cores.labels[at]),
    )


def _stretch(m: Measures) -> Iterator[Seen]:
    imbalance, latency = m.snapshot.cores.imbalance, m.snapshot.latency
    stretch, usual = imbalance.stretch_p95_ns, latency.p50_ns
    if stretch is None or not usual or stretch < STRETCH * usual:
        return
    yield Seen(
        f"parallel steps wait for their slowest core: {ns(stretch)} at p95 over {many(imbalance.steps)} steps,"
        f" {pct(stretch / usual)} of the median latency",
        "warn",
        "likely",
        "slowest less mean of each step is measured; that others wait for it is what a parallel step means",
        (
            Fact("stretch p95", stretch, "ns", ("request", "group", *_PLACE)),
            Fact("stretch p50", imbalance.stretch_p50_ns, "ns", ("request", "group", *_PLACE)),
        ),
        cause=max(m.blamed("imbalance").cause, min(stretch / (usual + stretch), 1.0)),
    )


_FIX: Final = "take the slow core out of placement, or place by least work"
_UNDO: Final = "put the core back, or restore the policy; queued work moves at once"
RULES: Final = (
    Rule(
        id="imbalance/tail", about="core", look=_tail, inputs=("tail_time", "causes", "cores"),
        threshold="cause ≥ 10 % of the slowest's latency", why="less taken away does not show beside the spread of p99",
        does_not_prove=("why the core is slow: clock, co-runners, longer items and placement look alike",),
        next_action="compare the same shapes on that core and on its neighbours",
        bottleneck="imbalance", stage="core placement", fix=_FIX, rollback=_UNDO, screen="cores", pane="cores_heat",
    ),
    Rule(
        id="imbalance/uneven", about="core", look=_uneven, inputs=("cores.busy_ns", "cores.executions"),
        threshold=f"λ ≥ {UNEVEN}, cores {LEAST_BUSY:.0%} busy",
        why="one of 64 cores at 1.5× has λ 0.49 and Jain 0.996; idle cores are uneven by chance",
        does_not_prove=("that latency suffers: an uneven core may be off the critical path",),
        next_action="see whether the busiest core's queue is the longest too",
        bottleneck="imbalance", stage="core placement", fix=_FIX, rollback=_UNDO, screen="cores", pane="cores_busy",
    ),
    Rule(
        id="imbalance/systematic", about="core", look=_systematic, inputs=("cores.busy_share", "cores.lambda_by_slot"),
        threshold=f"λ {SMALL} to {UNEVEN}, the same core in {SAME:.0%} of ≥ {LEAST_SLOTS} slots",
        why="chance spreads the busiest core around; a tie-break does not",
        does_not_prove=("that a policy does it: pinned tenants do as well",),
        next_action="look at how ties are broken between equally loaded cores",
        bottleneck="imbalance", stage="core placement", fix="break ties at random", rollback="restore the tie-break",
        screen="cores", pane="cores_busy",
    ),
    Rule(
        id="imbalance/stretch", look=_stretch, inputs=("cores.imbalance.stretch_p95_ns", "latency"),
        threshold=f"p95 ≥ {STRETCH:.0%} of the median latency", why="that much of a step is waiting in most slow steps",
        does_not_prove=("which core it is: it may change from step to step",),
        next_action="open the slowest steps and see whether it is the same core",
        bottleneck="imbalance", stage="core placement", fix="balance the parts of a step by work",
        rollback="restore the partition", screen="cores", pane="imbalance",
    ),
)  # fmt: skip
