"""Host-bound: time that no execution accounts for, slow launch calls, full CPUs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fusetui.analysis.attribution import parts
from fusetui.triage.blame import growth
from fusetui.triage.counters import counters, level
from fusetui.triage.finding import Fact
from fusetui.triage.measures import NAMED, Measures
from fusetui.triage.rule import Rule, Seen
from fusetui.triage.slots import work_per_item
from fusetui.triage.text import many, name, ns, pct, tail_text

PHANTOM: Final = 0.3
SLOW_CALLS: Final = 0.05
FULL: Final = 0.9


def _phantom(m: Measures) -> Iterator[Seen]:
    time = m.snapshot.tail_time
    if time is None or time.of != "request" or not time.executions or m.snapshot.mapping_detail.totals.compiles:
        return
    slowest = time.extreme or time.tail
    level_, grown = slowest.shares[parts.REST], growth(time, parts.REST)
    length = m.snapshot.now_ns - m.snapshot.window_start_ns
    # Of items as long as the window most executions lie before it.
    if level_ < PHANTOM or time.executions < time.items / 2 or slowest.latency_ns > length / 5:
        return
    if _slow_work(m, slowest.mean_ns[parts.REST] - time.median.mean_ns[parts.REST]):
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


def _slow_work(m: Measures, rest_ns: float) -> bool:
    """Whether executions that took longer than their like explain half of the rest, which holds that too."""
    service = m.snapshot.service
    spread = (service.p99_ns or service.max_ns or 0) - (service.p50_ns or 0)
    work = m.contrast and m.contrast.of(work_per_item(m.snapshot))
    grew = work[0] - work[1] if work else 0.0
    return max(float(spread), grew) >= rest_ns / 2


def _calls(m: Measures) -> Iterator[Seen]:
    launch = m.snapshot.launch
    if launch.joined < 100 or launch.runtime_outliers < SLOW_CALLS * launch.joined or launch.call.p99_ns is None:
        return
    yield Seen(
        f"{many(launch.runtime_outliers)} of {many(launch.joined)} launch calls took over 50 µs, p99"
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


RULES: Final = (
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
