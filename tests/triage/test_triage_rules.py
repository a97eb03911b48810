"""Rules that no reported problem is about: capping, counters, profilers, honest sources, before and after."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from triage_rows import MS, S, Served, counter, marks, poisson, serve, snapshot, work

from fusetui.analysis.filter import parse_filter
from fusetui.analysis.snapshot import Snapshot
from fusetui.telemetry.header import Header
from fusetui.triage.blame import Blame
from fusetui.triage.finding import Finding
from fusetui.triage.judge import triage
from fusetui.triage.measures import measures_of
from fusetui.triage.rules import all_rules
from fusetui.triage.where import core_filter, equals, stream_filter

AT = np.arange(0, 40 * S, 250 * MS)
SLOW = AT >= 30 * S


def _found(taken: Snapshot, id: str, **more: Any) -> Finding | None:
    return next((finding for finding in triage(taken, **more).findings if finding.id == id), None)


def _slower(factor: float, **columns: Any) -> list[pa.RecordBatch]:
    """Evenly spaced work that takes `factor` times as long in the last ten seconds."""
    arrival = np.arange(0, 40 * S, 20 * MS)
    service = np.where(arrival >= 30 * S, 4 * MS * factor, 4 * MS).astype(np.int64)
    return work(serve(arrival, service), **columns)


def test_a_clock_that_falls_at_the_power_limit() -> None:
    rows = [*_slower(1.3), counter("sm clock", AT, np.where(SLOW, 1300, 1700), "MHz", 0),
            counter("power draw", AT, np.where(SLOW, 700, 600), "W", 0)]  # fmt: skip
    taken = snapshot(rows)
    capped = _found(taken, "power/clock")
    assert capped is not None
    assert capped.sentence.startswith("sm clock 0 fell 23.5 %, from 1700 to 1300 MHz, at the power limit")
    assert (capped.severity, capped.confidence, capped.topic) == ("warn", "likely", "device")
    assert capped.since_ns == pytest.approx(30 * S, abs=taken.slot_ns)
    assert [fact.value for fact in capped.evidence] == [1700.0, 1300.0]


def test_boost_that_wanders_is_no_capping() -> None:
    wanders = 1700 + 50 * np.sin(np.arange(len(AT)))
    assert _found(snapshot([*_slower(1.0), counter("sm clock", AT, wanders, "MHz", 0)]), "power/clock") is None


def test_a_device_that_says_it_is_capped() -> None:
    reported = _found(
        snapshot([*_slower(1.0), counter("clocks throttle reasons", AT, SLOW * 4.0, "", 0)]), "power/reported"
    )
    assert reported is not None
    assert reported.confidence == "sure"
    assert (
        reported.sentence == "the device says it is capped: clocks throttle reasons 0 in 24.6 % of the slots"
    )  # 29 of 118


@pytest.mark.parametrize(
    ("name", "unit", "calm", "bad", "id", "bottleneck"),
    [
        ("tensor core active", "%", 30, 92, "compute/counter", "compute"),
        ("DRAM active", "%", 30, 92, "bandwidth/counter", "DRAM bandwidth"),
        ("L2 throughput", "%", 30, 92, "onchip/counter", "on-chip bandwidth"),
        ("local memory spill", "B", 0, 5000, "spill/counter", "register/spill"),
    ],
)
def test_counters_that_fill_with_the_tail(name: str, unit: str, calm: int, bad: int, id: str, bottleneck: str) -> None:
    rows = [*_slower(3.0), counter(name, AT, np.where(SLOW, bad, calm), unit, 0)]
    found = triage(snapshot(rows))
    full = next(finding for finding in found.findings if finding.id == id)
    assert full.bottleneck == bottleneck
    assert found.first is not None
    assert found.first.id == id
    assert full.confidence == "likely"
    always = _found(snapshot([*_slower(3.0), counter(name, AT, bad, unit, 0)]), id)
    assert always is not None
    assert always.confidence == "possible"
    if id != "spill/counter":
        assert _found(snapshot([*_slower(3.0), counter(name, AT, 60, unit, 0)]), id) is None


def test_profiler_artefacts() -> None:
    arrival = np.arange(0, 10 * S, 10 * MS)
    n = len(arrival)
    served = serve(arrival, np.full(n, 2 * MS))
    known = pa.array(served.arrival, mask=np.arange(n) % 4 == 0)
    early = np.where(np.arange(n) % 50 == 1, served.start + 3 * MS, served.arrival)
    orphans = _found(snapshot(work(served, requests=False, enqueue_ns=known)), "profiler/orphans")
    assert orphans is not None
    assert orphans.evidence[0].value == n / 4
    wrong = _found(
        snapshot(work(served, requests=False, enqueue_ns=early, launch_ns=np.full(n, 1000))), "profiler/clocks"
    )
    assert wrong is not None
    assert wrong.evidence[0].value == n / 50
    assert "queueing/tail" in wrong.contradicts
    nodes = _found(snapshot(work(served, requests=False, node=(np.arange(n) % 10).astype(np.int32))), "profiler/nodes")
    assert nodes is not None
    assert nodes.evidence[0].value == 0.9 * n


def test_losses_and_cut_traces_are_findings() -> None:
    rows = _slower(1.0)
    lost = _found(snapshot(rows, dropped_rows=500, rejected_batches=2), "source/losses")
    assert lost is not None
    assert lost.sentence == "not all of it was seen: 500 events dropped, 2 batches rejected"
    cut = _found(snapshot(rows, missing=("trace.json: truncated after 3 of 5 parts",)), "profiler/cut")
    assert cut is not None
    gone = _found(replace(snapshot(rows), health=replace(snapshot(rows).health, state="lost")), "source/state")
    assert gone is not None
    assert gone.severity == "breach"


def test_littles_law() -> None:
    arrival = poisson(100, 40, 5)
    served = serve(arrival, np.full(len(arrival), 80 * MS), 16)
    there = [int(((served.arrival <= t) & (served.end > t)).sum()) for t in AT.tolist()]
    holds = [*work(served), counter("running requests", AT, there)]
    assert _found(snapshot(holds), "honesty/little") is None
    fails = _found(snapshot([*work(served), counter("running requests", AT, 2)]), "honesty/little")
    assert fails is not None
    assert fails.evidence[1].value == pytest.approx(8, rel=0.05)


def test_quantised_times() -> None:
    arrival = (poisson(50, 600, 6) // (3 * S)) * 3 * S
    late = np.random.default_rng(6).integers(0, 4, len(arrival))
    stepped = Served(arrival, arrival, arrival + 6 * S + late * 3 * S, np.arange(len(arrival)) % 8)
    found = _found(snapshot(work(stepped)), "honesty/quantised")
    assert found is not None
    assert found.evidence[0].value == 3 * S
    fine = poisson(50, 60, 6)
    assert _found(snapshot(work(serve(fine, np.full(len(fine), 5 * MS)))), "honesty/quantised") is None


def _versions() -> tuple[list[pa.RecordBatch], list[pa.RecordBatch]]:
    arrival = np.arange(0, 40 * S, 10 * MS)
    n = len(arrival)
    before = work(serve(arrival, np.full(n, 2 * MS)), launch_ns=np.full(n, 30_000))
    slow = np.where(np.arange(n) % 12 == 0, 5 * MS, 1 * MS)
    return before, work(serve(arrival, slow), launch_ns=np.full(n, 30_000))


def test_the_mean_and_the_tail_go_two_ways() -> None:
    before, after = _versions()
    mixed = _found(snapshot(after), "contradiction/mean", baseline=snapshot(before))
    assert mixed is not None
    assert [fact.value for fact in mixed.evidence] == pytest.approx([-1 / 3, 1.5], abs=0.01)
    assert _found(snapshot(before), "contradiction/mean", baseline=snapshot(before)) is None
    assert _found(snapshot(after), "contradiction/mean") is None


def test_launches_fell_but_p95_rose() -> None:
    arrival = np.arange(0, 20 * S, 20 * MS)
    n = len(arrival)

    def trace(per_request: int, service_ns: int) -> Snapshot:
        start = (arrival[:, None] + np.arange(per_request) * service_ns).ravel()
        owner = np.repeat(np.arange(n), per_request)
        runs = Served(start, start, start + service_ns, np.zeros(len(start), np.int64))
        whole = Served(arrival, arrival, arrival + per_request * service_ns, np.zeros(n, np.int64))
        launched = work(runs, requests=False, request=owner, launch_ns=np.full(len(start), 5000))
        return snapshot([*launched, work(whole)[1]])

    found = _found(trace(4, 4 * MS), "contradiction/launches", baseline=trace(10, 1 * MS))
    assert found is not None
    assert "p95 rose (+60.0 %)" in found.sentence


def test_busier_cores_for_the_same_throughput() -> None:
    arrival = np.arange(0, 40 * S, 20 * MS)
    busy, calm = (snapshot(work(serve(arrival, np.full(len(arrival), ns)))) for ns in (12 * MS, 6 * MS))
    assert _found(busy, "contradiction/utilisation", baseline=calm) is not None
    assert _found(calm, "contradiction/utilisation", baseline=busy) is None


def test_a_cheaper_type_without_evidence_of_quality() -> None:
    fast = Header(clock="trace", plans={"decode fp8": "batch 8"})
    arrival = np.arange(0, 40 * S, 20 * MS)
    old, new = (work(serve(arrival, np.full(len(arrival), ns))) for ns in (8 * MS, 5 * MS))
    base = snapshot(old, Header(clock="trace", plans={"decode bf16": "batch 8"}))
    assert _found(snapshot(new, fast), "contradiction/quality", baseline=base) is not None
    told = snapshot([*new, counter("accuracy", AT, 0.71)], fast)
    assert _found(told, "contradiction/quality", baseline=base) is None


def test_slower_kernels_at_a_lower_clock() -> None:
    arrival = np.arange(0, 40 * S, 20 * MS)

    def trace(ns: int, mhz: int) -> Snapshot:
        return snapshot([*work(serve(arrival, np.full(len(arrival), ns))), counter("sm clock", AT, mhz, "MHz", 0)])

    found = _found(trace(6 * MS, 1200), "contradiction/clocks", baseline=trace(5 * MS, 1440))
    assert found is not None
    assert found.evidence[0].value == pytest.approx(-1 / 6)
    assert _found(trace(6 * MS, 1440), "contradiction/clocks", baseline=trace(5 * MS, 1440)) is None


def test_shapes_outside_the_envelope() -> None:
    header = Header(clock="trace", plans={"p": "made for envelope: tokens=128 @ 0.7; tokens=256 @ 0.3"})
    arrival = np.arange(0, 40 * S, 20 * MS)
    shapes = np.where(np.arange(len(arrival)) % 2 == 0, "tokens=128", "tokens=4096")
    rows = work(serve(arrival, np.full(len(arrival), 4 * MS)), shape=shapes, plan="p", mapping="planned")
    mix = _found(snapshot(rows, header), "contradiction/mix")
    assert mix is not None
    assert "50.0 % outside" in mix.sentence


@dataclass
class _Row:
    """As much of a plan's measured group as the rules read."""

    plan: SimpleNamespace
    measured: SimpleNamespace
    residual: float
    verdict: str = "unexplained"


def _group(ops: str, predicted: float, took: float, bottleneck: str = "dram") -> _Row:
    plan = SimpleNamespace(ops=(ops,), predicted_ns=predicted, bottleneck=bottleneck)
    return _Row(plan, SimpleNamespace(p50_ns=took), took / predicted - 1)


def test_right_in_total_wrong_by_group() -> None:
    groups = (_group("qkv", 100.0, 150.0), _group("mlp", 100.0, 52.0, "compute"))
    taken = snapshot(_slower(1.0))
    found = _found(taken, "contradiction/groups", groups=groups)
    assert found is not None
    assert found.subject == "qkv"
    assert [fact.value for fact in found.evidence] == pytest.approx([0.01, 0.5])
    assert (
        _found(taken, "contradiction/groups", groups=(_group("qkv", 100.0, 104.0), _group("mlp", 50.0, 49.0))) is None
    )
    limit = _found(taken, "plan/dram", groups=groups)
    assert limit is not None
    assert (limit.bottleneck, limit.severity) == ("DRAM bandwidth", "info")
    assert limit.evidence[0].value == pytest.approx(150 / 202)


def test_marks_alone_are_no_recompile() -> None:
    stops = np.arange(1 * S, 39 * S, 2 * S)
    assert _found(snapshot([*_slower(1.0), marks("deploy", stops)]), "fallback/recompile") is None


@pytest.mark.parametrize("name", ["plain", 'with "double"', "with 'single'", "both \" and '", "a*b"])
def test_a_name_is_chosen_whatever_its_quotes(name: str) -> None:
    rows = [*_slower(1.0, stream=name), *_slower(1.0, stream="other")]
    only = parse_filter(stream_filter(snapshot(rows), name))
    assert only is not None
    assert [bool(only.mask(batch).all()) for batch in rows] == [True, True, False, False]
    assert parse_filter(equals("stream", name)) is not None


def test_streams_and_cores_of_hosts() -> None:
    rows = [*_slower(1.0, host="a", stream="s/1"), *_slower(1.0, host="b", stream="s/1")]
    taken = snapshot(rows)
    assert {row.name for row in taken.streams} == {"a/s/1", "b/s/1"}
    only = parse_filter(stream_filter(taken, "a/s/1"))
    assert only is not None
    assert [bool(only.mask(batch).all()) for batch in rows] == [True, True, False, False]
    assert core_filter(taken, "a/0/0") == '(host = "a") and (device = 0) and (core = 0)'
    assert core_filter(taken, "0/3") == "(device = 0) and (core = 3)"
    assert core_filter(taken, "(others)") == ""
    assert stream_filter(taken, "(no stream)") == ""


def test_a_stream_that_waits_most_is_a_note_where_its_own_work_is_the_cause() -> None:
    """Stream b waits nine times as long as it is served, a hardly at all."""
    came = np.arange(0, 20 * S, 10 * MS)
    a = Served(came, came + MS // 2, came + 5 * MS, np.zeros(2000, np.int64))
    b = Served(came, came + 45 * MS, came + 50 * MS, np.ones(2000, np.int64))
    found = measures_of(snapshot([*work(a, stream="a"), *work(b, stream="b", offset=2000)]))
    [rule] = [rule for rule in all_rules() if rule.id == "fairness/streams"]
    [alone] = rule.findings(replace(found, blame={}))
    assert (alone.severity, alone.confidence) == ("warn", "likely")
    assert alone.sentence.startswith("work of stream b is served 10.0 % of its time")
    [explained] = rule.findings(replace(found, blame={"fallback": Blame(cause=0.4)}))
    assert (explained.severity, explained.confidence) == ("info", "possible")
