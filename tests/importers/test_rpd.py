"""RPD captures, as SQLite and as Chrome JSON: joined along their own links."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from import_checks import MEMORY, corpus, fuzzed, kind_of, opened, rows_of
from nsys_samples import write_db

from fusetui.importers import rpd, rpd_json
from fusetui.telemetry.errors import TelemetryError


def capture_file(path: Path) -> Path:
    return write_db(path, {
        "rocpd_string": ("id INTEGER PRIMARY KEY, string TEXT", [
            (1, ""), (2, "gemm"), (3, "KernelExecution"), (4, "CopyHostToDevice"), (5, "hipLaunchKernel"),
        ]),
        "rocpd_op": (
            "id INTEGER PRIMARY KEY, gpuId INTEGER, queueId INTEGER, start INTEGER, end INTEGER,"
            " description_id INTEGER, opType_id INTEGER",
            [(1, 2, 0, 1500, 1600, 2, 3), (2, 2, 1, 1700, 1800, 1, 4), (3, 2, 0, 1900, 1950, 2, 3)],
        ),
        "rocpd_api": (
            "id INTEGER PRIMARY KEY, pid INTEGER, tid INTEGER, start INTEGER, end INTEGER, apiName_id INTEGER",
            [(11, 1, 1, 1000, 1200, 5), (12, 1, 1, 1650, 1760, 5), (13, 1, 1, 1, 2, 5)],
        ),
        "rocpd_api_ops": ("api_id INTEGER, op_id INTEGER", [(11, 1), (12, 2)]),
        "rocpd_monitor": (
            "deviceType TEXT, deviceId INTEGER, monitorType TEXT, start INTEGER, end INTEGER, value TEXT",
            [("gpu", 2, "sclk", 1100, 1400, "1700"), ("gpu", 2, "sclk", 1400, 1500, "n/a")],
        ),
    })  # fmt: skip


@pytest.mark.parametrize("packed", [False, True])
def test_operations_calls_and_clocks(tmp_path: Path, packed: bool) -> None:
    path = capture_file(tmp_path / "a.rpd")
    if packed:
        path.write_bytes(gzip.compress(path.read_bytes()))
    before = path.read_bytes()
    rows, trace = opened(path)
    ran = kind_of(rows, "execution")
    assert [(r["name"], r["device"], r["stream"]) for r in ran] == [
        ("gemm", 2, "0"),
        ("CopyHostToDevice", 2, "1"),
        ("gemm", 2, "0"),
    ]
    # Time 0 is the first launch.
    assert [(r["start_ns"], r.get("enqueue_ns"), r.get("launch_ns")) for r in ran] == [
        (500, 200, 200),
        (700, 760, 110),
        (900, None, None),
    ]
    assert [(r["name"], r["value"], r["unit"]) for r in kind_of(rows, "counter")] == [("sclk", 1700.0, "MHz")]
    assert "device work without its launch call in the capture: 1 of 3" in trace.notes
    assert "readings without a number or a time left out: 1" in trace.notes
    assert [p.name for p in tmp_path.iterdir()] == ["a.rpd"]
    assert path.read_bytes() == before


def test_cut_gzip_gives_what_is_whole_or_a_line(tmp_path: Path) -> None:
    whole = gzip.compress(capture_file(tmp_path / "a.rpd").read_bytes())
    path = tmp_path / "cut.rpd.gz"
    path.write_bytes(whole[: len(whole) * 3 // 4])
    with pytest.raises(TelemetryError, match="ROCm RPD"):
        rpd.read(path, MEMORY)


def test_mutations_are_read_or_refused(tmp_path: Path) -> None:
    fuzzed(capture_file(tmp_path / "sample").read_bytes(), tmp_path / "fuzz.rpd", rpd.read, least=20)


def test_the_example_capture_agrees_with_its_tables() -> None:
    capture = rpd.read(corpus("rpd", "ROCm__rocmProfileData__mytrace.rpd.gz"), MEMORY)
    rows = kind_of(rows_of(capture), "execution")
    joined = [row for row in rows if "enqueue_ns" in row]
    assert (len(rows), len(joined)) == (10124, 10124)
    waits = np.array([row["start_ns"] - row["enqueue_ns"] for row in joined])
    assert int((waits < 0).sum()) == 1003
    assert not any(row["start_ns"] < row["enqueue_ns"] - row["launch_ns"] for row in joined)
    assert np.maximum(waits, 0).mean() == pytest.approx(8018640.7, abs=0.05)


def events() -> list[dict[str, Any]]:
    call = {"pid": "77", "tid": "77", "ph": "X", "args": {"desc": ""}}
    op = {"pid": "2", "tid": "0", "ph": "X", "args": {"desc": "KernelExecution"}}
    arrow = {"cat": "api_op", "name": "api_op"}
    return [
        {},
        {"name": "process_name", "ph": "M", "pid": "2", "args": {"name": "GPU2"}},
        {"name": "thread_name", "ph": "M", "pid": "77", "tid": "77", "args": {"name": "Hip 77"}},
        {**op, "name": "gemm", "ts": "115", "dur": "10"},
        {**op, "name": "zero", "ts": "130", "dur": "0"},
        {**op, "name": "add", "ts": "130", "dur": "5"},
        {**op, "name": "orphan", "ts": "150", "dur": "5"},
        {**call, "name": "hipLaunchKernel", "ts": "100", "dur": "10"},
        {**call, "name": "hipGraphLaunch", "ts": "112", "dur": "30"},
        {**call, "name": "hipFree", "ts": "113", "dur": "2"},
        {**arrow, "ph": "s", "id": "1", "pid": "77", "tid": "77", "ts": "110"},
        {**arrow, "ph": "f", "id": "1", "pid": "2", "tid": "0", "ts": "115", "bp": "e"},
        {**arrow, "ph": "s", "id": "2", "pid": "77", "tid": "77", "ts": "130"},
        {**arrow, "ph": "f", "id": "2", "pid": "2", "tid": "0", "ts": "130", "bp": "e"},
        {**arrow, "ph": "s", "id": "3", "pid": "77", "tid": "77", "ts": "130"},
        {**arrow, "ph": "f", "id": "3", "pid": "2", "tid": "0", "ts": "130", "bp": "e"},
        {"pid": "2", "name": "sclk", "ph": "C", "ts": "120", "args": {"sclk": 1700}},
    ]


def text() -> bytes:
    return ("[ " + "\n,".join(json.dumps(event) for event in events()) + "]\n").encode()


def test_chrome_json_joins_along_its_arrows(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(text())
    rows, trace = opened(path)
    assert trace.header.source == "rpd"
    ran = {row["name"]: row for row in kind_of(rows, "execution")}
    # Nested calls: the arrow leaves hipGraphLaunch, not hipFree, which was over by then.
    assert {name: (row["start_ns"], row.get("enqueue_ns"), row.get("launch_ns")) for name, row in ran.items()} == {
        "gemm": (15000, 10000, 10000),
        "zero": (30000, 42000, 30000),
        "add": (30000, 42000, 30000),
        "orphan": (50000, None, None),
    }
    assert {row.get("node") for row in ran.values()} == {None, 0, 1}
    assert [(row["name"], row["value"], row["device"]) for row in kind_of(rows, "counter")] == [("sclk", 1700.0, 2)]


def test_the_example_json_agrees_with_its_capture() -> None:
    rows = kind_of(
        rows_of(rpd_json.read(corpus("rpd_json", "ROCm__rocmProfileData__matmul_result.json"), MEMORY)), "execution"
    )
    assert (len(rows), sum("enqueue_ns" in row for row in rows)) == (85, 85)
    assert all(row["device"] == 2 for row in rows)
    assert not any(row["start_ns"] < row["enqueue_ns"] - row["launch_ns"] for row in rows)


def test_json_mutations_are_read_or_refused(tmp_path: Path) -> None:
    fuzzed(text(), tmp_path / "fuzz.json", rpd_json.read, least=40)
