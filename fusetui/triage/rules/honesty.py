"""Source honesty: numbers of one trace that cannot all be true."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import numpy as np

from fusetui.triage.counters import counters, total
from fusetui.triage.finding import Fact
from fusetui.triage.measures import Measures
from fusetui.triage.rule import Rule, Seen
from fusetui.triage.text import name, ns, num

FACTOR: Final = 1.5
FEWEST: Final = 2.0
FROZEN_SLOTS: Final = 8
QUANTUM_SHARE: Final = 0.05
QUANTUM_NS: Final = 100_000
LEAST: Final = 100
_GAUGE: Final = ("value", "name")


def _littles_law(m: Measures) -> Iterator[Seen]:
    snapshot = m.snapshot
    mean, span = snapshot.latency.mean_ns, snapshot.span_ns
    both = (*counters(snapshot, "waiting"), *counters(snapshot, "running"))
    if snapshot.latency_of != "request" or not both or mean is None or not span or snapshot.requests < LEAST:
        return
    if not counters(snapshot, "running"):
        return
    gauge = float(np.nanmean(total(both, len(snapshot.slot_start_ns))))
    by_rows = (snapshot.requests + (snapshot.open_waiting or 0) + (snapshot.open_running or 0)) / span * mean
    low, high = sorted((gauge, by_rows))
    if high - low < FEWEST or high < FACTOR * low:
        return
    yield Seen(
        f"Little's law fails: gauges say {num(gauge)} requests in the system, rate × latency says {num(by_rows)}",
        "warn", "sure", "on real servers the two agree within 2 %",
        (
            Fact("running and waiting, mean of the gauges", gauge, "count", _GAUGE),
            Fact("requests a second × mean latency", by_rows, "count", ("enqueue_ns", "end_ns")),
        ),
        contradicts=("queueing/tail",) if gauge < by_rows else (),
    )  # fmt: skip


def _waiting(m: Measures) -> Iterator[Seen]:
    """The queue by its gauge and by the rows, where rows tell of the same queue."""
    snapshot = m.snapshot
    gauges = counters(snapshot, "waiting")
    if not gauges or counters(snapshot, "running"):
        return
    gauge, depth = float(np.nanmean(total(gauges, len(snapshot.slot_start_ns)))), snapshot.depth.mean
    if depth is None:
        yield from _unseen_queue(m, gauge)
        return
    low, high = sorted((gauge, depth))
    if high - low < FEWEST or high < 2 * FACTOR * low:
        return
    yield Seen(
        f"the queue gauge says {num(gauge)} wait, the rows {num(depth)}: one sees another queue, or an old view",
        "warn", "likely", "both are means over the same window",
        (
            Fact("gauge, mean", gauge, "count", _GAUGE),
            Fact("depth by the rows, mean", depth, "count", ("enqueue_ns", "start_ns")),
        ),
        contradicts=("queueing/tail",),
    )  # fmt: skip


def _unseen_queue(m: Measures, gauge: float) -> Iterator[Seen]:
    if gauge < FEWEST or m.snapshot.latency.n == 0:
        return
    yield Seen(
        f"latency leaves the queue out: {num(gauge)} wait by the gauge, but no row says when work was enqueued",
        "warn", "sure", "without enqueue_ns latency begins at the start",
        (Fact("waiting, mean of the gauge", gauge, "count", _GAUGE),), contradicts=("tail/objective",),
    )  # fmt: skip


def _frozen(m: Measures) -> Iterator[Seen]:
    snapshot = m.snapshot
    done = snapshot.latency_series.n
    for series in (*counters(snapshot, "waiting"), *counters(snapshot, "running")):
        known = np.flatnonzero(~np.isnan(series.by_slot))
        values = series.by_slot[known]
        if len(values) < 2 * FROZEN_SLOTS or values[-1] <= 0:
            continue
        changes = np.flatnonzero(values != values[-1])
        first = 0 if not changes.size else int(changes[-1]) + 1
        if first == 0 or len(values) - first < FROZEN_SLOTS or done[known[first] + 2 :].sum() > 0:
            continue
        start = int(snapshot.slot_start_ns[known[first]])
        yield Seen(
            f"{name(series.label)} stands at {num(float(values[-1]))} while nothing finishes: a gauge nobody updates",
            "warn", "likely", "it moved before, and nothing ended since; a stuck server looks the same",
            (Fact("value", float(values[-1]), series.row.unit, _GAUGE),),
            subject=series.label, from_ns=start, since_ns=start,
        )  # fmt: skip


def _quantised(m: Measures) -> Iterator[Seen]:
    tail = m.snapshot.latency
    values = [
        tail.p50_ns,
        tail.p95_ns,
        tail.p99_ns,
        tail.max_ns,
        m.snapshot.queue_wait.p99_ns,
        m.snapshot.queue_wait.max_ns,
    ]
    known = sorted({value for value in values if value})
    if not tail.exact or tail.n < LEAST or len(known) < 2:
        return
    quantum = math.gcd(*known)
    if quantum < QUANTUM_NS or quantum < QUANTUM_SHARE * known[0]:
        return
    yield Seen(
        f"times come in steps of {ns(quantum)}: differences below that, and waits of less, are not in this trace",
        "warn", "likely", "every quantile is a multiple of it",
        (Fact("step", quantum, "ns", ("enqueue_ns", "start_ns", "end_ns")),), contradicts=("queueing/tail",),
    )  # fmt: skip


def _impossible(m: Measures) -> Iterator[Seen]:
    wait, latency = m.snapshot.queue_wait, m.snapshot.latency
    if m.snapshot.latency_of != "execution" or not wait.p99_ns or not latency.p99_ns:
        return
    if wait.n < latency.n * 0.9 or wait.p99_ns <= latency.p99_ns * 1.05:
        return
    yield Seen(
        f"queue wait p99 {ns(wait.p99_ns)} is over latency p99 {ns(latency.p99_ns)}", "warn", "sure",
        "a part cannot be longer than the whole",
        (Fact("queue wait p99", wait.p99_ns, "ns", ("enqueue_ns", "start_ns")),), contradicts=("queueing/tail",),
    )  # fmt: skip


def _completed_only(m: Measures) -> Iterator[Seen]:
    """Work piles up by the gauge, and no row tells of open work."""
    snapshot = m.snapshot
    if snapshot.open_waiting is not None or snapshot.latency.open_n or not counters(snapshot, "waiting"):
        return
    by_slot = total(counters(snapshot, "waiting"), len(snapshot.slot_start_ns))
    known = by_slot[~np.isnan(by_slot)]
    if len(known) < FROZEN_SLOTS or snapshot.latency.n == 0:
        return
    last = float(known[-max(len(known) // 8, 1) :].mean())
    rate = snapshot.latency.n / max(snapshot.span_ns or snapshot.now_ns - snapshot.window_start_ns, 1) * 1e9
    if last < max(FEWEST * 2, 2 * float(known[: len(known) // 2].mean())):
        return
    yield Seen(
        f"percentiles are of finished work only: {num(last)} still wait by the gauge, at {num(rate)}/s at least"
        f" {ns(last / rate * 1e9)} more",
        "warn", "likely", "no row tells of work that has not finished; the bound is Little's",
        (Fact("waiting at the end", last, "count", _GAUGE), Fact("share finished", snapshot.latency.n
              / (snapshot.latency.n + last), "share", ("end_ns",))),
        contradicts=("tail/objective",),
    )  # fmt: skip


def _rule(
    id: str,
    look: Callable[[Measures], Iterable[Seen]],
    inputs: str,
    threshold: str,
    why: str,
    does_not_prove: str,
    next_action: str,
) -> Rule:
    return Rule(
        id=id, about="counter", look=look, inputs=(inputs,),
        threshold=threshold, why=why, does_not_prove=(does_not_prove,),
        next_action=next_action, topic="source", screen="overview", pane="source",
    )  # fmt: skip


RULES: Final = (
    _rule("honesty/little", _littles_law, "counter_rows, requests, latency", f"{FACTOR}×, {FEWEST:.0f} requests apart",
          "gauges are read a few times a second", "which of the two is wrong", "count requests at the client"),
    _rule("honesty/queue", _waiting, "counter_rows, depth", f"{2 * FACTOR}× and {FEWEST:.0f} apart",
          "a view of a queue lags by a read", "which view is the queue's own", "read the queue where it is kept"),
    _rule("honesty/frozen", _frozen, "counter_rows, latency_series", f"{FROZEN_SLOTS} slots at one value, nothing ends",
          "an idle server's gauges are 0", "that the server is up", "ask the server for its state"),
    _rule("honesty/quantised", _quantised, "latency, queue_wait", "all quantiles multiples of ≥ 5 % of the least",
          "ns clocks share no such factor by chance", "that the work is regular", "record with a finer clock"),
    _rule("honesty/impossible", _impossible, "queue_wait, latency", "5 % over", "beyond the error of histograms",
          "which of the two is wrong", "look at the rows with the longest wait"),
    _rule("honesty/completed", _completed_only, "counter_rows, open_waiting", "twice the first half's, ≥ 4",
          "in an overload completed-only p95 read 10 s, the true one 61 s", "how long those that wait will take",
          "record open work, or take the gauge as the truth"),
)  # fmt: skip
