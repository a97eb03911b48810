"""What capturing did to the trace: work without its launch, graph nodes, clocks that disagree, a cut end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from fusetui.triage.finding import Fact
from fusetui.triage.measures import Measures
from fusetui.triage.rule import Rule, Seen
from fusetui.triage.text import many, pct

ORPHANS: Final = 0.05
NODES: Final = 0.5
CLOCK: Final = 0.001
_JOIN: Final = ("enqueue_ns", "launch_ns")
_CUT: Final = ("truncat", "cut short", "cut off", "torn", "incomplete", "ends early", "ends in the middle")


def _orphans(m: Measures) -> Iterator[Seen]:
    launch = m.snapshot.launch
    if not launch.joined or launch.orphans < ORPHANS * launch.total:
        return
    yield Seen(
        f"queue wait is known for {pct(launch.joined / launch.total)} of executions: {many(launch.orphans)} have no"
        " launch in the window",
        "info", "sure", "counted", (Fact("executions without a launch", launch.orphans, "count", _JOIN),),
        contradicts=("queueing/tail",),
    )  # fmt: skip


def _clocks(m: Measures) -> Iterator[Seen]:
    launch = m.snapshot.launch
    if not launch.clock_errors or launch.clock_errors < CLOCK * launch.joined:
        return
    yield Seen(
        f"{many(launch.clock_errors)} executions started before their launch call began: the clocks of host and device"
        " disagree, waits counted as 0 are wrong",
        "warn", "sure", "an effect before its cause is a clock error",
        (Fact("starts before the call", launch.clock_errors, "count", ("start_ns", *_JOIN)),),
        contradicts=("queueing/tail", "launch/exposed"),
    )  # fmt: skip


def _nodes(m: Measures) -> Iterator[Seen]:
    launch = m.snapshot.launch
    if launch.nodes < NODES * max(launch.joined, 1):
        return
    yield Seen(
        f"{pct(launch.nodes / launch.joined)} of executions are nodes of graph launches: they have no wait and no"
        " launch of their own",
        "info", "sure", "counted", (Fact("graph nodes", launch.nodes, "count", ("node",)),),
    )  # fmt: skip


def _cut(m: Measures) -> Iterator[Seen]:
    snapshot = m.snapshot
    told = [note for note in (*snapshot.health.missing, *snapshot.notes) if any(word in note.lower() for word in _CUT)]
    for note in told[:3]:
        yield Seen(f"the trace is not whole: {note}", "warn", "sure", "its reader says so", ())


def _losses(m: Measures) -> Iterator[Seen]:
    health = m.snapshot.health
    parts = (
        (health.dropped_rows, "events dropped"), (health.dropped_batches, "batches dropped"),
        (health.rejected_batches, "batches rejected"), (health.bad_rows, "events with impossible times"),
        (m.snapshot.late_rows, "events too late for the window"),
        (m.snapshot.early_rows, "events in the future or with impossible times"),
    )  # fmt: skip
    lost = [(count, what) for count, what in parts if count]
    if lost:
        yield Seen(
            "not all of it was seen: " + ", ".join(f"{many(count)} {what}" for count, what in lost),
            "warn", "sure", "every loss is counted", tuple(Fact(what, count, "count") for count, what in lost),
        )  # fmt: skip


def _trouble(m: Measures) -> Iterator[Seen]:
    health = m.snapshot.health
    if health.state in ("lost", "failed", "hung", "reconnecting"):
        yield Seen(
            f"source {health.state}" + (f": {health.last_error or health.detail}" if health.detail else ""),
            "warn" if health.state == "reconnecting" else "breach", "sure", "the source says so", (),
        )  # fmt: skip


def _rule(
    id: str, look: Callable[[Measures], Iterable[Seen]], threshold: str, why: str, does_not_prove: str, next_action: str
) -> Rule:
    return Rule(
        id=id, look=look, inputs=("launch", "health", "notes"), threshold=threshold, why=why,
        does_not_prove=(does_not_prove,), next_action=next_action, topic="source", screen="overview", pane="source",
    )  # fmt: skip


RULES: Final = (
    _rule("profiler/orphans", _orphans, f"{ORPHANS:.0%} of executions", "their wait is in no percentile",
          "that they waited longer than the others", "record from before the first launch"),
    _rule("profiler/clocks", _clocks, f"{CLOCK:.1%} of joined executions", "a few are rounding",
          "which clock is wrong", "compare with a capture after a clock synchronisation"),
    _rule("profiler/nodes", _nodes, f"{NODES:.0%} of joined executions", "then waits are those of few launches",
          "that graph replay is on outside the profiler too", "judge launches by graph, not by kernel"),
    _rule("profiler/cut", _cut, "any", "what is missing is the end, often the interesting part",
          "that the missing rows look like these", "record again, and stop the recording cleanly"),
    _rule("source/losses", _losses, "any", "percentiles of part of the events are of that part",
          "that the lost events look like these", "lower the rate or filter at the producer"),
    _rule("source/state", _trouble, "any", "what is shown is from before", "that the device is in trouble",
          "see why the source stopped"),
)  # fmt: skip
