"""The closed loop: changes that hold on the requests that came, with figures; quiet where nothing is wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from twinrows import rows_of, scenario_trace

from fusetui.accelerator.runtime.arrivals import generator, poisson
from fusetui.accelerator.runtime.config import Batching, Config, Lookup, Placement, Slow
from fusetui.accelerator.runtime.load import Load, Stream
from fusetui.accelerator.runtime.paths import Path, PlanTable
from fusetui.accelerator.runtime.simulate import simulate
from fusetui.analysis.filter import parse_filter
from fusetui.analysis.retune import Retuned, retune
from fusetui.analysis.retune.compiles import Compiles, fewer_compiles
from fusetui.analysis.retune.paths import like, split
from fusetui.analysis.retune.silent import silent_fallback
from fusetui.analysis.retune.verify import Proposal, judge
from fusetui.analysis.twin import Twin, twin_of
from fusetui.analysis.twin.model import tail_of
from fusetui.telemetry.header import Header


def _scenario(name: str, seconds: float | None = None) -> tuple[Twin, Retuned]:
    frame, header = scenario_trace(name, seconds)
    twin = twin_of(frame, header)
    assert isinstance(twin, Twin)
    return twin, retune(twin)


def _of(rows: list[pa.RecordBatch]) -> tuple[Twin, Retuned]:
    twin = twin_of(rows, Header())
    assert isinstance(twin, Twin), twin
    return twin, retune(twin)


def _titled(proposals: tuple[Proposal, ...], part: str) -> Proposal:
    found = [p for p in proposals if part in p.action.title]
    assert found, [p.action.title for p in proposals]
    return found[0]


def _holds_again(twin: Twin, proposal: Proposal) -> None:
    """The figures are those of the same requests simulated with the change."""
    assert proposal.action.change is not None
    load, config = proposal.action.change(twin.load, twin.config)
    assert np.array_equal(load.arrival_ns, twin.load.arrival_ns)
    assert np.array_equal(load.work, twin.load.work)
    assert tail_of(simulate(load, config).latency_ns) == proposal.after_ns
    for told, measured in zip(proposal.before_ns, tail_of(twin.measured_ns[twin.measured_ns >= 0]), strict=True):
        assert told == pytest.approx(measured, rel=0.05)


def test_a_metastable_fallback_is_silent_found_and_fixed() -> None:
    frame, _ = scenario_trace("metastable-fallback")
    evidence = silent_fallback(frame)
    assert evidence is not None
    assert evidence["of"] == "steps"
    assert evidence["fallback_share"] == 1.0
    assert evidence["batch_during"] > evidence["largest_planned"] > evidence["batch_before"]
    # Neither the queue nor the rate tells: under one request waits, and as many are served as before.
    assert max(evidence["depth_before"], evidence["depth_during"]) < 1
    assert evidence["rate_during"] / evidence["rate_before"] == pytest.approx(1, abs=0.05)
    assert 15 <= evidence["from_ns"] / 1e9 <= 17.5
    twin, found = _scenario("metastable-fallback")
    cap = _titled(found.verified, "cap the running batch at 128")
    raised = _titled(found.verified, "raises the limit from 128 to 512")
    for proposal in (cap, raised):
        _holds_again(twin, proposal)
        assert proposal.action.bottleneck == "fallback"
        assert (proposal.change[0] or 0) < -0.4
        assert proposal.harm == ()
    assert (raised.change[2] or 0) < -0.1
    assert "fallback" in cap.action.slice.filter
    rejected = _titled(found.rejected, "raises the limit from 128 to 256")
    assert rejected.reason.startswith("the tail gets worse")


def test_the_same_is_found_without_the_scenario() -> None:
    frame, header = scenario_trace("metastable-fallback")
    twin = twin_of(frame, replace(header, source="measured"))
    assert isinstance(twin, Twin)
    found = retune(twin)
    cap = _titled(found.verified, "cap the running batch at 128")
    assert (cap.change[0] or 0) < -0.4
    beyond = _titled(found.unverified, "add buckets 192, 288, 432, 512 (raises the limit from 128 to 512)")
    assert "no plan of 512 or more ran" in beyond.reason


def test_a_bucket_worse_than_eager_is_padded_to_no_more() -> None:
    twin, found = _scenario("bucket-worse-than-eager", 35)
    less = _titled(found.verified, "pad to at most 2.5 times the size (now 3)")
    _holds_again(twin, less)
    assert (less.change[1] or 0) < -0.3
    # Dropping the bucket does the same: nothing else runs in it.
    dropped = _titled((*found.verified, *found.instead), "drop bucket 8192")
    assert dropped.after_ns == less.after_ns
    assert dropped.action.owner == "compiler"
    own = _titled(found.verified, "add buckets 3208")
    assert own.gain > less.gain
    assert own.action.slice.filter == 'shape = "tokens=3208"'
    assert own.action.slice.from_ns >= 20 * 10**9
    assert found.together_ns == own.after_ns
    shown = parse_filter(own.action.slice.filter)
    assert shown is not None
    frame, _ = scenario_trace("bucket-worse-than-eager", 35)
    rows = sum(len(shown.apply(b)) for b in _batches(frame))
    assert rows >= 2 * int((twin.load.tokens == 3208).sum())


def _batches(frame) -> list[pa.RecordBatch]:  # type: ignore[no-untyped-def]
    from fusetui.telemetry.schema import SCHEMA

    table = frame.to_arrow().select(SCHEMA.names).cast(SCHEMA)
    return list(table.to_batches())


def test_drifted_shapes_get_buckets_of_their_own() -> None:
    twin, found = _scenario("shape-drift")
    more = _titled(found.verified, "add buckets 150, 300, 600, 900, 1200, 1800 (raises the limit from 1024 to 1800)")
    _holds_again(twin, more)
    assert all((change or 0) < -0.3 for change in more.change)
    assert more.action.cost.plans == 6
    assert more.action.cost.memory_bytes is not None
    assert more.action.rollback == "capture 128, 256, 512, 1024 as before"


def test_over_fusion_is_undone_and_most_of_the_launches_stay_saved() -> None:
    twin, found = _scenario("case-study", 10)
    both = (*found.verified, *found.instead)
    balanced, capped = _titled(both, "policy balanced (now aggressive)"), _titled(both, "cap fusion group")
    for proposal in (balanced, capped):
        _holds_again(twin, proposal)
        assert (proposal.change[1] or 0) < -0.05
        launches = next(text for text in proposal.action.detail if text.startswith("launches a job"))
        assert int(launches.split(": ")[-1].split("%")[0]) > 80
    assert len([p for p in found.verified if p.action.knob.startswith("fusion")]) == 1


@pytest.mark.parametrize(("name", "seconds"), [("steady", 20), ("burst", 20)])
def test_nothing_is_proposed_where_no_change_helps(name: str, seconds: float) -> None:
    _, found = _scenario(name, seconds)
    assert found.verified == ()
    assert found.unverified == ()
    assert found.together_ns is None


def test_a_straggler_asks_for_placement_by_load() -> None:
    twin, found = _scenario("straggler")
    moved = found.verified[0]
    _holds_again(twin, moved)
    assert moved.action.knob == "placement"
    assert moved.action.bottleneck == "imbalance"
    assert (moved.change[2] or 0) < -0.15
    assert (twin.config.slow[0].core, len(twin.config.slow)) == (6, 1)


def test_who_pays_is_named() -> None:
    plans = PlanTable("p", Path.of([1, 100], [100_000, 8_000_000]), Path.of([1], [100_000]))
    n = 4000
    stream = (generator(1, 5).random(n) < 0.1).astype(np.int64)
    load = Load.of(
        poisson(900.0, n, 1), np.where(stream == 1, 100, 1), stream=stream, streams=(Stream("short"), Stream("long"))
    )
    twin, found = _of(rows_of(simulate(load, Config((plans,)))))
    first = _titled((*found.verified, *found.rejected), "short: serve before the others")
    assert first.after_ns is not None
    assert any(harm.stream == "long" and harm.after_ns > harm.before_ns for harm in first.harm)
    assert not any(harm.stream == "short" for harm in first.harm)
    assert first.action.slice.filter == 'stream = "short"'
    _holds_again(twin, first)


def test_a_gate_that_holds_back_is_made_shorter() -> None:
    plans = PlanTable("p", Path.of([1], [50_000]), Path.of([1], [50_000]))
    load = Load.of(poisson(1000.0, 3000, 2), 1)
    twin, found = _of(rows_of(simulate(load, Config((plans,), cores=2, batching=Batching("deadline", 16, 4_000_000)))))
    shorter = _titled(found.verified, "deadline 2.00 ms (now 4.00 ms)")
    assert shorter.action.bottleneck == "batching"
    _holds_again(twin, shorter)
    assert (shorter.change[1] or 0) < -0.3


def _sizes_that_take(times: dict[int, int], spread: float) -> list[pa.RecordBatch]:
    sizes = np.array(list(times))
    plans = PlanTable("p", Path.of(sizes, list(times.values())), Path.of([1], [10_000_000]))
    n = 1500
    tokens = sizes[generator(2, 7).integers(0, len(sizes), n)]
    work = np.exp(generator(5).normal(0, spread, n))
    load = Load.of(poisson(300.0, n, 3), tokens, work=work)
    return rows_of(simulate(load, Config((plans,))))


@pytest.mark.parametrize(("slower", "spread", "proposed"), [(1.5, 0.02, True), (1.05, 0.02, False), (1.5, 6.0, False)])
def test_padding_needs_measured_history(slower: float, spread: float, proposed: bool) -> None:
    base = 1_000_000
    _, found = _of(_sizes_that_take({392: round(base * slower), 488: base, 520: base * 2}, spread))
    titles = [p.action.title for p in (*found.verified, *found.rejected, *found.unverified)]
    assert ("pad 392 to 488" in titles) is proposed


def test_what_was_never_measured_is_not_verified() -> None:
    plans = PlanTable("p", Path.of([128, 256], [500_000, 900_000]), Path.of([1], [3_000_000]))
    tokens = np.array([128, 256, 200, 700])[generator(4, 7).integers(0, 4, 1200)]
    load = Load.of(poisson(500.0, 1200, 4), tokens)
    twin, found = _of(rows_of(simulate(load, Config((plans,), lookup=Lookup((128, 256))))))
    assert not twin.exact
    beyond = _titled(found.unverified, "add buckets 700 (raises the limit from 256 to 700)")
    assert beyond.after_ns is None
    assert "no plan of 700 or more ran" in beyond.reason
    far = [p for p in found.verified if "700" in p.action.title]
    assert far == []


def test_a_twin_that_does_not_fit_verifies_nothing() -> None:
    plans = PlanTable("p", Path.of([8], [200_000]), Path.of([8], [200_000]))
    load = Load.of(poisson(4000.0, 2000, 5), 8)
    config = Config((plans,), cores=2, placement=Placement("round_robin"), slow=(Slow(1, 3.0),))
    outcome = simulate(load, config)
    held = replace(outcome, start_ns=outcome.start_ns + 10**8, end_ns=outcome.end_ns + 10**8)
    jobs = replace(held.jobs, start_ns=held.jobs.start_ns + 10**8, end_ns=held.jobs.end_ns + 10**8)
    twin, found = _of(rows_of(replace(held, jobs=jobs)))
    assert not twin.fit.good
    assert found.verified == ()
    assert all("causes are not shown" in p.reason for p in found.unverified if p.after_ns is not None)


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ((100, 200, 300), (100, 180, 300), ""),
        ((100, 200, 300), (115, 180, 280), ""),
        ((100, 200, 300), (130, 180, 280), "the median pays"),
        ((100, 200, 300), (80, 200, 300), ""),
        ((100, 200, 300), (80, 200, 310), "the tail gets worse"),
        ((100, 200, 300), (80, 200, 308), ""),
        ((100, 200, 300), (98, 195, 290), "gains less"),
        ((100, 200, None), (100, 150, None), ""),
        ((100, None, None), (90, None, None), ""),
    ],
)
def test_what_holds(before: tuple[int, int, int], after: tuple[int, int, int], reason: str) -> None:
    assert judge(before, after).startswith(reason)
    assert bool(judge(before, after)) is bool(reason)


def test_paths_with_other_kernels() -> None:
    coarse = Path(
        np.array([1, 2]), np.array([0, 2, 4]), ("a + b + c", "d", "a + b + c", "d"), np.array([9.0, 1.0, 20.0, 2.0]),
        np.zeros(4), np.arange(4.0), np.zeros(4), np.zeros(4),
    )  # fmt: skip
    fine = Path(
        np.array([1, 2]), np.array([0, 3, 5]), ("a", "b + c", "d", "a", "d"), np.array([2.0, 3.0, 1.0, 5.0, 2.0]),
        np.ones(5), np.zeros(5), np.zeros(5), np.zeros(5),
    )  # fmt: skip
    cut = split(coarse, fine, "a + b + c")
    # At size 2 the finer path has no kernels for b and c: the group stays as it is.
    assert cut.names == ("a", "b + c", "d", "a + b + c", "d")
    assert cut.kernel_ns.tolist() == [2.0, 3.0, 1.0, 20.0, 2.0]
    assert cut.launch_ns.tolist() == [1.0, 1.0, 0.0, 0.0, 0.0]
    assert cut.first.tolist() == [0, 3, 5]
    assert like(coarse, 2, 1).kernel_ns.tolist() == [9.0, 1.0, 9.0, 1.0]


def test_recompiles_are_told_without_requests() -> None:
    static = Compiles(8, 21_000_000_000, 8, 0, 21_000_000_000, {"a": (2, 10), "b": (2, 30)})
    dynamic = Compiles(1, 5_000_000_000, 1, 0, 5_000_000_000, {"a": (2, 20), "b": (2, 40)})
    alone = fewer_compiles(static, 22_000_000_000, None)
    assert alone is not None
    assert alone.state == "unverified"
    assert alone.action.why == "8 compiles for 8 shapes took 21.0 s of the 22.0 s looked at"
    shown = fewer_compiles(static, None, dynamic)
    assert shown is not None
    assert shown.state == "measured"
    assert shown.reason == "another capture has 1 compile in 5.00 s instead of 8 in 21.0 s"
    assert shown.action.detail == (
        "runs of the 2 shapes that are in both: 10.0 ns each before (n = 4), 15.0 ns after (n = 4)",
    )
    assert shown.action.cost.stall_ns == 5_000_000_000
    assert fewer_compiles(dynamic, None, None) is None
    worse = fewer_compiles(static, None, replace(dynamic, n=9))
    assert worse is not None
    assert worse.state == "unverified"
