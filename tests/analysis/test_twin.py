"""The twin of a trace: what was simulated is found again, and what cannot be is said."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice, pairwise

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from twinrows import rows_of, scenario_trace

from fusetui.accelerator.runtime.arrivals import generator, poisson
from fusetui.accelerator.runtime.config import Batching, Config, Lookup, Placement, Slow
from fusetui.accelerator.runtime.load import Load
from fusetui.accelerator.runtime.paths import Path, PlanTable
from fusetui.accelerator.runtime.simulate import simulate
from fusetui.accelerator.scenario.build import Run
from fusetui.accelerator.scenario.parse import load_scenario
from fusetui.analysis.twin import Fit, Twin, twin_of
from fusetui.analysis.twin.requests import requests_of, sizes_of
from fusetui.sources.simulated_header import header_of
from fusetui.sources.simulated_steps import Steps
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import build_batch

_PLANS = PlanTable("p", Path.of([8, 16, 32], [100_000, 150_000, 260_000]), Path.of([8, 64], [300_000, 900_000]))


def _made(rows: list[pa.RecordBatch], header: Header | None = None) -> Twin:
    twin = twin_of(rows, header or Header())
    assert isinstance(twin, Twin), twin
    return twin


def _p99(twin: Twin) -> float:
    error = twin.fit.error[2]
    assert error is not None
    return abs(error)


def _load(n: int = 3000, rate: float = 4000.0, seed: int = 1) -> Load:
    tokens = np.array([8, 12, 16, 32, 50])[generator(seed, 9).integers(0, 5, n)]
    return Load.of(poisson(rate, n, seed), tokens)


@pytest.mark.parametrize(
    ("name", "seconds"),
    [("steady", 5), ("metastable-fallback", None), ("serving", 42), ("bucket-worse-than-eager", 25)],
)
def test_a_scenario_is_reproduced_to_the_nanosecond(name: str, seconds: float | None) -> None:
    frame, header = scenario_trace(name, seconds)
    twin = twin_of(frame, header)
    assert isinstance(twin, Twin)
    assert twin.exact
    assert twin.scenario is not None
    assert twin.hardware == twin.scenario.hardware
    assert np.array_equal(twin.outcome.latency_ns, twin.measured_ns)
    assert twin.fit.error == (0.0, 0.0, 0.0)


def test_a_later_round_of_a_live_simulation_is_found_again() -> None:
    scenario = replace(load_scenario("serving"), kernels=False)
    run = Run(scenario)
    steps = Steps(run, islice(run.rounds(), 2), 1_700_000_000 * 10**9)
    batches: list[pa.RecordBatch] = []
    while steps.position_ns < 100 * 10**9:
        batches += [b for b in (steps.batch(1),) if b is not None]
    frame = pl.from_arrow(pa.Table.from_batches(batches).unify_dictionaries())
    assert isinstance(frame, pl.DataFrame)
    window = frame.filter(pl.col("end_ns") > pl.col("end_ns").max() - 35 * 10**9)
    twin = twin_of(window, header_of(run, "epoch"))
    assert isinstance(twin, Twin)
    # Rounds are 60 s; the window is 5 s to 40 s of the second, which knows when its core 5 is slow.
    slow = [s for s in twin.config.slow if s.from_ns > 0]
    begins = twin.start_ns - 1_700_000_000 * 10**9
    assert [(s.core, s.from_ns + begins, s.to_ns + begins) for s in slow] == [(5, 88 * 10**9, 98 * 10**9)]
    assert twin.fit.good
    assert _p99(twin) < 0.02


def test_tables_lookup_and_latencies_are_read_off_telemetry() -> None:
    config = Config((_PLANS,), cores=2, lookup=Lookup((8, 16, 32), pad_limit=2.0))
    outcome = simulate(_load(), config)
    twin = _made(rows_of(outcome))
    assert not twin.exact
    assert twin.config.cores == 2
    lookup = twin.config.lookup
    assert isinstance(lookup, tuple)
    assert lookup[0].captured == (8, 16, 32)
    table = twin.config.tables[0]
    assert table.plan.rows.tolist() == [8, 16, 32]
    assert table.plan.kernel_ns.tolist() == [100_000, 150_000, 260_000]
    assert table.fallback.rows.tolist() == [50]
    assert np.array_equal(twin.outcome.jobs.mapping, outcome.jobs.mapping)
    assert np.array_equal(twin.outcome.latency_ns, outcome.latency_ns)


def test_data_dependent_work_is_kept_with_its_request() -> None:
    load = _load()
    work = np.exp(generator(3).normal(0, 0.3, len(load)))
    outcome = simulate(replace(load, work=work), Config((_PLANS,), cores=2, lookup=Lookup((8, 16, 32))))
    twin = _made(rows_of(outcome))
    # The median of a size stands for its plan, so that work is known up to one factor for each size.
    hit = load.tokens == 16
    ratio = twin.load.work[hit] / work[hit]
    assert np.allclose(ratio, ratio[0], rtol=1e-4)
    assert np.abs(twin.outcome.latency_ns - outcome.latency_ns).max() <= 50


@pytest.mark.parametrize("kind", ["round_robin", "least_loaded", "shared"])
def test_the_placement_is_the_one_that_fits_best(kind: str) -> None:
    placement = Placement(kind)  # type: ignore[arg-type]
    outcome = simulate(
        _load(rate=13_000.0), Config((_PLANS,), cores=4, lookup=Lookup((8, 16, 32)), placement=placement)
    )
    twin = _made(rows_of(outcome))
    assert twin.fit.good
    assert _p99(twin) < 0.05


def test_a_deadline_gate_is_found_with_its_size_and_wait() -> None:
    gate = Batching("deadline", 4, 500_000)
    outcome = simulate(_load(rate=6000.0), Config((_PLANS,), cores=4, batching=gate))
    twin = _made(rows_of(outcome))
    found = twin.config.batching_of(0)
    assert (found.kind, found.size) == ("deadline", 4)
    assert abs(found.wait_ns - 500_000) <= 10_000
    assert twin.fit.good


def test_a_slow_core_is_told_from_noise() -> None:
    load = _load(n=12_000, rate=9000.0)
    load = replace(load, work=np.exp(generator(4).normal(0, 0.1, len(load))))
    config = Config((_PLANS,), cores=4, placement=Placement("round_robin"), lookup=Lookup((8, 16, 32)))
    calm = _made(rows_of(simulate(load, config)))
    assert calm.config.slow == ()
    slow = Slow(2, 1.8, 400_000_000, 900_000_000)
    found = _made(rows_of(simulate(load, replace(config, slow=(slow,))))).config.slow
    assert [s.core for s in found] == [2]
    assert found[0].factor == pytest.approx(1.8, rel=0.05)
    assert abs(found[0].from_ns - slow.from_ns) < 60_000_000
    assert abs(found[0].to_ns - slow.to_ns) < 60_000_000


def test_a_continuous_batch_is_read_off_its_steps() -> None:
    frame, header = scenario_trace("metastable-fallback")
    twin = twin_of(frame, replace(header, source="measured"))
    assert isinstance(twin, Twin)
    assert not twin.exact
    assert twin.config.decode is not None
    batching, lookup = twin.config.batching, twin.config.lookup
    assert isinstance(batching, Batching)
    assert isinstance(lookup, Lookup)
    assert (batching.kind, batching.size) == ("continuous", 512)
    assert lookup.captured == (8, 16, 32, 64, 96, 128)
    assert twin.fit.good
    assert _p99(twin) < 0.06
    own = Run(load_scenario("metastable-fallback")).planned["steps"].table
    pairs = ((twin.config.decode.plan, own.plan, [8, 64, 128]), (twin.config.decode.fallback, own.fallback, [140, 200]))
    for fitted, model, at in pairs:
        took, should = (sum(path.time_ns(np.array(at))) for path in (fitted, model))
        assert np.allclose(took, should, rtol=0.02)


def test_open_requests_are_load_but_not_fit() -> None:
    outcome = simulate(_load(n=200), Config((_PLANS,)))
    rows = rows_of(outcome)
    last = int(outcome.end_ns.max())
    waiting = build_batch(
        {"kind": "request", "name": "serve", "enqueue_ns": [last + 1, last + 1, 5], "request": [900, 900, 0],
         "stream": "requests", "shape": "tokens=8"}, 3
    )  # fmt: skip
    twin = _made([waiting, *rows])
    assert len(twin.load) == 201
    assert twin.fit.n == 200
    assert twin.request[-1] == 900
    assert twin.measured_ns[-1] == -1
    assert (twin.request == 0).sum() == 1


def test_requests_that_end_before_they_came_are_left_out() -> None:
    rows = rows_of(simulate(_load(n=60), Config((_PLANS,))))
    wrong = build_batch(
        {"kind": "request", "name": "serve", "enqueue_ns": [900], "start_ns": [500], "end_ns": [600], "request": [77]}
    )
    twin = _made([wrong, *rows])
    assert len(twin.load) == 60
    assert any(note.startswith("1 requests that end before they came") for note in twin.notes)


def test_a_hidden_cause_is_said_to_be_missing() -> None:
    outcome = simulate(_load(n=500, rate=500.0), Config((_PLANS,)))
    # Something that no row tells of holds requests back before they begin.
    held = replace(outcome, start_ns=outcome.start_ns + 20_000_000, end_ns=outcome.end_ns + 20_000_000)
    jobs = replace(held.jobs, start_ns=held.jobs.start_ns + 20_000_000, end_ns=held.jobs.end_ns + 20_000_000)
    twin = _made(rows_of(replace(held, jobs=jobs)))
    assert not twin.fit.good
    assert twin.fit.text.endswith("causes are not shown")


def _only_latencies() -> pa.RecordBatch:
    """A client's log: it knows when it asked and when it was answered."""
    outcome = simulate(_load(n=100), Config((_PLANS,)))
    came = outcome.load.arrival_ns
    return build_batch({"kind": "request", "name": "r", "enqueue_ns": came, "start_ns": came, "end_ns": outcome.end_ns})


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([], "no requests"),
        (rows_of(simulate(_load(n=5), Config((_PLANS,)))), "5 requests ended"),
        ([_only_latencies()], "every request begins as it comes"),
        ([build_batch({"kind": "mark", "name": ["a"], "start_ns": [1], "end_ns": [1]})], "no requests"),
    ],
)
def test_why_there_is_none(rows: list[pa.RecordBatch], reason: str) -> None:
    said = twin_of(rows, Header())
    assert isinstance(said, str)
    assert said.startswith(reason)
    assert ": " in said
    assert "\n" not in said


def test_another_title_or_seed_is_another_scenario() -> None:
    frame, header = scenario_trace("steady", 5)
    other = replace(header, build={**header.build, "scenario": "steady: something else"})
    twin = twin_of(frame, other)
    assert isinstance(twin, Twin)
    assert not twin.exact
    assert twin.fit.good
    reseeded = twin_of(frame, replace(header, build={**header.build, "seed": "12"}))
    assert isinstance(reseeded, Twin)
    assert any("not those the scenario draws" in note for note in reseeded.notes)


def test_sizes_of_shapes() -> None:
    tokens, output = sizes_of(
        ["b=1 t=50 d=192 f32", "b=1 t=64 d=192 f32", "b=1 t=64 d=192 output=9"], np.ones(3, np.int64)
    )
    assert tokens.tolist() == [50, 64, 64]
    assert output.tolist() == [0, 0, 9]
    alone, _ = sizes_of(["b=2 t=50"], np.ones(1, np.int64))
    assert alone.tolist() == [100]
    unnamed, _ = sizes_of(["8x128", ""], np.ones(2, np.int64))
    assert unnamed.tolist() == [1, 1]


def test_fit_in_words() -> None:
    good = Fit(1000, (100, 200, 300), (101, 190, 303))
    assert good.good
    assert good.text == "model fit p50 +1 %, p95 -5 %, p99 +1 % (n = 1,000)"
    bad = Fit(1000, (100, 200, 300), (100, 200, 186))
    assert not bad.good
    assert bad.text == "model fit p50 +0 %, p95 +0 %, p99 -38 % (n = 1,000): causes are not shown"
    few = Fit(30, (100, 200, None), (100, 200, None))
    assert few.good
    assert "p99" not in few.text
    assert not Fit(0, (None, None, None), (None, None, None)).good


@settings(max_examples=20)
@given(st.lists(st.integers(1, 149), max_size=4), st.randoms(use_true_random=False))
def test_order_and_batching_of_rows_do_not_matter(cuts: list[int], random: object) -> None:
    requests, executions = rows_of(simulate(_load(n=150), Config((_PLANS,), cores=2, lookup=Lookup((8, 16, 32)))))
    whole = _made([requests, executions])
    edges = sorted({0, 150, *cuts})
    parts = [requests.slice(a, b - a) for a, b in pairwise(edges)] + [executions]
    random.shuffle(parts)  # type: ignore[attr-defined]
    twin = _made(parts)
    assert np.array_equal(twin.outcome.end_ns, whole.outcome.end_ns)
    assert np.array_equal(twin.request, whole.request)
    assert twin.fit == whole.fit


def test_missing_columns_are_absent() -> None:
    rows = rows_of(simulate(_load(n=300), Config((_PLANS,), cores=2)))
    frame = pl.from_arrow(pa.Table.from_batches(rows).unify_dictionaries())
    assert isinstance(frame, pl.DataFrame)
    came = requests_of(frame)
    assert came.cores == 2
    thin = frame.select("kind", "name", "enqueue_ns", "start_ns", "end_ns")
    twin = twin_of(thin, Header())
    assert isinstance(twin, Twin)
    assert any("no core is named" in note for note in twin.notes)
    assert twin.load.tokens.tolist() == [1] * 300
