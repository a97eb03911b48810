"""The made-up load: determinism, real queueing, conservation, and the story it tells."""

from __future__ import annotations

import hashlib
import threading
import time

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusetui.sources.load import LoadSource
from fusetui.sources.load_device import CHUNK_NS, Device
from fusetui.sources.load_work import ROWS_PER_REQUEST
from fusetui.telemetry.schema import KINDS, SCHEMA

S = 1_000_000_000
T0 = 1_700_000_000 * S


def simulate(seconds: float, step_s: float = 0.5, **options: float) -> pa.Table:
    """Everything within `seconds`, polled every `step_s`."""
    now = [0]
    source = LoadSource(start_ns=T0, monotonic_ns=lambda: now[0], **options)  # type: ignore[arg-type]
    batches: list[pa.RecordBatch] = []
    speed = options.get("speed", 1.0)
    while now[0] < seconds / speed * S:
        now[0] += int(step_s * S)
        batches += source.poll(0)
    for batch in batches:
        batch.validate(full=True)
        assert batch.schema == SCHEMA
    assert source.health().rows == sum(b.num_rows for b in batches)
    return pa.Table.from_batches(batches, SCHEMA)


def digest(table: pa.Table) -> str:
    return hashlib.sha256(pl.from_arrow(table).write_csv().encode()).hexdigest()  # type: ignore[union-attr]


@pytest.fixture(scope="module")
def minute() -> pl.DataFrame:
    frame = pl.from_arrow(simulate(60, seed=3, rate=2000))
    assert isinstance(frame, pl.DataFrame)
    return frame.with_columns(pl.col(pl.Categorical).cast(pl.String))


def kind(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    return frame.filter(pl.col("kind") == name)


def test_the_same_seed_gives_the_same_rows_however_it_is_polled() -> None:
    whole = simulate(6, seed=5, rate=3000)
    assert digest(whole) == digest(simulate(6, step_s=0.1, seed=5, rate=3000))
    assert digest(whole) == digest(simulate(6, step_s=0.25, seed=5, rate=3000, speed=2))
    assert digest(whole) != digest(simulate(6, seed=6, rate=3000))


def test_its_header_and_words_are_the_contracts() -> None:
    table = simulate(1)
    assert LoadSource().header.source == "synthetic load"
    assert table.column("kind").chunk(0).dictionary.to_pylist() == list(KINDS)


def test_a_core_serves_first_come_first_served_and_never_two_at_once(minute: pl.DataFrame) -> None:
    for (_, _), rows in kind(minute, "execution").group_by("device", "core"):
        queue = rows.sort("enqueue_ns", "start_ns")
        enqueue, start, end = (queue[name].to_numpy() for name in ("enqueue_ns", "start_ns", "end_ns"))
        assert (start >= enqueue).all()
        # Work still running at the end is not told, so the last rows of a core may have a gap before them.
        assert (start[1:] == np.maximum(enqueue[1:], end[:-1])).all()


def test_every_request_that_came_is_done_or_open(minute: pl.DataFrame) -> None:
    requests = kind(minute, "request")
    done = requests.filter(pl.col("end_ns").is_not_null())
    at_end = requests.filter(pl.col("end_ns").is_null() & (pl.col("request") >= 0))
    assert done["request"].is_unique().all()
    known = set(done["request"]) | set(at_end["request"])
    assert known == set(range(max(known) + 1)), "none is lost"
    assert abs(len(known) / 60 - 2000 / ROWS_PER_REQUEST) < 0.1 * 2000 / ROWS_PER_REQUEST


def test_a_request_spans_its_executions(minute: pl.DataFrame) -> None:
    done = kind(minute, "request").filter(pl.col("end_ns").is_not_null())
    parts = kind(minute, "execution").group_by("request", "stream").agg(
        pl.col("start_ns").min().alias("first"), pl.col("end_ns").max().alias("last"), pl.len().alias("n"),
        pl.col("launch_ns").min(), pl.col("enqueue_ns").min().alias("queued"),
    )  # fmt: skip
    joined = done.join(parts, on=["request", "stream"], how="inner")
    assert len(joined) == len(done)
    assert (joined["start_ns"] == joined["first"]).all()
    assert (joined["end_ns"] == joined["last"]).all()
    assert (joined["queued"] > joined["enqueue_ns"]).all()
    per_stream = {name: set(rows["n"]) for (name,), rows in joined.group_by("stream")}
    assert per_stream == {"prefill": {12}, "decode": {6}, "embed": {3}}


def test_rows_come_in_order_of_completion(minute: pl.DataFrame) -> None:
    ends = minute.filter(pl.col("end_ns").is_not_null())["end_ns"].to_numpy()
    late = np.maximum.accumulate(ends) - ends
    assert late.max() <= CHUNK_NS


def test_open_requests_are_told_once_a_second_and_superseded(minute: pl.DataFrame) -> None:
    requests = kind(minute, "request").with_row_index("row")
    open_ = requests.filter(pl.col("end_ns").is_null())
    assert len(open_) > 60
    done = requests.filter(pl.col("end_ns").is_not_null()).select("request", pl.col("row").alias("done_row"))
    both = open_.join(done, on="request")
    assert (both["row"] < both["done_row"]).all()
    waiting = open_.filter(pl.col("start_ns").is_null())
    assert len(waiting) > 0
    assert waiting["enqueue_ns"].null_count() == 0


def test_within_a_minute_a_slow_core_and_its_queue_show(minute: pl.DataFrame) -> None:
    assert kind(minute, "mark").select((pl.col("end_ns") - T0) // S).to_series().to_list() == [20, 30]
    work = kind(minute, "execution").with_columns(
        wait=pl.col("start_ns") - pl.col("enqueue_ns"), second=(pl.col("end_ns") - T0) // S
    )
    calm = work.filter(pl.col("second") < 20)
    storm = work.filter(pl.col("second").is_between(24, 30))
    slow = storm.filter((pl.col("device") == 0) & (pl.col("core") == 3))
    p95 = [frame["wait"].quantile(0.95) or 0.0 for frame in (calm, slow)]
    assert p95[1] > 5 * p95[0]
    p99 = [frame["wait"].quantile(0.99) or 0.0 for frame in (calm, storm)]
    assert p99[1] > 3 * p99[0]
    after = work.filter(pl.col("second") >= 50)["wait"].quantile(0.99) or 0.0
    assert after < 2 * p99[0], "it recovers"


def test_mappings_shapes_and_counters_are_there(minute: pl.DataFrame) -> None:
    shares = dict(kind(minute, "execution")["mapping"].value_counts(normalize=True).iter_rows())
    assert shares["planned"] == pytest.approx(0.80, abs=0.03)
    assert shares["adapted"] == pytest.approx(0.15, abs=0.03)
    assert shares["fallback"] == pytest.approx(0.05, abs=0.02)
    counters = kind(minute, "counter")
    assert {(n, u) for n, u in counters.select("name", "unit").iter_rows()} == {("dram", "GB/s"), ("power", "W")}
    assert len(counters) == 60 * 2 * 2 * 2
    told = counters.filter(pl.col("name") == "dram")["value"].sum() / 2  # each covers half a second
    moved = (kind(minute, "execution")["dram_bytes"].sum() or 0) / S
    assert told == pytest.approx(moved, rel=1e-6)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32), st.floats(5, 3000), st.integers(4, 64), st.sampled_from([0.0, 3e7]))
def test_kernels_are_conserved_and_queue_by_lindley(seed: int, per_s: float, cores: int, launch_ns: float) -> None:
    device = Device(seed, per_s, cores)
    if launch_ns:
        device._launch_ns = launch_ns  # launches then reach over several spans
    kernels = None
    expected = 0
    for _ in range(8):
        requests, scheduled = device.advance()
        expected += int(np.array([12, 6, 3])[requests.load].sum())
        kernels = scheduled if kernels is None else kernels.plus(scheduled)
    assert kernels is not None
    assert len(kernels) + len(device._launched) == expected
    free = dict.fromkeys(range(cores), 0)
    order = np.lexsort((kernels.enqueue_ns, kernels.core))
    for i in order.tolist():
        core = int(kernels.core[i])
        assert kernels.start_ns[i] == max(int(kernels.enqueue_ns[i]), free[core])
        free[core] = int(kernels.end_ns[i])


def test_a_late_poll_does_not_catch_up() -> None:
    now = [0]
    source = LoadSource(start_ns=T0, rate=1000, monotonic_ns=lambda: now[0])
    now[0] = 3600 * S
    source.poll(0)
    position = source.now_ns() or 0
    assert position == T0 + 2 * S
    now[0] += S
    source.poll(0)
    assert (source.now_ns() or 0) - position == S


def test_close_wakes_a_waiting_poll() -> None:
    source = LoadSource(speed=0.001)
    threading.Timer(0.1, source.close).start()
    began = time.monotonic()
    assert source.poll(30) == ()
    assert time.monotonic() - began < 10
    assert source.health().state == "ended"


@pytest.mark.parametrize("wrong", [{"rate": 0}, {"rate": float("nan")}, {"speed": -1}, {"cores": 2}, {"devices": 0}])
def test_impossible_settings_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="rate 1 to 2 million"):
        LoadSource(**wrong)  # type: ignore[arg-type]
