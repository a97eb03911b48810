"""The simulated accelerator as telemetry: deterministic, true to the engine, conserved, and inside the contract."""

from __future__ import annotations

import hashlib
import tempfile
import threading
import time
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from fusetui.accelerator.errors import AcceleratorError
from fusetui.accelerator.scenario.build import Run
from fusetui.accelerator.scenario.parse import load_scenario
from fusetui.accelerator.scenario.spec import Rates
from fusetui.sources.registry import open_source
from fusetui.sources.simulated import SimulatedSource
from fusetui.sources.simulated_header import header_of
from fusetui.sources.simulated_steps import STEP_NS, one_round
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.gate import conform
from fusetui.telemetry.schema import KINDS, SCHEMA

S = 1_000_000_000
T0 = 1_700_000_000 * S

SMALL = """
title = "two streams"
see = "a test"
seconds = 4
seed = {seed}
slo_ms = 20

[hardware]
name = "L4"
devices = 2
slices = 2

[[model]]
name = "llama"
block = "transformer-prefill"
shapes = {{ model = "llama-3-8b" }}
size = "sequence"
planned = [128, 256]
launch = "{launch}"

[[stream]]
name = "a"
per_s = 90
priority = 1
[[stream.mix]]
tokens = [128, 200, 600]
output = [1, 2, 3]

[[stream]]
name = "b"
per_s = 60
[[stream.mix]]
tokens = [128]

[[mark]]
at_s = 1.5
name = "half way"
"""


@cache
def run(seed: int = 5, launch: str = "graph") -> Run:
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(SMALL.format(seed=seed, launch=launch))
        file.flush()
        return Run(load_scenario(file.name))


def polled(seconds: float, step_s: float, of: Run, speed: float = 1.0) -> pa.Table:
    """Everything within `seconds`, polled every `step_s` of wall time."""
    now = [0]
    source = SimulatedSource(of, start_ns=T0, speed=speed, monotonic_ns=lambda: now[0])
    batches: list[pa.RecordBatch] = []
    while now[0] < seconds / speed * S:
        now[0] += int(step_s * S)
        batches += source.poll(60)
        while (source.now_ns() or T0) < T0 + int(now[0] * speed) // STEP_NS * STEP_NS:
            batches += source.poll(60)
    source.close()
    for batch in batches:
        assert conform(batch, "sim")[1] == 0
        assert batch.schema == SCHEMA
    assert source.health().rows == sum(b.num_rows for b in batches)
    return pa.Table.from_batches(batches, SCHEMA)


def frame_of(batches: list[pa.RecordBatch]) -> pl.DataFrame:
    frame = pl.from_arrow(pa.Table.from_batches(batches, SCHEMA).unify_dictionaries())
    assert isinstance(frame, pl.DataFrame)
    return frame.with_columns(pl.col(pl.Categorical).cast(pl.String))


def digest(table: pa.Table) -> str:
    return hashlib.sha256(pl.from_arrow(table).write_csv().encode()).hexdigest()  # type: ignore[union-attr]


@pytest.fixture(scope="module")
def told() -> pl.DataFrame:
    return frame_of(list(one_round(run())))


@pytest.fixture(scope="module")
def eager() -> pl.DataFrame:
    return frame_of(list(one_round(run(launch="eager"))))


def kind(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    return frame.filter(pl.col("kind") == name)


def done(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    return kind(frame, name).filter(pl.col("end_ns").is_not_null())


def test_the_same_seed_gives_the_same_rows_however_it_is_polled() -> None:
    whole = polled(9, 0.5, run())
    assert digest(whole) == digest(polled(9, 0.1, run()))
    assert digest(whole) == digest(polled(9, 0.25, run(), speed=2))
    assert digest(whole) != digest(polled(9, 0.5, run(6)))


def test_its_header_says_that_it_is_simulated_and_with_which_plans() -> None:
    header = header_of(run(), "epoch")
    assert header.source == "simulated"
    assert header.slo_ns == 20_000_000
    assert "no number is of a real device" in header.build["model"]
    assert header.build["seed"] == "5"
    assert header.hardware == {"devices": "2 × L4, modelled", "cores": "2 per device"}
    assert set(header.plans) == {"llama balanced 128", "llama balanced 256"}
    assert polled(1, 0.5, run()).column("kind").chunk(0).dictionary.to_pylist() == list(KINDS)


def test_requests_are_the_engines(told: pl.DataFrame) -> None:
    outcome = next(run().rounds()).outcome
    requests = done(told, "request").sort("request")
    assert requests["request"].to_list() == list(range(len(outcome.load)))
    for column, want in (("enqueue_ns", outcome.load.arrival_ns), ("start_ns", outcome.start_ns)):
        assert np.array_equal(requests[column].to_numpy(), want)
    assert np.array_equal(requests["end_ns"].to_numpy(), outcome.end_ns)
    assert set(requests["stream"]) == {"a", "b"}
    assert set(requests["shape"]) == {
        "tokens=128 output=1", "tokens=200 output=2", "tokens=600 output=3", "tokens=128 output=0",
    }  # fmt: skip


def test_a_request_spans_its_kernels_and_no_core_runs_two_at_once(told: pl.DataFrame) -> None:
    work = done(told, "execution")
    parts = work.group_by("request").agg(
        pl.col("start_ns").min().alias("first"), pl.col("end_ns").max().alias("last"), pl.len().alias("n")
    )
    joined = done(told, "request").join(parts, on="request", how="inner")
    assert len(joined) == len(done(told, "request"))
    assert (joined["first"] >= joined["start_ns"]).all()
    assert (joined["last"] == joined["end_ns"]).all()
    for _, rows in work.group_by("device", "core"):
        queue = rows.sort("start_ns")
        assert (queue["start_ns"].to_numpy()[1:] >= queue["end_ns"].to_numpy()[:-1]).all()
    assert set(work.select("device", "core").unique().iter_rows()) == {(d, c) for d in (0, 1) for c in (0, 1)}


def test_a_graph_waits_once_and_eager_launches_each_have_a_call(told: pl.DataFrame, eager: pl.DataFrame) -> None:
    graph = done(told, "execution").filter(pl.col("mapping") != "fallback")
    heads, nodes = graph.filter(pl.col("node") == 0), graph.filter(pl.col("node") > 0)
    assert (nodes["launch_ns"].is_null()).all()
    assert (heads["launch_ns"] > 0).all()
    assert (heads["start_ns"] >= heads["enqueue_ns"]).all()
    alone = done(eager, "execution")
    assert alone["node"].null_count() == len(alone)
    assert alone["launch_ns"].null_count() == 0
    per_request = alone.group_by("request").agg(pl.col("launch_ns").sum())
    outcome = next(run(launch="eager").rounds()).outcome
    launch = outcome.parts[:, 4]  # exposed launch time, by the engine
    got = per_request.sort("request")["launch_ns"].to_numpy()
    assert np.array_equal(got, launch)


def test_mappings_plans_and_groups(told: pl.DataFrame) -> None:
    work = done(told, "execution")
    seen = set(work.select("shape", "mapping", "plan").unique().iter_rows())
    assert seen == {
        ("sequence=128", "planned", "llama balanced 128"), ("sequence=200", "adapted", "llama balanced 256"),
        ("sequence=600", "fallback", None),
    }  # fmt: skip
    fallback = work.filter(pl.col("mapping") == "fallback")
    assert fallback["group"].null_count() == len(fallback)
    planned = work.filter(pl.col("mapping") == "planned").group_by("request").agg(pl.col("group").sort())
    assert {tuple(groups) for groups in planned["group"]} == {tuple(range(10))}


def test_rows_come_in_order_and_open_work_is_superseded(told: pl.DataFrame) -> None:
    ends = told.filter(pl.col("end_ns").is_not_null())["end_ns"].to_numpy()
    assert (np.maximum.accumulate(ends) - ends).max() <= STEP_NS
    requests = kind(told, "request").with_row_index("row")
    still = requests.filter(pl.col("end_ns").is_null())
    assert len(still) > 0
    over = requests.filter(pl.col("end_ns").is_not_null()).select("request", pl.col("row").alias("over"))
    both = still.join(over, on="request")
    assert len(both) == len(still)
    assert (both["row"] < both["over"]).all()
    waiting = kind(told, "execution").filter(pl.col("start_ns").is_null())
    assert waiting["core"].null_count() == len(waiting)


def test_counters_add_up_to_what_the_kernels_moved(told: pl.DataFrame) -> None:
    counters = kind(told, "counter")
    assert {tuple(pair) for pair in counters.select("name", "unit").unique().iter_rows()} == {
        ("DRAM traffic", "GB/s"), ("peak DRAM demand", "×"), ("waiting requests", None), ("running requests", None),
    }  # fmt: skip
    gb = counters.filter(pl.col("name") == "DRAM traffic")["value"].sum() / 2  # each covers half a second
    last_ns = counters["end_ns"].max()
    work = done(told, "execution").filter(pl.col("end_ns") <= last_ns)
    assert gb == pytest.approx((work["dram_bytes"].sum() or 0) / 1e9, rel=1e-3)
    peak = counters.filter(pl.col("name") == "peak DRAM demand")["value"]
    assert peak.max() > 0.2
    at = counters.filter(pl.col("name") == "waiting requests").select("end_ns", "value")
    requests = done(told, "request")
    for now, value in at.iter_rows():
        assert value == len(requests.filter((pl.col("enqueue_ns") <= now) & (pl.col("start_ns") > now)))


def test_marks_come_once_a_round() -> None:
    marks = pl.from_arrow(polled(9, 0.5, run()))
    assert isinstance(marks, pl.DataFrame)
    found = marks.filter(pl.col("kind").cast(pl.String) == "mark")
    assert ((found["end_ns"] - T0) / S).to_list() == [1.5, 5.5]


def test_jobs_can_be_told_whole() -> None:
    whole = Run(replace(run().scenario, kernels=False))
    frame = frame_of(list(one_round(whole)))
    outcome = next(whole.rounds()).outcome
    work = done(frame, "execution").sort("end_ns", "request")
    assert len(work) == len(outcome.jobs)
    assert set(work["name"]) == {"llama"}
    assert sorted(work["end_ns"].to_list()) == sorted(outcome.jobs.end_ns.tolist())


def test_a_round_too_large_to_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = run().scenario
    streams = (replace(scenario.streams[0], arrivals=Rates((0.0,), (1e6,))),)
    with pytest.raises(AcceleratorError, match="requests on stream a"):
        next(Run(replace(scenario, streams=streams)).rounds())
    monkeypatch.setattr("fusetui.sources.simulated_round.MOST_KERNELS", 1000)
    with pytest.raises(AcceleratorError, match='over 1,000; write tell = "jobs"'):
        next(one_round(run()))


def test_a_late_poll_does_not_catch_up() -> None:
    now = [0]
    source = SimulatedSource(run(), start_ns=T0, monotonic_ns=lambda: now[0])
    now[0] = 3600 * S
    source.poll(60)
    position = source.now_ns() or 0
    assert position == T0 + 2 * S
    now[0] += S
    source.poll(60)
    assert (source.now_ns() or 0) - position == S
    source.close()


def test_close_wakes_a_waiting_poll() -> None:
    source = SimulatedSource(run(), speed=0.001)
    threading.Timer(0.1, source.close).start()
    began = time.monotonic()
    assert source.poll(30) == ()
    assert time.monotonic() - began < 10
    assert source.health().state == "ended"


def test_a_poll_does_not_wait_longer_than_asked_for_a_round() -> None:
    def slow() -> None:
        time.sleep(2)

    source = SimulatedSource(run(), history_s=60)
    gate = source._ahead
    gate._coming = gate._pool.submit(slow)  # type: ignore[assignment]
    began = time.monotonic()
    assert source.poll(0.05) == ()
    assert time.monotonic() - began < 1
    source.close()


@pytest.mark.parametrize("speed", [0, -1, float("nan"), 2000])
def test_impossible_speeds_are_refused(speed: float) -> None:
    with pytest.raises(ValueError, match="is not above 0"):
        SimulatedSource(run(), speed=speed)


def test_a_scenario_with_a_log_is_for_simulate(tmp_path: Path) -> None:
    path = tmp_path / "log.toml"
    text = SMALL.format(seed=1, launch="graph").split("[[stream]]")[0]
    path.write_text(text + '[[stream]]\nname = "a"\nlog = "azure.csv"\n')
    with pytest.raises(TelemetryError, match="use `fusetui simulate"):
        open_source(f"sim:scenario={path}")
