"""Before and after that point two ways: each number alone would be read wrongly. Silent without a baseline."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import numpy as np

from fusetui.analysis.snapshot import Snapshot, StreamRow
from fusetui.triage.finding import Fact, Severity, SubjectKind
from fusetui.triage.measures import Measures
from fusetui.triage.rule import Rule, Seen
from fusetui.triage.text import name, num, pct

MOVED: Final = 0.1
LEAST: Final = 100
QUALITY: Final = ("accuracy", "quality", "perplexity", "loss", "error rate")
CHEAPER: Final = ("fp8", "int8", "int4", "fp4", "nvfp4", "mxfp", "sparse", "2:4")
_TIMES: Final = ("enqueue_ns", "start_ns", "end_ns")


def change(new: float | None, old: float | None) -> float | None:
    """new / old - 1, None where either is not known."""
    return None if new is None or not old else new / old - 1


def both_sides(m: Measures) -> Snapshot | None:
    """The baseline, where both sides have enough to compare p95."""
    base = m.baseline
    return base if base is not None and min(base.latency.n, m.snapshot.latency.n) >= LEAST else None


def _fact(text: str, moved: float, columns: tuple[str, ...] = _TIMES) -> Fact:
    return Fact(f"{text}, change against the baseline", moved, "share", columns)


def said(moved: float) -> str:
    """`+22 %`."""
    return f"{'+' if moved >= 0 else '−'}{pct(abs(moved))}"


def _launches(m: Measures) -> Iterator[Seen]:
    base = both_sides(m)
    if base is None or not base.latency.n or not m.snapshot.latency.n:
        return
    per_item = [(s.launch.exposed_ns or 0) / s.latency.n for s in (m.snapshot, base)]
    calls = [(s.launch.joined - s.launch.nodes) / s.latency.n for s in (m.snapshot, base)]
    exposed, count = change(*per_item), change(*calls)
    p95 = change(m.snapshot.latency.p95_ns, base.latency.p95_ns)
    fell = min(x for x in (exposed, count, 0.0) if x is not None)
    if p95 is None or fell > -MOVED or p95 < MOVED:
        return
    yield Seen(
        f"launch overhead fell ({said(fell)}) but p95 rose ({said(p95)})", "warn", "sure", "both are measured",
        (_fact("launch overhead per item", fell, ("launch_ns",)), _fact("p95", p95)), contradicts=("launch/tail",),
    )  # fmt: skip


def _utilisation(m: Measures) -> Iterator[Seen]:
    base = both_sides(m)
    if base is None:
        return
    busy = change(_busy(m.snapshot), _busy(base))
    rate = change(_rate(m.snapshot), _rate(base))
    if busy is None or rate is None or busy < MOVED or rate > busy / 3:
        return
    yield Seen(
        f"cores are busier ({said(busy)}) for the same throughput ({said(rate)})", "warn", "sure", "both are counted",
        (_fact("busy share of cores", busy), _fact("items a second", rate, ("end_ns",))),
    )  # fmt: skip


def _busy(snapshot: Snapshot) -> float | None:
    share = snapshot.cores.busy_share
    return float(np.nanmean(share)) if share.size and not np.isnan(share).all() else None


def _rate(snapshot: Snapshot) -> float | None:
    return snapshot.latency.n / snapshot.span_ns * 1e9 if snapshot.span_ns else None


def _mean(m: Measures) -> Iterator[Seen]:
    base = both_sides(m)
    if base is None:
        return
    mean = change(m.snapshot.latency.mean_ns, base.latency.mean_ns)
    tails = [change(m.snapshot.latency.p99_ns, base.latency.p99_ns),
             change(m.snapshot.latency.p95_ns, base.latency.p95_ns)]  # fmt: skip
    tail = next((one for one in tails if one is not None), None)
    if mean is None or tail is None or mean > -MOVED / 2 or tail < MOVED:
        return
    yield Seen(
        f"the mean got better ({said(mean)}), the tail worse ({said(tail)})", "warn", "sure", "both are of all items",
        (_fact("mean", mean), _fact("p99", tail)),
    )  # fmt: skip


def _streams(m: Measures) -> Iterator[Seen]:
    """A change that helps one stream and harms another."""
    base = both_sides(m)
    if base is None:
        return
    before = {row.name: row for row in base.streams}
    changes = []
    for row in m.snapshot.streams:
        if row.name in before and min(row.executions, before[row.name].executions) >= LEAST:
            moved = change(_in_system(row), _in_system(before[row.name]))
            if moved is not None:
                changes.append((moved, row.name))
    if not changes or min(changes)[0] > -MOVED or max(changes)[0] < MOVED:
        return
    (best, better), (most, worse) = min(changes), max(changes)
    yield Seen(
        f"one way for {name(better)} ({said(best)}), the other for {name(worse)} ({said(most)}): no single number"
        " says whether it is better",
        "warn", "sure", "time in the system per execution, wait and service, by stream",
        (_fact(f"time per execution on {name(better)}", best, ("stream", *_TIMES)),
         _fact(f"time per execution on {name(worse)}", most, ("stream", *_TIMES))),
    )  # fmt: skip


def _in_system(row: StreamRow) -> float:
    return row.demand_ns / max(row.executions, 1)


def _open_loop(m: Measures) -> Iterator[Seen]:
    """A benchmark that waits for its answers saw no queue; what serves now has one."""
    base = both_sides(m)
    if base is None or base.depth.mean is None or m.snapshot.depth.mean is None:
        return
    service = change(m.snapshot.service.p50_ns, base.service.p50_ns)
    if service is None or abs(service) > 2 * MOVED or base.depth.mean > 0.1 or m.snapshot.depth.mean < 1:
        return
    yield Seen(
        f"service is as in the baseline ({said(service)}), but {num(m.snapshot.depth.mean)} wait where it had no queue:"
        " a closed loop measures no queue",
        "warn", "likely", "waits are measured on both sides; that the baseline was a closed loop is inferred",
        (_fact("median service", service), Fact("queue depth, mean", m.snapshot.depth.mean, "count", _TIMES)),
    )  # fmt: skip


def _quality(m: Measures) -> Iterator[Seen]:
    base = both_sides(m)
    words = " ".join((*m.header.plans, *m.header.plans.values(), *m.snapshot.mapping_detail.shapes)).lower()
    old = "" if base is None else " ".join((*base.header.plans, *base.header.plans.values(),
                                            *base.mapping_detail.shapes)).lower()  # fmt: skip
    cheaper = [word for word in CHEAPER if word in words and word not in old]
    if base is None or not cheaper:
        return
    faster = change(m.snapshot.latency.p95_ns, base.latency.p95_ns)
    told = any(word in row.name.lower() for row in m.snapshot.counter_rows for word in QUALITY)
    if faster is None or faster > -MOVED / 2 or told:
        return
    severity: Severity = "warn"
    yield Seen(
        f"{cheaper[0]} makes p95 better ({said(faster)}), and nothing here tells of quality", severity, "sure",
        "no counter of quality is in the trace", (_fact("p95", faster),),
    )  # fmt: skip


def baseline_rule(
    id: str,
    look: Callable[[Measures], Iterable[Seen]],
    reads: str,
    not_proved: str,
    then: str,
    about: SubjectKind = "",
) -> Rule:
    """A contradiction: what it reads, what it does not prove, what to do next, what it is about."""
    return Rule(
        id=f"contradiction/{id}",
        look=look,
        inputs=(reads,),
        threshold=f"{MOVED:.0%} one way and the other, n ≥ {LEAST} on both sides",
        why="smaller changes are within what two runs differ by",
        does_not_prove=(not_proved,),
        next_action=then,
        topic="contradiction",
        screen="tail",
        pane="tail_drivers",
        about=about,
    )


RULES: Final = (
    baseline_rule(
        "launches", _launches, "launch, latency, baseline", "that fusing is the cause: the load may differ",
        "compare memory bursts and spills of both plans",
    ),
    baseline_rule(
        "utilisation", _utilisation, "cores.busy_share, latency.n, baseline",
        "that work is wasted: shapes may be larger", "compare work per item and padding",
    ),
    baseline_rule(
        "mean", _mean, "latency, baseline", "for whom it got worse", "compare the slowest per stream and shape",
    ),
    baseline_rule(
        "streams", _streams, "streams, baseline", "which stream matters more", "judge each against its own objective",
    ),
    baseline_rule(
        "open-loop", _open_loop, "depth, service, baseline", "that more load is the cause",
        "measure with arrivals that do not wait for answers",
    ),
    baseline_rule(
        "quality", _quality, "header.plans, counter_rows, baseline", "that quality suffered",
        "run the quality check before deciding",
    ),
)  # fmt: skip
