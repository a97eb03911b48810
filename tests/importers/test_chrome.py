"""Chrome traces of no particular profiler: slices, pairs, marks, counters and which tracks are work."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from kineto_samples import MEMORY, executions, rows_of, write

from fusetui.importers import chrome, kineto, onnxruntime
from fusetui.importers.capture import Capture
from fusetui.importers.open import importers, open_capture
from fusetui.telemetry.errors import TelemetryError

EPOCH_US = 1_700_000_000_000_000


def slice_(name: str, ts: Any, dur: Any, tid: Any = 1, pid: Any = 9, **more: Any) -> dict[str, Any]:
    return {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, **more}


def edge(phase: str, name: str, ts: Any, tid: int = 1) -> dict[str, Any]:
    return {"ph": phase, "name": name, "pid": 9, "tid": tid, "ts": ts}


def named(what: str, pid: int, tid: int | None, name: str) -> dict[str, Any]:
    place = {"pid": pid} if tid is None else {"pid": pid, "tid": tid}
    return {"ph": "M", "name": what, **place, "args": {"name": name}}


def read(tmp_path: Path, content: str | bytes | list[Any]) -> Capture:
    text = json.dumps(content) if isinstance(content, list) else content
    return chrome.read(write(tmp_path / "trace.json", text), MEMORY)


def times(capture: Capture) -> list[tuple[str, int, int]]:
    return [(row["name"], row["start_ns"], row["end_ns"]) for row in executions(capture)]


@pytest.mark.parametrize("as_object", [False, True])
def test_slices_are_executions_on_their_threads(tmp_path: Path, as_object: bool) -> None:
    events = [
        named("process_name", 9, None, "engine"),
        named("thread_name", 9, 1, "worker"),
        slice_("a", 5.5, 2.25),
        slice_("b", 10, 1, tid="queue 2"),
        {},
    ]
    text = json.dumps({"displayTimeUnit": "ns", "traceEvents": events} if as_object else events)
    capture = read(tmp_path, text)
    rows = executions(capture)
    assert [(r["name"], r["start_ns"], r["end_ns"], r["stream"]) for r in rows] == [
        ("a", 0, 2250, "worker"),
        ("b", 4500, 5500, "queue 2"),
    ]
    assert (capture.header.source, capture.header.clock) == ("chrome-trace", "trace")
    assert capture.notes == ["no enqueue times in this format: queue wait is not measured"]


def test_begins_and_ends_pair_per_track(tmp_path: Path) -> None:
    events = [
        edge("B", "x", 30, tid=2),
        edge("B", "a", 10),
        edge("E", "a", 20),
        edge("E", "lost begin", 21),
        edge("B", "b", 20.5, tid=1),
        edge("B", "never ended", 50),
        edge("E", "", 45, tid=2),
    ]
    capture = read(tmp_path, events)
    assert times(capture) == [("a", 0, 10_000), ("b", 10_500, 11_000), ("x", 20_000, 35_000)]
    assert "events left out, that begin or end without the other: 1" in capture.notes


def test_a_stray_end_does_not_shift_later_pairs(tmp_path: Path) -> None:
    events = [edge("E", "stray", 1), edge("B", "a", 2), edge("E", "a", 3), edge("B", "b", 4), edge("E", "b", 5)]
    capture = read(tmp_path, events)
    assert times(capture) == [("a", 0, 1000), ("b", 2000, 3000)]


def test_marks_and_counters(tmp_path: Path) -> None:
    events = [
        slice_("a", 100, 10),
        {"ph": "i", "name": "swap", "pid": 9, "tid": 1, "ts": 103, "s": "t"},
        {"ph": "I", "name": "old style", "pid": 9, "tid": 1, "ts": 104},
        {"ph": "C", "name": "memory", "pid": 9, "ts": 105, "args": {"used": 5, "free": "7.5", "note": "x"}},
        {"ph": "C", "name": "depth", "pid": 9, "ts": 106, "args": {"value": 3, "bad": float("inf")}},
    ]
    rows = rows_of(read(tmp_path, events))
    assert [(r["name"], r["start_ns"]) for r in rows if r["kind"] == "mark"] == [("swap", 3000), ("old style", 4000)]
    readings = [(r["name"], r["start_ns"], r["value"]) for r in rows if r["kind"] == "counter"]
    assert readings == [("memory used", 5000, 5.0), ("memory free", 5000, 7.5), ("depth", 6000, 3.0)]


def test_nested_slices_of_a_thread_count_once(tmp_path: Path) -> None:
    events = [slice_("outer", 0.5, 100), slice_("inner", 10, 20), slice_("partly", 90, 50), slice_("inner", 95, 1)]
    capture = read(tmp_path, events)
    assert [name for name, _, _ in times(capture)] == ["outer", "partly"]
    assert "slices inside others of their thread left out: 2" in capture.notes
    assert "slices that overlap their predecessor on the same track: 1" in capture.notes


def test_device_tracks_are_the_work_and_do_not_nest(tmp_path: Path) -> None:
    events = [
        named("process_name", 1, None, "host"),
        named("process_name", 2, None, "GPU 3 (fast)"),
        slice_("launch", 1, 5, pid=1),
        slice_("inflated", 10, 1e7, pid=2),
        slice_("next", 20, 3, pid=2),
    ]
    capture = read(tmp_path, events)
    rows = executions(capture)
    assert [(r["name"], r["device"]) for r in rows] == [("next", 3), ("inflated", 3)]
    assert "slices of host threads left out, device tracks are shown: 1" in capture.notes
    assert "slices that overlap their predecessor on the same track: 1" in capture.notes


def test_flows_and_asynchronous_slices_are_counted(tmp_path: Path) -> None:
    events = [slice_("a", 1, 1), *({"ph": p, "name": "f", "id": 1, "pid": 9, "tid": 1, "ts": 1} for p in "stfben")]
    notes = read(tmp_path, events).notes
    assert "events left out, flows: 3" in notes
    assert "events left out, asynchronous slices: 3" in notes


def test_epoch_microseconds_keep_their_nanoseconds(tmp_path: Path) -> None:
    text = f'[{{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": {EPOCH_US}.123, "dur": 0.001}}]'
    capture = read(tmp_path, text)
    assert times(capture) == [("a", EPOCH_US * 1000 + 123, EPOCH_US * 1000 + 124)]
    assert capture.header.clock == "epoch"


def test_exactly_a_million_events_are_suspicious(tmp_path: Path) -> None:
    line = '{"ph":"M","name":"x","pid":1},\n'
    head = '[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1},\n'
    for count, suspicious in ((1_000_000, True), (999_999, False)):
        notes = read(tmp_path, head + line * (count - 2) + line.rstrip(",\n") + "]").notes
        assert any("exactly 1,000,000 events" in note for note in notes) is suspicious


def test_events_that_do_not_begin_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fusetui.importers.kineto_stream.WINDOW", 400)
    first = [{"name": f"n{i}", "ph": "X", "pid": 1, "tid": 1, "ts": 1 + i * 10, "dur": 5} for i in range(3)]
    then = [{"pid": 1, "ts": 100 + i * 10, "tid": 1, "ph": "X", "dur": 5, "name": f"p{i}"} for i in range(300)]
    assert [name for name, _, _ in times(read(tmp_path, first + then))] == [e["name"] for e in first + then]


def test_special_formats_go_to_their_own_importers(tmp_path: Path) -> None:
    assert importers()[-1].NAME == chrome.NAME
    for sample, module in (
        ('{"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "kernel"}]}', kineto),
        ('[{"cat": "Session", "name": "model_run", "ph": "X"}]', onnxruntime),
    ):
        assert chrome.sniff(sample.encode())
        assert next(i for i in importers() if i.sniff(sample.encode())).NAME == module.NAME
    path = write(tmp_path / "anything.bin", gzip.compress(json.dumps([slice_("a", 1, 1)]).encode()))
    trace = open_capture([path], memory_bytes=MEMORY)
    assert trace.header.source == "chrome-trace"
    trace.close()
    assert not chrome.sniff(b'{"nodes": []}')
    assert not chrome.sniff(b"[1, 2]")


@pytest.mark.parametrize("content", ["[]", '{"traceEvents": []}', '[{"ph": "M", "name": "process_name"}]', "[{}]"])
def test_nothing_with_a_time_is_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(TelemetryError, match="in which nothing has a time"):
        read(tmp_path, content)
