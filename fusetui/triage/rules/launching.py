"""Launch overhead and the batching gate: time before a device gets work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fusetui.triage.finding import Fact
from fusetui.triage.measures import NAMED, Measures
from fusetui.triage.rule import Rule, Seen
from fusetui.triage.text import many, ns, pct, since, tail_text

EXPOSED: Final = 0.3
ONE_CALL: Final = 0.5
HIDDEN: Final = 0.1
"""Share of a device's time up to which its streams stood idle while others of it ran: nothing to gain."""
_LAUNCH: Final = ("launch_ns", "enqueue_ns", "start_ns", "end_ns")


def _tail(m: Measures) -> Iterator[Seen]:
    blame = m.blamed("launch")
    if blame.cause < NAMED:
        return
    confidence, why = m.confidence("launch")
    yield Seen(
        f"launch overhead is {pct(blame.cause)} of the tail, {tail_text(m)}", m.severity("launch"), confidence, why,
        (Fact("share of the slowest's latency", blame.time, "share", _LAUNCH),), blame.time, blame.cause,
    )  # fmt: skip


def _exposed(m: Measures) -> Iterator[Seen]:
    launch, busy = m.snapshot.launch, m.snapshot.busy_ns
    if launch.exposed_ns is None or not busy or launch.joined < launch.total / 2:
        return
    share = launch.exposed_ns / (launch.exposed_ns + busy)
    if share < EXPOSED:
        return
    if (launch.call.max_ns or 0) >= ONE_CALL * launch.exposed_ns:
        yield Seen(
            f"one launch call took {ns(launch.call.max_ns)}, of {ns(launch.exposed_ns)} that streams waited for"
            " launches: what is loaded or tuned at first use, no launch overhead",
            "info", "likely", "the call is timed; what it did is inferred",
            (Fact("the longest launch call", launch.call.max_ns, "ns", ("launch_ns",)),),
            fix="run the model once before it is timed", next_action="see which kernel it launched",
        )  # fmt: skip
        return
    idle = m.snapshot.idle
    hidden = idle is not None and idle.idle_ns < HIDDEN * idle.span_ns
    beside = f"; the busiest device stood idle for {pct(idle.idle_ns / idle.span_ns)} of its time" if idle else ""
    yield Seen(
        f"streams stood idle for {ns(launch.exposed_ns)} while their next launch was under way, {pct(share)} of busy"
        f" and exposed time; {many(launch.short)} of {many(launch.call.n)} launches take longer than what they"
        f" start{beside}",
        "info" if hidden else "warn",
        "likely",
        "gaps are measured per stream; another stream may have kept the device busy",
        (
            Fact("exposed launch overhead", launch.exposed_ns, "ns", _LAUNCH),
            Fact("executions shorter than their launch", launch.short, "count", _LAUNCH),
        ),
        cause=max(share, m.blamed("launch").cause),
    )


def _gate(m: Measures) -> Iterator[Seen]:
    blame = m.blamed("batching")
    if blame.cause < NAMED:
        return
    confidence, why = m.confidence("batching")
    start = m.since("runtime queue")
    yield Seen(
        f"requests wait {pct(blame.time)} of the tail for their batch to close, {tail_text(m)}{since(m, start)}",
        m.severity("batching"),
        "likely" if blame.how == "twin" or blame.time >= 2 * NAMED else confidence,
        why,
        (Fact("share of the slowest's latency in the batching gate", blame.time, "share", ("enqueue_ns", "request")),),
        blame.time,
        blame.cause,
        since_ns=start,
    )


RULES: Final = (
    Rule(
        id="launch/tail", look=_tail, inputs=("tail_time", "causes"), threshold="cause ≥ 10 % of the slowest's latency",
        why="taking less away does not show beside the spread of p99",
        does_not_prove=("that fewer launches are faster: a fused kernel may burst or spill",),
        next_action="compare exposed time, not the number of launches", bottleneck="launch", stage="runtime queue",
        fix="capture the chain as a graph, or fuse its short kernels", rollback="turn the capture off",
        screen="queue", pane="launch",
    ),
    Rule(
        id="launch/exposed", look=_exposed, inputs=("launch.exposed_ns", "busy_ns"),
        threshold=f"{EXPOSED:.0%} of busy and exposed time", why="below, work per launch hides it in most blocks",
        does_not_prove=("that the device was idle: exposed time adds up over streams",),
        next_action="see whether the gaps lie on the stream that the tail waits for",
        bottleneck="launch", stage="runtime queue", fix="capture the chain as a graph, or fuse its short kernels",
        rollback="turn the capture off", screen="queue", pane="launch",
    ),
    Rule(
        id="batching/gate", look=_gate, inputs=("tail_time", "causes"),
        threshold="cause ≥ 10 % of the slowest's latency",
        why="taking less away does not show beside the spread of p99",
        does_not_prove=("that smaller batches are faster: throughput falls with them",),
        next_action="compare the gate's deadline with how fast requests come",
        bottleneck="batching", stage="runtime queue", fix="halve the batch deadline", rollback="restore the deadline",
        screen="queue", pane="batching",
    ),
)  # fmt: skip
