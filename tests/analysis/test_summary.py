"""Summaries: exact over a whole trace, the same as a window over the same rows, always JSON."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tracerows import MS, ListTrace, S, batch_of, random_batch

from fusetui.analysis import summary as summaries
from fusetui.analysis.frame import Context, snapshot_of
from fusetui.analysis.slots import Grid
from fusetui.analysis.summary import summarise_snapshot, summarise_trace
from fusetui.analysis.window import Window
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header
from fusetui.telemetry.source import SourceHealth

MEASURES = ("executions", "launch", "queue_wait_ns", "latency_ns", "service_ns", "depth", "imbalance", "fairness")


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.integers(1, 200), st.integers(1, 100))
def test_a_summary_is_the_window_over_the_same_rows(seed: int, n: int, size: int) -> None:
    batch = random_batch(np.random.default_rng(seed), n, S)
    found = summarise_trace(ListTrace([batch.slice(at, size) for at in range(0, n, size)]))
    ends = batch.column("end_ns").to_numpy()
    window = Window(Grid.of_span(int(ends.min()), int(ends.max())))
    window.add(batch, int(ends.max()))
    context = Context(1, 0.0, Header(), SourceHealth("x", "live"), None, 0, "", 0.0)
    expected = summarise_snapshot(snapshot_of(window, int(ends.max()), context))
    for name in (*MEASURES, "span_ns", "busy_ns", "idle_ns", "mapping", "streams", "cores"):
        assert found[name] == expected[name], name


def test_a_summary_by_hand() -> None:
    rows: list[dict[str, Any]] = [
        {"enqueue_ns": 10, "launch_ns": 4, "start_ns": 30, "end_ns": 50, "stream": "a", "device": 0, "core": 0},
        {"enqueue_ns": 55, "launch_ns": 4, "start_ns": 60, "end_ns": 100, "stream": "a", "device": 0, "core": 1},
        {"start_ns": 90, "end_ns": 110, "stream": "b", "device": 0, "core": 0},
        {"kind": "mark", "name": "deploy", "start_ns": 70, "end_ns": 70},
        {"kind": "counter", "name": "power", "value": 300.0, "unit": "W", "start_ns": 80, "end_ns": 80},
    ]
    found = summarise_trace(ListTrace([batch_of(rows[:2]), batch_of(rows[2:])]))
    assert (found["executions"], found["requests"], found["counters"], found["marks"]) == (3, 0, 1, 1)
    assert (found["span_ns"], found["busy_ns"], found["idle_ns"]) == (80, 70, 10)
    assert found["launch"]["exposed_ns"] == 9
    assert (found["launch"]["joined"], found["launch"]["orphans"], found["launch"]["total"]) == (2, 1, 3)
    assert found["launch"]["call_ns"]["max"] == 4
    assert (found["queue_wait_ns"]["n"], found["queue_wait_ns"]["p50"], found["queue_wait_ns"]["max"]) == (2, 5, 20)
    assert found["queue_wait_ns"]["p99"] is None
    assert (found["latency_ns"]["of"], found["latency_ns"]["max"]) == ("execution", 45)
    assert found["throughput_per_s"] == pytest.approx(3 / 80e-9)
    assert [(core["label"], core["busy_ns"]) for core in found["cores"]] == [("0/0", 40), ("0/1", 40)]
    assert found["imbalance"]["lambda"] == 0.0
    assert [(s["name"], s["executions"], s["busy_ns"]) for s in found["streams"]] == [("a", 2, 60), ("b", 1, 20)]
    assert [(c["name"], c["device"], c["unit"], c["last"], c["max"]) for c in found["counters_by_name"]] == [
        ("power", "", "W", 300.0, 300.0)
    ]
    assert [c["age_ns"] for c in found["counters_by_name"]] == [30]
    assert found["header"]["source"] == "test"


def test_only_the_end_or_only_some_rows() -> None:
    batches = [batch_of([{"start_ns": at * S, "end_ns": at * S + MS, "stream": f"s{at % 2}"}]) for at in range(10)]
    assert summarise_trace(ListTrace(batches), window_ns=3 * S)["executions"] == 3
    odd = summarise_trace(ListTrace(batches), filter="stream = s1")
    assert (odd["executions"], odd["busy_ns"], odd["filter"]) == (5, 5 * MS, "stream = s1")


def test_many_rows_are_summarised_from_histograms_but_busy_time_stays_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = random_batch(np.random.default_rng(5), 3000, S)
    trace = ListTrace([batch.slice(at, 100) for at in range(0, 3000, 100)])
    exact = summarise_trace(trace)
    monkeypatch.setattr(summaries, "EXACT_ROWS", 500)
    rough = summarise_trace(trace)
    assert (exact["latency_ns"]["exact"], rough["latency_ns"]["exact"]) == (True, False)
    for name in ("executions", "span_ns", "busy_ns", "idle_ns"):
        assert rough[name] == exact[name]
    for name in ("known", "planned", "adapted", "fallback"):
        assert rough["mapping"][name] == exact["mapping"][name]
    assert rough["mapping"]["mapping_notes"][-1] == "ways and padding are of the newest 500 of 3,000 executions"
    assert rough["latency_ns"]["p99"] == pytest.approx(exact["latency_ns"]["p99"], rel=0.011)


def test_of_too_many_rows_the_newest_tell_of_the_tail_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = random_batch(np.random.default_rng(6), 3000, S)
    trace = ListTrace([batch.slice(at, 100) for at in range(0, 3000, 100)])
    monkeypatch.setattr(summaries, "NEWEST_ROWS", 200)
    exact = summarise_trace(trace)
    monkeypatch.setattr(summaries, "EXACT_ROWS", 1000)
    rough = summarise_trace(trace)
    (said,) = (note for note in rough["notes"] if note not in exact["notes"])
    kept = int(said.rpartition(" ")[2])
    assert said.startswith("more than 1,000 rows: quantiles are those of histograms; where the tail's time went")
    assert 200 < kept <= 300
    assert rough["attribution"]["items"] <= kept
    for name in ("executions", "span_ns", "busy_ns", "idle_ns"):
        assert rough[name] == exact[name]


def test_an_unreadable_batch_is_named() -> None:
    class Torn(ListTrace):
        def read(self, number: int) -> Any:
            if number == 1:
                raise TelemetryError("t.arrows", "batch 1 is torn")
            return super().read(number)

    trace = Torn([batch_of([{"start_ns": 0, "end_ns": 1}])] * 3)
    trace.notes = ["the last second is missing"]
    found = summarise_trace(trace)
    assert found["executions"] == 2
    assert found["notes"] == ["the last second is missing", "t.arrows: batch 1 is torn"]


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [{"kind": "counter", "name": "c", "value": float("inf"), "start_ns": 1, "end_ns": 1}],
        [{"kind": "counter", "name": "c", "value": -0.0, "start_ns": 1, "end_ns": 1}],
        [{"start_ns": 5, "end_ns": 5}],
        [{"enqueue_ns": -(1 << 60), "start_ns": -(1 << 60), "end_ns": 1 << 60}],
        [{"kind": "request", "start_ns": None, "enqueue_ns": 3, "end_ns": 5}, {"enqueue_ns": 3}],
    ],
)
def test_a_summary_is_always_json(rows: list[dict[str, Any]]) -> None:
    trace = ListTrace([batch_of(rows)] if rows and rows[-1].get("end_ns") is not None else [])
    text = json.dumps(summarise_trace(trace), allow_nan=False)
    assert json.loads(text)["executions"] in (0, 1)
