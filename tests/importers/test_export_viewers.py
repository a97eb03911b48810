"""Exports for trace viewers, read back: the same executions, moments and readings, and arrows that lead to them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from kineto_samples import MEMORY

from fusetui.importers import chrome, perfetto
from fusetui.importers.open import importers
from fusetui.telemetry.export import WRITERS
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import build_batch

DAY = 86_400 * 10**9
FORMS = {"chrome": chrome, "perfetto": perfetto}


def batch_of(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    texts = ("kind", "name", "host", "stream", "plan", "mapping", "shape", "unit")
    columns = {}
    for name in sorted({key for row in rows for key in row}):
        columns[name] = pa.array([row.get(name) for row in rows], pa.utf8() if name in texts else None)
    return build_batch(columns)


def work(name: str, start: int, end: int, **more: Any) -> dict[str, Any]:
    return {"kind": "execution", "name": name, "start_ns": start, "end_ns": end, **more}


def written(form: str, header: Header, *batches: pa.RecordBatch) -> bytes:
    sink = io.BytesIO()
    WRITERS[form](sink, header, batches)
    return sink.getvalue()


def reread(tmp_path: Path, form: str, data: bytes) -> tuple[list[dict[str, Any]], str]:
    path = tmp_path / "export"
    path.write_bytes(data)
    importer = next(i for i in importers() if i.sniff(data[: 1 << 20]))
    assert importer.NAME == FORMS[form].NAME
    capture = importer.read(path, MEMORY)
    return [row for batch in capture.batches for row in batch.to_pylist()], capture.header.clock


ROW = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["gemm", "add ü", 'quoted "x"\\', "a\u2028b"]),
        "start_ns": st.integers(0, 5_000),
        "took": st.integers(0, 2_000),
        "waited": st.none() | st.integers(-50, 900),
        "launch_ns": st.none() | st.integers(0, 300),
        "device": st.none() | st.integers(0, 3),
        "stream": st.none() | st.sampled_from(["7", "prefill", "copy engine"]),
        "core": st.none() | st.integers(0, 7),
        "flops": st.none() | st.floats(0, 1e15),
        "shape": st.none() | st.sampled_from(["m=4 bf16"]),
    }
)


@settings(
    max_examples=60,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(rows=st.lists(ROW, min_size=1, max_size=25), epoch=st.booleans(), cut=st.integers(1, 25))
@pytest.mark.parametrize("form", FORMS)
def test_executions_come_back(tmp_path: Path, form: str, rows: list[dict[str, Any]], epoch: bool, cut: int) -> None:
    base = 1_796_035_784_335_488_381 if epoch else 1_000
    executions = []
    for row in sorted(rows, key=lambda row: row["start_ns"] + row["took"]):
        start = base + row["start_ns"]
        kept = {key: row[key] for key in ("name", "launch_ns", "device", "stream", "core", "flops", "shape")}
        enqueue = None if row["waited"] is None else start - row["waited"]
        executions.append(
            {"kind": "execution", "start_ns": start, "end_ns": start + row["took"], "enqueue_ns": enqueue, **kept}
        )
    parts = [batch_of(part) for part in (executions[:cut], executions[cut:]) if part]
    data = written(form, Header(clock="epoch" if epoch else "trace"), *parts)
    found, clock = reread(tmp_path, form, data)
    assert clock == ("epoch" if epoch else "trace")
    # A trace's own clock counts from its first event, which may be a launch.
    times = sorted((row["start_ns"], row["end_ns"]) for row in found if row["kind"] == "execution")
    shift = 0 if epoch else min(row["start_ns"] for row in executions) - times[0][0]
    back = sorted(
        (row["start_ns"] + shift, row["end_ns"] + shift, row["name"], -1 if row["device"] is None else row["device"])
        for row in found
        if row["kind"] == "execution"
    )
    name = {"a\u2028b": "a\N{MIDDLE DOT}b"}
    assert back == sorted(
        (
            row["start_ns"],
            row["end_ns"],
            name.get(row["name"], row["name"]),
            -1 if row["device"] is None else row["device"],
        )
        for row in executions
    )


MIXED = [
    work("k", DAY * 30 + 5_000, DAY * 30 + 6_500, enqueue_ns=DAY * 30 + 3_000, launch_ns=1_000, device=1, stream="7",
         core=2),
    work("node", DAY * 30 + 6_500, DAY * 30 + 7_000, enqueue_ns=DAY * 30 + 3_000, node=1, device=1, stream="7"),
    {"kind": "mark", "name": "swap", "start_ns": DAY * 30 + 7_100, "end_ns": DAY * 30 + 7_100},
    {"kind": "counter", "name": "power", "unit": "W", "value": 250.5, "device": 1, "start_ns": DAY * 30 + 7_200,
     "end_ns": DAY * 30 + 7_200},
    {"kind": "request", "name": "chat", "request": 4, "enqueue_ns": DAY * 30 + 1_000, "start_ns": DAY * 30 + 2_000,
     "end_ns": DAY * 30 + 8_000},
    work("waits", 0, 0) | {"start_ns": None, "end_ns": None, "enqueue_ns": DAY * 30 + 9_000},
]  # fmt: skip


def test_a_chrome_trace_says_everything_where_viewers_look(tmp_path: Path) -> None:
    header = Header(source="box", clock="epoch", build={"git": "abc"})
    document = json.loads(written("chrome", header, batch_of(MIXED)))
    assert document["otherData"]["fusetui_base_ns"] == str(29 * DAY)
    events = document["traceEvents"]
    processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    threads = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    (kernel,) = [e for e in events if e["name"] == "k"]
    assert (processes[kernel["pid"]], threads[kernel["tid"]]) == ("device 1", "7")
    assert (kernel["ts"], kernel["dur"]) == (86_400_000_005.0, 1.5)
    assert kernel["args"] == {"capture_row": 0, "wait_ns": 2_000, "core": 2, "launch_ns": 1_000}
    (call,) = [e for e in events if e["ph"] == "X" and e["cat"] == "launch"]
    assert (processes[call["pid"]], call["ts"], call["dur"]) == ("launch calls", 86_400_000_002.0, 1.0)
    begin, end = ([e for e in events if e["ph"] == phase] for phase in "sf")
    assert [(e["id"], e["ts"], e["tid"]) for e in begin] == [(1, call["ts"], call["tid"])]
    assert [(e["id"], e["ts"], e["tid"], e["bp"]) for e in end] == [(1, kernel["ts"], kernel["tid"], "e")]
    (reading,) = [e for e in events if e["ph"] == "C"]
    assert (reading["name"], reading["args"], processes[reading["pid"]]) == ("power", {"value": 250.5}, "device 1")
    request = [(e["ph"], e["ts"], processes[e["pid"]]) for e in events if e.get("cat") == "request"]
    assert request == [("b", 86_400_000_001.0, "requests"), ("e", 86_400_000_008.0, "requests")]
    assert [e["name"] for e in events if e["ph"] == "i"] == ["swap"]
    assert not any(e["name"] == "waits" for e in events)


@pytest.mark.parametrize("form", FORMS)
def test_moments_and_readings_come_back(tmp_path: Path, form: str) -> None:
    base = 1_796_035_784_335_488_381 - DAY * 30
    moved = [
        {
            key: value + base if key in ("enqueue_ns", "start_ns", "end_ns") and value else value
            for key, value in row.items()
        }
        for row in MIXED
    ]
    found, _ = reread(tmp_path, form, written(form, Header(clock="epoch"), batch_of(moved)))
    told = [(r["kind"], r["name"], r["end_ns"] - base, r["device"], r["value"]) for r in found]
    assert told == [
        ("execution", "k", DAY * 30 + 6_500, 1, None),
        ("execution", "node", DAY * 30 + 7_000, 1, None),
        ("mark", "swap", DAY * 30 + 7_100, None, None),
        ("counter", "power", DAY * 30 + 7_200, 1, 250.5),
        ("request", "chat", DAY * 30 + 8_000, None, None),
    ]


LOG: list[dict[str, Any]] = [
    {"kind": "request", "name": "chat ü", "request": 7, "enqueue_ns": 1_000, "start_ns": 1_250, "end_ns": 9_000,
     "stream": "prefill", "shape": "tokens=12 output=3"},
    {"kind": "request", "name": "chat ü", "request": 5, "enqueue_ns": 500, "start_ns": 500, "end_ns": 9_500},
    {"kind": "request", "name": "step", "request": 8, "start_ns": 600, "end_ns": 9_900, "stream": "prefill"},
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_a_request_log_comes_back_as_requests(tmp_path: Path, form: str) -> None:
    rows = [{key: v + 1_796_035_784_335_488_381 if key.endswith("_ns") else v for key, v in row.items()} for row in LOG]
    found, clock = reread(tmp_path, form, written(form, Header(clock="epoch"), batch_of(rows[:2]), batch_of(rows[2:])))
    assert clock == "epoch"
    assert [{key: value for key, value in row.items() if value is not None} for row in found] == rows


@pytest.mark.parametrize("form", FORMS)
def test_slices_of_others_are_no_requests(tmp_path: Path, form: str) -> None:
    """Asynchronous slices may mean anything; nor does the name of a process make its slices requests."""
    data = written(form, Header(clock="epoch"), batch_of([*LOG, work("k", 10_000, 10_500)]))
    found, _ = reread(tmp_path, form, data.replace(b"capture_row", b"another_row"))
    assert [row["kind"] for row in found] == ["execution"]


@pytest.mark.parametrize("form", FORMS)
def test_rows_drawn_are_counted_and_nothing_is_a_whole_file(form: str) -> None:
    sink = io.BytesIO()
    assert WRITERS[form](sink, Header(), [batch_of(MIXED), batch_of(MIXED)]) == 10
    empty = written(form, Header())
    assert empty if form == "perfetto" else json.loads(empty)["traceEvents"] == []


def test_times_before_a_trace_began_are_kept_by_perfetto(tmp_path: Path) -> None:
    rows = [work("early", -500, 10, enqueue_ns=-700, device=0), work("late", 20, 30, device=0)]
    found, _ = reread(tmp_path, "perfetto", written("perfetto", Header(clock="trace"), batch_of(rows)))
    assert [(r["name"], r["end_ns"] - r["start_ns"]) for r in found] == [("early", 510), ("late", 10)]
