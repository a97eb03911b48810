"""Host-bound: time that no execution accounts for, slow launch calls, full CPUs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fusetui.analysis.attribution.idle import Idle
from fusetui.triage.counters import counters, level
from fusetui.triage.finding import Fact
from fusetui.triage.measures import NAMED, Measures
from fusetui.triage.rule import Rule, Seen
from fusetui.triage.text import many, name, ns, pct, tail_text

PHANTOM: Final = 0.3
SLOW_CALLS: Final = 0.05
FULL: Final = 0.9
IDLE: Final = 0.3
LEAST: Final = 20
"""Executions from which idle time is of a program and not of its start."""
PAUSE: Final = 1_000_000
"""A gap from which it is no launch: calls take 3 to 200 µs, also under a profiler."""


def _phantom(m: Measures) -> Iterator[Seen]:
    time = m.snapshot.tail_time
    if time is None or time.of != "request" or not time.executions or m.snapshot.mapping_detail.totals.compiles:
        return
    slowest = time.extreme or time.tail
    level_ = slowest.bare_ns / max(slowest.latency_ns, 1.0)
    grown = max(slowest.bare_ns - time.median.bare_ns, 0.0) / max(slowest.latency_ns, 1.0)
    length = m.snapshot.now_ns - m.snapshot.window_start_ns
    # Of items as long as the window most executions lie before it.
    if level_ < PHANTOM or time.executions < time.items / 2 or slowest.latency_ns > length / 5:
        return
    yield Seen(
        f"{pct(level_)} of the slowest requests' time is in no execution and no queue: spent before, between or after"
        f" device work; {tail_text(m)}",
        "breach" if m.trouble == "breach" else "warn" if m.trouble or level_ >= 2 * PHANTOM else "info",
        "likely" if grown >= PHANTOM else "possible",
        "what no row accounts for is measured; that the host spends it is inferred",
        (Fact("share of the slowest's latency in no row", level_, "share", ("request", "start_ns", "end_ns")),),
        level_,
        max(grown, level_),
    )


def _calls(m: Measures) -> Iterator[Seen]:
    launch = m.snapshot.launch
    if launch.call.n < 100 or launch.runtime_outliers < SLOW_CALLS * launch.call.n or launch.call.p99_ns is None:
        return
    yield Seen(
        f"{many(launch.runtime_outliers)} of {many(launch.call.n)} launch calls took over 50 µs, p99"
        f" {ns(launch.call.p99_ns)}",
        "warn" if m.trouble and m.blamed("launch").cause >= NAMED else "info",
        "likely", "calls are timed", (Fact("launch call p99", launch.call.p99_ns, "ns", ("launch_ns",)),),
        cause=m.blamed("launch").cause, filter="launch > 50us",
    )  # fmt: skip


def _cpu(m: Measures) -> Iterator[Seen]:
    for series in counters(m.snapshot, "cpu"):
        bad, calm = level(series, m.contrast)
        if bad < FULL:
            continue
        yield Seen(
            f"host CPUs are {pct(bad)} busy while the tail is made" + ("" if calm is None else f", {pct(calm)} else"),
            "warn" if m.trouble else "info", "possible", "read beside the tail, not joined to it",
            (Fact(name(series.label), bad, "share", ("value", "unit", "name")),), subject=series.label,
        )  # fmt: skip


def _idle(m: Measures) -> Iterator[Seen]:
    """Of a program that drives a device, as profilers show it, or while requests are in progress."""
    idle = m.snapshot.idle
    if idle is None or idle.span_ns <= 0 or idle.idle_ns < IDLE * idle.span_ns:
        return
    asked = m.snapshot.latency_of == "request"
    share, paused = idle.idle_ns / idle.span_ns, idle.half_ns >= PAUSE
    # A pause before a launch counts as launch overhead of the step that it lies in.
    others = (blame.cause for driver, blame in m.blame.items() if not (paused and driver == "launch"))
    if m.snapshot.executions < LEAST or (asked and any(cause >= NAMED for cause in others)):
        return
    known = m.snapshot.columns_seen.get("launch_ns", 0) > 0
    yield Seen(
        f"the device stood idle for {pct(share)} of {ns(idle.span_ns)}"
        f"{' in which requests were in progress' if asked else ''}, {_gaps(idle)}",
        "warn",
        "likely" if known else "possible",
        "idle time is measured; that the host is what it waits for is inferred, and a profiler slows the host",
        (
            Fact("idle between executions", idle.idle_ns, "ns", ("device", "start_ns", "end_ns")),
            Fact("gaps", idle.gaps, "count", ("device", "start_ns", "end_ns")),
            Fact("the longest gap", idle.longest_ns, "ns", ("device", "start_ns", "end_ns")),
        ),
        cause=share,
        from_ns=idle.longest_at_ns if paused else None,
        to_ns=idle.longest_at_ns + idle.longest_ns if paused else None,
        next_action="see what the host did in the longest gap; without it, is the device busy?" if paused else "",
        fix="load data and warm up before what is timed; take a synchronisation out of the step" if paused else "",
    )  # fmt: skip


def _gaps(idle: Idle) -> str:
    """How the time is spread, and what that is like: a median of gaps would tell of the many that are none."""
    if idle.half == 1:
        how = f"{pct(idle.longest_ns / idle.idle_ns)} of that in one gap of {ns(idle.longest_ns)}"
    else:
        how = f"half of that in {many(idle.half)} gaps of {ns(idle.half_ns)} or more"
    if idle.half_ns < PAUSE:
        return f"{how}: as if the host could not keep up with it"
    return f"{how}, longer than launches take: loading, compiling, a synchronisation or the profiler's own work"


def _copies(m: Measures) -> Iterator[Seen]:
    idle = m.snapshot.idle
    if idle is None or idle.span_ns <= 0 or idle.copied_ns < IDLE * idle.span_ns:
        return
    share = idle.copied_ns / idle.span_ns
    kernels = idle.span_ns - idle.idle_ns - idle.copied_ns
    yield Seen(
        f"the device did nothing but copies and fills for {pct(share)} of {ns(idle.span_ns)}, kernels ran for"
        f" {pct(kernels / idle.span_ns)}",
        "warn",
        "likely",
        "both are measured; copies are known by their names",
        (
            Fact("only copies ran", idle.copied_ns, "ns", ("name", "device", "start_ns", "end_ns")),
            Fact("kernels ran", kernels, "ns", ("name", "device", "start_ns", "end_ns")),
        ),
        cause=share,
    )


RULES: Final = (
    Rule(
        id="host/copies", look=_copies, inputs=("idle",),
        threshold=f"{IDLE:.0%} of the time between its first and last execution",
        why="while a device copies for a third of the time, faster kernels gain little",
        does_not_prove=("that the link is slow: pageable memory halves it, and the copies may be needed",
                        "that kernels wait for the copies: see their order on the stream"),
        next_action="see what is copied, how often, and at how many bytes a second", bottleneck="host",
        stage="runtime queue", fix="keep what is copied again and again on the device, or copy it from pinned memory on"
        " a stream of its own while kernels run",
        rollback="copy it as before", screen="cores", pane="cores_busy",
    ),
    Rule(
        id="host/idle", look=_idle, inputs=("idle", "blame"),
        threshold=f"idle for {IDLE:.0%} of the time between its first and last execution",
        why="while a device waits for a third of the time, faster kernels gain little",
        does_not_prove=("that it is so without the profiler, which makes every call slower",
                        "that it waits for the host: it may wait for another device"),
        next_action="compare the time of a step with and without the profiler", bottleneck="host",
        stage="runtime queue", fix="capture the step as a graph, or fuse its short kernels: fewer calls for the host",
        rollback="turn the capture off", screen="queue", pane="launch",
    ),
    Rule(
        id="host/phantom", look=_phantom, inputs=("tail_time",), threshold=f"{PHANTOM:.0%} of the slowest's latency",
        why="a little is always left between rows",
        does_not_prove=("that the host spends it: work that was not traced looks the same",),
        next_action="trace the framework's own steps: tokenising, scheduling, sampling, sending",
        bottleneck="host", stage="completion", fix="move the step off the request's path",
        rollback="move it back", screen="tail", pane="tail_waterfall",
    ),
    Rule(
        id="host/calls", look=_calls, inputs=("launch.runtime_outliers", "launch.call"),
        threshold=f"{SLOW_CALLS:.0%} of calls over 50 µs", why="a launch call takes 3 to 10 µs on an idle host",
        does_not_prove=("that the device waited: work may have been queued in time",),
        next_action="see whether the stream stood idle meanwhile", bottleneck="host", stage="runtime queue",
        fix="pin the launching thread", rollback="unpin it", screen="queue", pane="launch",
    ),
    Rule(
        id="host/cpu", about="counter", look=_cpu, inputs=("counter_rows: cpu busy",),
        threshold=f"{FULL:.0%} while slow",
        why="below, the scheduler still finds a core", does_not_prove=("that launches waited for a CPU",),
        next_action="see which process has them", bottleneck="host", stage="runtime queue",
        fix="move other work off the machine", rollback="move it back", screen="cores", pane="counters",
    ),
)  # fmt: skip
