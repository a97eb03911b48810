"""The window: exact numbers against plain Python, slots against totals, forgetting, late and impossible rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tracerows import MS, S, batch_of, random_batch

from fusetui.analysis.frame import Context, snapshot_of
from fusetui.analysis.slots import Grid
from fusetui.analysis.snapshot import Snapshot
from fusetui.analysis.window import Window
from fusetui.telemetry.header import Header
from fusetui.telemetry.source import SourceHealth

CONTEXT = Context(1, 0.0, Header(), SourceHealth("test", "live"), None, 0, "", 0.0)


def window_over(batches: list[pa.RecordBatch], now_ns: int, length_ns: int = S, **options: Any) -> Window:
    window = Window(Grid.of_window(length_ns), memory_bytes=64 << 20, **options)
    for batch in batches:
        window.keep_raw(batch)
        window.add(batch, now_ns)
    return window


def look(window: Window, now_ns: int) -> Snapshot:
    return snapshot_of(window, now_ns, CONTEXT)


def union(intervals: list[tuple[int, int]]) -> int:
    total, reach = 0, -(1 << 62)
    for start, end in sorted(intervals):
        total += max(0, end - max(start, reach))
        reach = max(reach, end)
    return total


def in_slices(batch: pa.RecordBatch, size: int) -> list[pa.RecordBatch]:
    return [batch.slice(at, size) for at in range(0, len(batch), size)]


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 300), st.sampled_from([7, 50, 1000]))
def test_exact_numbers_are_those_of_plain_python(seed: int, n: int, size: int) -> None:
    batch = random_batch(np.random.default_rng(seed), n, S)
    found = look(window_over(in_slices(batch, size), S - 1), S - 1)
    rows = batch.to_pylist()
    joined = [r for r in rows if r["enqueue_ns"] is not None]
    waits = [r for r in joined if (r["node"] or 0) <= 0]
    raw = [r["start_ns"] - r["enqueue_ns"] for r in waits]

    assert found.executions == n
    assert (found.launch.joined, found.launch.orphans) == (len(joined), n - len(joined))
    assert found.launch.nodes == len(joined) - len(waits)
    assert found.launch.clipped == sum(w < 0 for w in raw)
    assert found.launch.clock_errors == sum(r["start_ns"] < r["enqueue_ns"] - r["launch_ns"] for r in waits)
    assert found.launch.short == sum(r["end_ns"] - r["start_ns"] < r["launch_ns"] for r in joined)
    assert found.launch.delay_outliers == sum(w > 100_000 for w in raw)
    assert found.queue_wait.n == len(waits)
    if waits:
        assert found.queue_wait.exact
        assert found.queue_wait.p95_ns == sorted(max(w, 0) for w in raw)[-(-95 * len(raw) // 100) - 1]
    assert found.service.max_ns == max(r["end_ns"] - r["start_ns"] for r in rows)
    assert found.span_ns == max(r["end_ns"] for r in rows) - min(r["start_ns"] for r in rows)
    assert found.busy_ns == union([(r["start_ns"], r["end_ns"]) for r in rows])
    for row in found.streams:
        mine = [r for r in rows if r["stream"] == row.name]
        assert row.executions == len(mine)
        assert row.busy_ns == union([(r["start_ns"], r["end_ns"]) for r in mine])
        assert row.served_ns == sum(r["end_ns"] - r["start_ns"] for r in mine)
    for label, busy, count in zip(found.cores.labels, found.cores.busy_ns, found.cores.executions, strict=True):
        mine = [r for r in rows if f"{r['device']}/{r['core']}" == label]
        assert (busy, count) == (union([(r["start_ns"], r["end_ns"]) for r in mine]), len(mine))


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.integers(100, 400))
def test_slots_and_rows_tell_the_same(seed: int, n: int) -> None:
    batch = random_batch(np.random.default_rng(seed), n, S, orphans=0.0)
    exact = look(window_over([batch], S - 1), S - 1)
    rough = look(window_over([batch], S - 1, exact_rows=0), S - 1)
    assert exact.latency.exact
    assert not rough.latency.exact
    assert rough.launch.joined == exact.launch.joined
    assert rough.launch.exposed_ns == exact.launch.exposed_ns
    assert rough.span_ns == exact.span_ns
    for name in ("latency", "queue_wait", "service"):
        of_rows, of_slots = getattr(exact, name), getattr(rough, name)
        assert (of_slots.n, of_slots.max_ns) == (of_rows.n, of_rows.max_ns)
        assert of_slots.p95_ns == pytest.approx(of_rows.p95_ns, rel=0.011, abs=1)
        assert of_slots.mean_ns == pytest.approx(of_rows.mean_ns)
    # Slots count busy time inside the window only.
    before = union([(min(r["start_ns"], 0), min(r["end_ns"], 0)) for r in batch.to_pylist()])
    assert rough.busy_ns == exact.busy_ns - before
    assert [row.name for row in rough.streams] == [row.name for row in exact.streams]


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.integers(1, 200))
def test_slots_sum_to_the_totals(seed: int, n: int) -> None:
    batch = random_batch(np.random.default_rng(seed), n, S)
    found = look(window_over([batch], S - 1), S - 1)
    assert found.rows_by_slot.sum() == n
    assert found.latency_series.n.sum() == found.latency.n
    assert found.wait_series.n.sum() == found.queue_wait.n
    assert found.latency_histogram.counts.sum() == n
    assert len(found.latency_histogram.edges_ns) == len(found.latency_histogram.counts) + 1
    lasted = np.minimum(found.now_ns - found.slot_start_ns, found.slot_ns)
    inside = [(max(r["start_ns"], 0), r["end_ns"]) for r in batch.to_pylist()]
    by_core = [union([i for i, r in zip(inside, batch.to_pylist(), strict=True) if r["core"] == c]) for c in range(4)]
    assert np.nansum(found.cores.busy_share * lasted) == pytest.approx(sum(by_core), abs=4)


def test_depth_per_slot_is_waiting_time_over_slot_time() -> None:
    # One item waits from 0.1 s to 0.3 s, another from 0.2 s to 0.25 s.
    rows = [
        {"enqueue_ns": 200 * MS, "start_ns": 250 * MS, "end_ns": 260 * MS, "stream": "a"},
        {"enqueue_ns": 100 * MS, "start_ns": 300 * MS, "end_ns": 400 * MS, "stream": "a"},
    ]
    found = look(window_over([batch_of(rows)], 600 * MS, 1200 * MS), 600 * MS)
    by_ms = {int(at) // MS: depth for at, depth in zip(found.slot_start_ns, found.depth_by_slot, strict=True)}
    assert found.slot_ns == 10 * MS
    assert [by_ms[at] for at in (100, 190, 200, 240, 250, 290)] == [1, 1, 2, 2, 1, 1]
    assert np.isnan(by_ms[300])
    assert (found.depth.max, found.depth.mean) == (2, pytest.approx(250 / 500))


def test_rows_leave_with_their_slot_and_nothing_remains() -> None:
    window = window_over([batch_of([{"start_ns": 0, "end_ns": 5 * MS, "stream": "a"}])], 10 * MS)
    assert look(window, 10 * MS).executions == 1
    late = look(window, 10 * S)
    assert (late.executions, late.latency.n, late.busy_ns, late.streams, late.cores.labels) == (0, 0, None, (), ())
    assert late.latency_histogram.counts.sum() == 0
    assert late.rows_by_slot.sum() == 0
    assert not window.acc.counts.any()
    assert not window.acc.latency.counts.any()
    assert not window.acc.service.total.any()
    assert not window.acc.place_busy_ns.any()


def test_a_long_span_is_busy_in_all_of_its_slots() -> None:
    found = look(window_over([batch_of([{"start_ns": 100 * MS, "end_ns": 900 * MS, "core": 0}])], 950 * MS), 950 * MS)
    at = (found.slot_start_ns >= 100 * MS) & (found.slot_start_ns < 900 * MS)
    assert (found.cores.busy_share[0, at] == 1.0).all()
    assert np.nansum(found.cores.busy_share[0, ~at]) == 0.0


def test_late_rows_are_counted_and_left_out() -> None:
    window = window_over([batch_of([{"start_ns": 9 * S, "end_ns": 10 * S}])], 10 * S)
    window.add(batch_of([{"start_ns": S, "end_ns": 2 * S}, {"start_ns": 9 * S, "end_ns": 10 * S}]), 10 * S)
    found = look(window, 10 * S)
    assert (found.executions, found.late_rows) == (2, 1)
    assert found.notes == ("1 rows came too late for the window",)


def test_rows_far_ahead_of_the_source_are_left_out() -> None:
    window = window_over([batch_of([{"start_ns": 0, "end_ns": 1}, {"start_ns": 0, "end_ns": 1 << 60}])], S - 1)
    found = look(window, S - 1)
    assert (found.executions, found.early_rows, found.now_ns) == (1, 1, S - 1)


def test_a_source_without_clock_is_followed_back() -> None:
    window = Window(Grid.of_window(S))
    window.add(batch_of([{"start_ns": 0, "end_ns": 1000 * S}]), None)
    for at in range(1, 6):
        window.add(batch_of([{"start_ns": at * MS, "end_ns": at * MS + 1, "stream": f"s{at}"}]), None)
    found = look(window, window.newest_ns or 0)
    assert found.executions == 3
    assert [row.name for row in found.streams] == ["s3", "s4", "s5"]
    assert found.now_ns == 5 * MS + 1


def test_requests_are_the_latency_when_there_are_enough_of_them() -> None:
    first = {"kind": "request", "enqueue_ns": 0, "start_ns": 5, "end_ns": 100, "request": 1}
    others = [{"kind": "request", "start_ns": 20, "end_ns": 50, "request": 2 + i} for i in range(19)]
    ran = {"start_ns": 10, "end_ns": 11}
    found = look(window_over([batch_of([first, *others, ran])], S - 1), S - 1)
    assert (found.latency_of, found.latency.n, found.latency.max_ns, found.latency.p50_ns) == ("request", 20, 100, 30)
    assert (found.requests, found.executions, found.service.n) == (20, 1, 1)
    few = look(window_over([batch_of([first, *others[1:], ran])], S - 1), S - 1)
    assert (few.latency_of, few.latency.n, few.latency.max_ns) == ("execution", 1, 1)
    alone = look(window_over([batch_of([first])], S - 1), S - 1)
    assert (alone.latency_of, alone.latency.max_ns) == ("request", 100)


def test_open_work_counts_until_it_is_superseded() -> None:
    waiting = {"enqueue_ns": 0, "request": 7, "stream": "a"}
    window = window_over([batch_of([waiting, {"start_ns": 0, "end_ns": 1, "request": 1, "stream": "a"}])], 2 * S)
    found = look(window, 2 * S)
    assert (found.open_waiting, found.open_running, found.oldest_open_ns) == (1, 0, 2 * S)
    assert (found.queue_wait.open_n, found.queue_wait.max_ns) == (1, 2 * S)
    assert "p50" in found.queue_wait.at_least
    assert found.streams[0].waiting == 1
    assert found.depth.now == 1
    window.add(batch_of([{**waiting, "start_ns": 2 * S}]), 2 * S)
    running = look(window, 3 * S)
    assert (running.open_waiting, running.open_running, running.service.max_ns) == (0, 1, S)
    window.add(batch_of([{**waiting, "start_ns": 2 * S, "end_ns": 3 * S}]), 3 * S)
    done = look(window, 3 * S)
    assert (done.open_waiting, done.open_running, done.executions, done.queue_wait.max_ns) == (0, 0, 1, 2 * S)
    assert done.queue_wait.at_least == frozenset()


def test_mapping_shares_and_missing_columns() -> None:
    rows = [{"start_ns": 0, "end_ns": 1, "mapping": m} for m in ("planned", "planned", "fallback", None, "odd")]
    found = look(window_over([batch_of(rows)], S - 1), S - 1)
    assert (found.mapping.known, found.mapping.planned, found.mapping.adapted) == (3, 2 / 3, 0.0)
    assert found.mapping.fallback == pytest.approx(1 / 3)
    assert np.nansum(found.mapping.planned_by_slot) == pytest.approx(2 / 3)
    assert "mapping" not in found.missing_columns
    assert "flops" in found.missing_columns
    assert (found.columns_seen["mapping"], found.columns_seen["flops"]) == (4, 0)


def test_counters_and_marks() -> None:
    rows = [
        {"kind": "counter", "name": "power", "value": 10.0, "device": 0, "unit": "W", "start_ns": 5, "end_ns": 5},
        {"kind": "counter", "name": "power", "value": 30.0, "device": 0, "unit": "W", "start_ns": 7, "end_ns": 7},
        {"kind": "counter", "name": "power", "value": 20.0, "device": 0, "unit": "W", "start_ns": 9, "end_ns": 9},
        {"kind": "counter", "name": "power", "value": float("nan"), "device": 0, "start_ns": 9, "end_ns": 9},
        {"kind": "mark", "name": "deploy", "start_ns": 8, "end_ns": 8},
    ]
    found = look(window_over([batch_of(rows)], S - 1), S - 1)
    [power] = found.counter_rows
    assert (power.name, power.device, power.unit, power.last, power.max) == ("power", "0", "W", 20.0, 30.0)
    assert np.nansum(power.by_slot) == 20.0
    assert [(mark.name, mark.at_ns) for mark in found.marks] == [("deploy", 8)]
    assert (found.counters, found.marks_n, found.executions, found.latency.n) == (4, 1, 0, 0)


def test_many_rows_fall_back_to_histograms_and_come_back() -> None:
    window = Window(Grid.of_window(S), exact_rows=100)
    for at in range(3):
        window.add(random_batch(np.random.default_rng(at), 90, 10 * MS), 10 * MS)
    assert not look(window, 10 * MS).latency.exact
    later = batch_of([{"start_ns": 5 * S, "end_ns": 5 * S + 7}])
    window.add(later, 5 * S + 7)
    found = look(window, 5 * S + 7)
    assert (found.latency.exact, found.latency.max_ns) == (True, 7)


def test_raw_rows_are_kept_within_the_budget() -> None:
    window = Window(Grid.of_window(S), memory_bytes=2 << 20)
    for at in range(40):
        batch = random_batch(np.random.default_rng(at), 500, MS)
        window.keep_raw(batch)
    kept = window.raw()
    assert sum(batch.nbytes for batch in kept) <= 1 << 20
    assert 0 < len(kept) < 40
    assert window.raw_rows == 500 * len(kept)
    assert kept[-1] is batch


def test_an_empty_window_has_a_snapshot() -> None:
    found = look(Window(Grid.of_window(S)), 0)
    assert (found.executions, found.latency.why) == (0, "no samples")
    assert found.cores.imbalance.why == "no core in the window; no step ran on two or more cores"
    assert np.isnan(found.latency_series.p99_ns).all()
    assert found.raw_from_ns is None


@pytest.mark.parametrize(("rows", "reused"), [(6000, True), (4000, False)])
def test_totals_of_many_rows_may_lag_by_a_64th_of_the_window_while_time_runs(rows: int, reused: bool) -> None:
    batch = random_batch(np.random.default_rng(1), rows, S)
    window = window_over([batch], S - 1)
    first = look(window, S - 1)
    soon, later = S - 1 + S // 128, S - 1 + S // 16
    window.add(batch.slice(rows - 10), soon)

    hasty = snapshot_of(window, soon, CONTEXT, hasty=True)
    assert hasty.executions != first.executions
    assert (hasty.service is first.service) == reused == window.numbers_lag
    exact = snapshot_of(window, soon, CONTEXT)
    assert exact.service.n == exact.executions
    assert not window.numbers_lag

    snapshot_of(window, soon, CONTEXT, hasty=True)
    assert snapshot_of(window, later, CONTEXT, hasty=True).service is not exact.service
