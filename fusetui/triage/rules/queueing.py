"""Queue wait: as a part of the tail, and as work that is not done yet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from fusetui.analysis.attribution.backlog import LEAST, OUTRUN, PART, SLOWER
from fusetui.analysis.attribution.parts import REST
from fusetui.analysis.snapshot import StreamRow
from fusetui.triage.counters import counters, total
from fusetui.triage.finding import Confidence, Fact
from fusetui.triage.measures import MOST, NAMED, Measures
from fusetui.triage.rule import Rule, Seen
from fusetui.triage.slots import work_per_item
from fusetui.triage.text import many, name, ns, num, pct, since, tail_text
from fusetui.triage.where import stream_filter

ROSE: Final = 1.4
"""Bad slots over calm ones from which a rate, or the work of an item, has visibly grown."""
OLD: Final = 4.0
LEAST_WAITING: Final = 4
_WAIT: Final = ("enqueue_ns", "start_ns")
_ENDS: Final = ("enqueue_ns", "end_ns")
_CROWD_NEXT: Final = "see how fast one alone is: many that run at once share the device"
_QUEUE_NEXT: Final = "see what limits how many run: memory for their state, or a setting"
_AHEAD_NEXT: Final = "see what ran on the stream meanwhile: launches ahead of the device wait by design"
_AHEAD_FIX: Final = "shorten or fuse the work before it on the same stream; the wait itself keeps the device busy"


def worst_stream(measures: Measures) -> StreamRow | None:
    """The stream with the longest queue wait of several, None: there are no several."""
    known = [row for row in measures.snapshot.streams if row.wait.p99_ns]
    return max(known, key=lambda row: row.wait.p99_ns or 0) if len(known) > 1 else None


def _tail(m: Measures) -> Iterator[Seen]:
    blame = m.blamed("queueing")
    if blame.cause < NAMED:
        return
    worst, (why, facts, sure) = worst_stream(m), _why(m)
    confidence, told = m.confidence("queueing")
    wait = m.snapshot.queue_wait if worst is None else worst.wait
    of = "" if worst is None else f" on stream {name(worst.name)}"
    start = m.since("runtime queue")
    ahead = launched_ahead(m)
    yield Seen(
        f"queueing{of}: {pct(blame.time)} of the tail is queue wait, {tail_text(m)}{since(m, start)}{why}",
        "info" if ahead else m.severity("queueing"),
        "possible" if ahead else "likely" if sure else confidence,
        f"{told}{'; ' + sure if sure else ''}",
        (
            Fact("share of the slowest's latency waited for longer than the median", blame.time, "share", _WAIT),
            Fact("queue wait p99", wait.p99_ns, "ns", _WAIT),
            Fact("queue depth, mean", m.snapshot.depth.mean, "count", _WAIT),
            *facts,
        ),
        blame.time,
        blame.cause,
        "" if worst is None else worst.name,
        "" if worst is None else stream_filter(m.snapshot, worst.name),
        since_ns=start,
        next_action=_AHEAD_NEXT if ahead else "",
        fix=_AHEAD_FIX if ahead else "",
    )


def launched_ahead(m: Measures) -> bool:
    """Whether waits are those of a program that launches before the device is ready, as profilers of one show them.

    Such a queue keeps the device busy: it is no delay to anybody but the end of the program.
    """
    return m.snapshot.latency_of == "execution" and m.snapshot.launch.joined > 0 and not m.snapshot.open_waiting


def _why(m: Measures) -> tuple[str, tuple[Fact, ...], str]:
    """(what grew in the slow slots, facts, how that makes it surer)."""
    items = m.contrast and m.contrast.of(m.snapshot.latency_series.n.astype(float))
    work = m.contrast and m.contrast.of(work_per_item(m.snapshot))
    facts = []
    found: Confidence | None = None
    text = ""
    if items and items[1] > 0:
        facts.append(Fact("items done in slow slots over calm ones", items[0] / items[1], "", ("end_ns",)))
        if items[0] >= ROSE * items[1]:
            found, text = "likely", f"; more come at once: {num(items[0] / items[1])}× the rate in slow slots"
    if work and work[1] > 0:
        facts.append(Fact("busy time per item in slow slots over calm ones", work[0] / work[1], "", ("start_ns",)))
        if work[0] >= ROSE * work[1] and not text:
            found, text = (
                "likely",
                f"; items are {num(work[0] / work[1])}× the work in slow slots: the rest waits behind",
            )
    return text, tuple(facts), "what grew in the slow slots is measured" if found else ""


def _open(m: Measures) -> Iterator[Seen]:
    snapshot = m.snapshot
    latency = snapshot.latency
    waiting, oldest = snapshot.open_waiting or latency.open_n, snapshot.oldest_open_ns
    done = latency.p99_ns or latency.p95_ns or latency.max_ns
    bound = bool(latency.at_least)
    if oldest is None and bound:
        oldest = done
    if not waiting or waiting < LEAST_WAITING or not oldest or (done is not None and oldest < done and not bound):
        return
    slo = m.header.slo_ns
    late = slo is not None and oldest > slo
    if not late and "p50" not in latency.at_least and oldest < OLD * (latency.p50_ns or 0):
        return
    told = f"{many(waiting)} wait and the oldest has waited {ns(oldest)}"
    if not snapshot.open_waiting:
        told = f"{many(waiting)} are not done, the oldest after {ns(oldest)}"
    yield Seen(
        told
        + ("" if done is None else f", {tail_text(m)} with them")
        + ": percentiles of what finished alone say too little",
        "breach" if late else "warn",
        "sure",
        "work still open is counted in the rows",
        (
            Fact("waiting now" if snapshot.open_waiting else "not done now", waiting, "count", ("enqueue_ns",)),
            Fact("age of the oldest", oldest, "ns", ("enqueue_ns",)),
        ),
        cause=1.0 - (done or 0) / (oldest + (done or 0)),
    )


def _overload(m: Measures) -> Iterator[Seen]:
    """Where rows tell nothing between coming and ending; where they do, waits and their cause are told by others."""
    time = m.snapshot.tail_time
    if time is None or time.backlog is None or any(blame.cause >= NAMED for blame in m.blame.values()):
        return
    slowest, grew = time.extreme or time.tail, time.backlog
    if slowest.shares[REST] < MOST:
        return
    drain = "never drained" if grew.drained_ns is None else f"{ns(grew.drained_ns - grew.peak_ns)} to drain"
    share = 1.0 - min(grew.calm_ns / max(slowest.latency_ns, 1.0), 1.0)
    gauges, next_action = _gauges(m)
    yield Seen(
        f"overload{since(m, grew.from_ns)}: {num(grew.came_per_s)}/s come, {num(grew.ended_per_s)}/s end,"
        f" {many(grew.peak)} in progress at the peak, {drain}; median {ns(grew.calm_ns)} before,"
        f" {ns(grew.late_ns)} in it; {tail_text(m)}{gauges}",
        "breach" if m.trouble == "breach" else "warn",
        "likely",
        "arrivals and ends are counted; whether a request waited or ran slowly among many is not in its row",
        (
            Fact("came while it grew, a second", grew.came_per_s, "", ("enqueue_ns",)),
            Fact("ended meanwhile, a second", grew.ended_per_s, "", ("end_ns",)),
            Fact("in progress at the peak", grew.peak, "count", _ENDS),
            Fact("in progress before", grew.before, "count", _ENDS),
            Fact("median latency before", grew.calm_ns, "ns", _ENDS),
            Fact("median latency of the last that came in it", grew.late_ns, "ns", _ENDS),
        ),
        share,
        share,
        from_ns=grew.from_ns,
        to_ns=grew.drained_ns,
        since_ns=grew.from_ns,
        next_action=next_action,
        fix=f"turn away at the door what comes above {num(grew.ended_per_s)}/s, the rate at which it ends, while more"
        f" than {many(grew.before)} are in progress; or add servers",
    )


def _gauges(m: Measures) -> tuple[str, str]:
    """What the scheduler's own gauges say of the peak, and what to do then; "" without them."""
    slots = len(m.snapshot.slot_start_ns)
    waiting, running = (total(counters(m.snapshot, what), slots) for what in ("waiting", "running"))
    both = np.flatnonzero(~np.isnan(waiting) & ~np.isnan(running))
    if not both.size:
        return "", ""
    at = both[int(np.argmax(waiting[both]))]
    queued, served = float(waiting[at]), float(running[at])
    if queued < LEAST_WAITING:
        return f"; the scheduler lets all of them run, up to {many(float(running[both].max()))}", _CROWD_NEXT
    return f"; the scheduler has up to {many(queued)} waiting beside {many(served)} that run", _QUEUE_NEXT


RULES: Final = (
    Rule(
        id="queueing/overload", look=_overload, inputs=("tail_time.backlog", "tail_time", "blame"),
        threshold=f"{OUTRUN}× as many come as end while it grows, ≥ {LEAST} in progress, {PART:.0%} of all; the median"
        f" latency {SLOWER:g}×",
        why="what is in progress grows in any window until the first end: only with latency it is an overload",
        does_not_prove=("that requests wait: a batch that grows serves each of them slower",
                        "that percentiles at the time said so: those of what had ended then were lower"),
        next_action="open the scheduler's log beside it: running against pending tells slow service from waiting",
        bottleneck="queueing", stage="runtime queue",
        fix="turn work away at the door", rollback="lift the limit; it acts at once",
        screen="tail", pane="tail",
    ),
    Rule(
        id="queueing/tail", about="stream", look=_tail,
        inputs=("tail_time", "causes", "streams.wait", "latency_series", "cores.busy_share"),
        threshold="cause ≥ 10 % of the slowest's latency",
        why="taking less away does not show beside the spread of p99",
        does_not_prove=(
            "why the queue is there: a burst, long items ahead and slow service all look like wait",
            "that a faster queue would help: only less load, more cores or shorter work do",
        ),
        next_action="see which stream waits, and whether rate or work per item grew with it",
        bottleneck="queueing", stage="runtime queue",
        fix="admit less at once: lower the concurrency limit by a fifth, or give long items a stream of their own",
        rollback="restore the limit or the stream assignment; both act at once",
        screen="queue", pane="queue_heat",
    ),
    Rule(
        id="queueing/open", look=_open, inputs=("open_waiting", "oldest_open_ns", "latency"),
        threshold=f"{LEAST_WAITING} wait, the oldest as long as p99, or quantiles are bounds; and 4× the median",
        why="in an overload completed work is the lucky part: its p95 read 10 s where the true one was 61 s",
        does_not_prove=("that they will be as slow as the oldest: the queue may be draining",),
        next_action="look at the queue's depth over time: does it grow or drain?",
        bottleneck="queueing", stage="runtime queue",
        fix="shed or redirect new work until the oldest has started", rollback="admit again; nothing is kept",
        screen="queue", pane="depth",
    ),
)  # fmt: skip
