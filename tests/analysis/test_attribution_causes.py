"""Causes on the twin: shares that add up, drivers that are what they say, and the reference scenario."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import pytest

from fusetui.accelerator.runtime.arrivals import generator, poisson
from fusetui.accelerator.runtime.config import Batching, Config, Lookup, Placement, Slow
from fusetui.accelerator.runtime.counterfactual import Driver
from fusetui.accelerator.runtime.load import Load
from fusetui.accelerator.runtime.outcome import GENERIC, PADDED, SLOW
from fusetui.accelerator.runtime.paths import Path, PlanTable
from fusetui.accelerator.runtime.simulate import simulate
from fusetui.analysis.attribution import drivers as d
from fusetui.analysis.attribution.causes import Causes, CausesAt, causes_of
from fusetui.analysis.attribution.columns import two_columns
from fusetui.analysis.attribution.kept import KeptCauses, key_of
from fusetui.analysis.attribution.parts import PARTS, Cohort, TailTime
from fusetui.analysis.twin import Twin
from fusetui.analysis.twin.model import fit_of
from fusetui.analysis.twin.requests import Requests

CORPUS = os.environ.get("FUSETUI_CORPUS")
SERVING = FilePath(CORPUS or ".") / "reference/serving"
TRACES = FilePath(CORPUS or ".") / "traces/serving"
PLAN = Path.affine(1e6, 1e3)


def twin(load: Load, config: Config) -> Twin:
    outcome = simulate(load, config)
    measured = outcome.latency_ns
    n = len(load)
    none = np.full(n, -1)
    came = Requests(
        np.arange(n), load.arrival_ns, outcome.start_ns, outcome.end_ns, load.stream, ("requests",),
        outcome.jobs.core[outcome.job], config.cores, none, (), load.tokens, load.output, none, none,
    )  # fmt: skip
    return Twin(load, config, outcome, fit_of(measured, outcome), 0, np.arange(n), measured, came)


def told(of: Twin, **options: Any) -> Causes:
    found = causes_of(of, **options)
    assert isinstance(found, Causes), found
    return found


def shares(at: CausesAt) -> dict[str, float]:
    return {row.name: row.share_ns for row in at.rows}


@pytest.fixture(scope="module")
def mixed() -> Twin:
    n = 3000
    load = Load.of(poisson(1500, n, 1), np.where(generator(1).random(n) < 0.03, 900, 100))
    table = PlanTable("p", PLAN.scaled(1.2), PLAN.scaled(6), best=PLAN)
    slow = (Slow(1, 2.0, 500_000_000, 1_000_000_000),)
    return twin(load, Config((table,), cores=4, lookup=Lookup(limit=512), placement=Placement("hashed"), slow=slow))


def test_shares_add_up_exactly_and_rows_are_largest_first(mixed: Twin) -> None:
    causes = told(mixed)
    for at in (causes.p95, causes.p99):
        assert sum(at.attribution.shares) == at.all_ns - at.none_ns == at.attribution.total
        assert [row.share_ns for row in at.rows] == sorted((row.share_ns for row in at.rows), reverse=True)
        assert {row.name for row in at.rows} == {d.QUEUEING, d.IMBALANCE, d.FUSION, d.FALLBACK}
    latency = np.sort(mixed.outcome.latency_ns)
    assert causes.p99.all_ns == latency[int(np.ceil(0.99 * len(latency))) - 1]
    without = {row.name: row.without_ns for row in causes.p99.rows}
    alone = simulate(mixed.load, replace(mixed.config, slow=(), placement=Placement("least_loaded"))).latency_ns
    assert without[d.IMBALANCE] == np.sort(alone)[int(np.ceil(0.99 * len(latency))) - 1]
    assert told(mixed, scale="log").p99.attribution.scale == "log"


def test_same_twin_same_causes_and_few_runs(mixed: Twin) -> None:
    assert told(mixed) == told(mixed)
    assert told(mixed).runs == 16


def test_a_twin_that_does_not_fit_tells_no_causes(mixed: Twin) -> None:
    poor = replace(mixed, fit=fit_of(mixed.measured_ns * 2, mixed.outcome))
    found = causes_of(poor)
    assert isinstance(found, str)
    assert found.endswith("causes are not shown")


def test_a_twin_without_cores_and_queue_tells_no_causes(mixed: Twin) -> None:
    nobody = replace(mixed.came, core=np.full(len(mixed.load), -1))
    assert isinstance(causes_of(replace(mixed, came=nobody)), Causes)
    apart = twin(mixed.load, replace(mixed.config, placement=Placement("unlimited"), slow=()))
    found = causes_of(replace(apart, came=nobody))
    assert isinstance(found, str)
    assert found.startswith("no core is named")


def test_giving_up_is_prompt(mixed: Twin) -> None:
    asked: list[int] = []

    def wanted() -> bool:
        asked.append(1)
        return len(asked) < 3

    assert causes_of(mixed, wanted=wanted) == "given up"
    assert len(asked) == 3


def test_kept_causes_are_worked_out_once(mixed: Twin) -> None:
    kept = KeptCauses()
    first = kept.of(mixed)
    assert kept.of(replace(mixed)) is first
    other = twin(mixed.load, replace(mixed.config, cores=5))
    assert key_of(other) != key_of(mixed)
    assert kept.of(other) != first
    assert kept.of(mixed, wanted=lambda: False) is first


def test_each_driver_takes_away_what_it_says(mixed: Twin) -> None:
    load, config = mixed.load, mixed.config
    fell = simulate(load, d.without_fallback(config))
    assert (fell.jobs.mapping == GENERIC).any()
    exact = PLAN.scaled(1.2).time_ns(load.tokens)[0]
    assert (fell.jobs.end_ns - fell.jobs.start_ns - fell.jobs.parts[:, SLOW] == np.rint(exact)).all()
    assert (
        simulate(load, d.without_queueing(config)).latency_ns.max() == np.rint(PLAN.time_ns(load.tokens)[0] * 6).max()
    )
    assert not simulate(load, d.without_imbalance(config)).parts[:, SLOW].any()
    padded = replace(config, lookup=Lookup((128, 512)))
    assert (simulate(load, padded).jobs.mapping == PADDED).any()
    unpadded = simulate(load, d.without_padding(padded)).jobs
    assert not (unpadded.mapping == PADDED).any()
    assert ((unpadded.mapping == GENERIC) == (unpadded.rows > 512)).all()


def test_a_plan_for_a_larger_size_never_takes_less_than_the_largest_that_ran() -> None:
    """Measured medians may fall towards the largest size: that is noise, and no reason to expect less of a larger."""
    plan = Path.of([24, 32, 64, 128], [37e6, 40e6, 47e6, 38e6])
    table = PlanTable("p", plan, Path.of([150, 200], [130e6, 210e6]))
    config = d.without_fallback(Config((table,), lookup=Lookup((24, 32, 64, 128))))
    at = config.tables[0].fallback.time_ns(np.array([24, 128, 150, 200]))[0]
    assert at[:2].tolist() == [37e6, 38e6]
    assert 38e6 < at[2] < at[3] < 47e6
    rising = replace(table, plan=Path.of([32, 64], [10e6, 20e6]))
    config = d.without_fallback(Config((rising,), lookup=Lookup((32, 64))))
    assert config.tables[0].fallback.time_ns(np.array([128]))[0].tolist() == [40e6]


def test_a_slow_core_stays_slow_without_its_queue() -> None:
    load = Load.of(np.arange(400) * 1_000_000, 1)
    config = Config((PlanTable("p", PLAN, PLAN),), cores=4, placement=Placement("round_robin"), slow=(Slow(2, 3.0),))
    causes = told(twin(load, config))
    assert shares(causes.p99) == {d.IMBALANCE: 2_002_000.0}
    assert causes.p99.named == d.IMBALANCE
    assert causes.left_out == (d.QUEUEING,)


def test_nothing_to_blame() -> None:
    quiet = twin(Load.of(np.arange(100) * 10**9, 1), Config((PlanTable("p", PLAN, PLAN),)))
    causes = told(quiet)
    assert causes.p99.named == ""
    assert causes.p99.all_ns == causes.p99.none_ns == 1_001_000


def test_time_and_cause_side_by_side(mixed: Twin) -> None:
    mean = tuple(float(10 * i) for i in range(len(PARTS)))
    cohort = Cohort(5, 1, 2, mean)
    rows = two_columns(TailTime("request", 100, 10, cohort, None, cohort), told(mixed).p99)
    by_name = {row.name: row for row in rows}
    assert by_name["fallback"].time_ns == 60.0
    assert by_name["fallback"].without_ns is not None
    assert by_name["contention"].without_ns is None
    assert "queue" not in by_name
    assert by_name["queueing"].time_share == 0.0
    assert sum(row.time_share for row in rows) == pytest.approx(1.0)
    causal = [row.share_ns for row in rows if row.share_ns is not None]
    assert causal == sorted(causal, reverse=True)
    assert [row.name for row in rows[: len(causal)]] == [row.name for row in told(mixed).p99.rows]


@pytest.mark.skipif(not CORPUS, reason="FUSETUI_CORPUS is not set")
def test_reference_scenario_of_a_real_trace() -> None:
    reference = json.loads((SERVING / "reference_attribution.json").read_text())
    lines = (TRACES / "Azure__AzurePublicDataset__AzureLLMInferenceTrace_conv.csv").read_text().split("\n")
    rows = [line.strip().split(",") for line in lines[1 : reference["n"] + 1]]
    at = np.array([row[0].replace(" ", "T") for row in rows], "datetime64[ns]").astype(np.int64)
    load = Load.of(at - at[0], [int(r[1]) for r in rows], [int(r[2]) for r in rows]).scaled(reference["speed"])
    fused = Path.affine(4e6, 6e3, output_ns=2e5)
    plain = fused.scaled(1.3)
    config = Config(
        (PlanTable("unfused", plain, plain.scaled(3), best=fused),), cores=4,
        batching=Batching("deadline", 8, 25_000_000, merge=False), lookup=Lookup(limit=4096),
        placement=Placement("hashed", weights=(0.30, 0.27, 0.23, 0.20)),
    )  # fmt: skip
    azure = twin(load, config)
    names = {d.QUEUEING: "contention", d.IMBALANCE: "imbalance", d.BATCHING: "batch_policy", d.FUSION: "unfused",
             d.FALLBACK: "fallback"}  # fmt: skip
    found, _ = d.drivers_of(load, config, azure.outcome)
    # In the reference the fallback of a fused plan is three times the fused plan, not the unfused one.
    own = Driver(d.FUSION, lambda c: replace(c, tables=(PlanTable("fused", fused, fused.scaled(3)),)))
    used = [own if driver.name == d.FUSION else driver for driver in found]
    assert {driver.name for driver in used} == set(names)
    for scale, unit, key in (("ns", 1e9, "shapley_p99_s"), ("log", 1.0, "shapley_p99_log")):
        causes = told(azure, drivers=used, scale=scale)
        exact = causes.p99.attribution
        got = {names[name]: float(share) / unit for name, share in zip(exact.drivers, exact.shares, strict=True)}
        assert got == pytest.approx(reference[key], abs=1e-6, rel=0)
        assert sum(exact.shares) == exact.total
    got95 = {names[name]: share / 1e9 for name, share in shares(causes.p95).items()}
    assert got95 == pytest.approx(reference["shapley_p95_s"], abs=1e-6, rel=0)
    removed = {names[row.name]: (causes.p99.all_ns - row.without_ns) / 1e9 for row in causes.p99.rows}
    assert removed == pytest.approx(reference["one_at_a_time_removal_p99_s"], abs=1e-6, rel=0)
    order = [names[driver.name] for driver in used]
    for on, value in enumerate(causes.p99.attribution.values):
        key = "".join("1" if order.index(name) in [i for i in range(5) if on >> i & 1] else "0"
                      for name in reference["names"])  # fmt: skip
        assert value / 1e9 == pytest.approx(reference["counterfactuals"][key]["p99"], abs=1e-6, rel=0)
    assert causes.p99.together[0][:2] in ((d.QUEUEING, d.FUSION), (d.FUSION, d.QUEUEING))
    assert causes.p99.named == d.QUEUEING
