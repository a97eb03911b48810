"""rocprofv3 JSON: decoded in windows, several processes, broken files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from import_checks import MEMORY, corpus, fuzzed, kind_of, opened, rows_of

from fusetui.importers import rocprof_json
from fusetui.telemetry.errors import TelemetryError


def call(correlation: int, start: int, end: int) -> dict[str, Any]:
    return {
        "size": 64, "kind": 4, "operation": 1, "correlation_id": {"internal": correlation, "external": 0},
        "start_timestamp": start, "end_timestamp": end, "thread_id": 77,
    }  # fmt: skip


def dispatch(kernel: int, correlation: int, start: int, end: int) -> dict[str, Any]:
    return {
        **call(correlation, start, end), "kind": 11,
        "dispatch_info": {"size": 72, "agent_id": {"handle": 900}, "queue_id": {"handle": 3}, "kernel_id": kernel,
                          "workgroup_size": {"x": 1, "y": 1, "z": 1}},
        "stream_id": {"handle": 0},
    }  # fmt: skip


def process(pid: int, kernels: list[dict[str, Any]], calls: list[dict[str, Any]]) -> dict[str, Any]:
    agents = [
        {"size": 312, "id": {"handle": 800}, "type": 1, "node_id": 0, "name": "cpu", "mem_banks": [{"flags": {}}]},
        {"size": 312, "id": {"handle": 900}, "type": 2, "node_id": 4, "name": "gfx", "product_name": "GPU é",
         "cu_count": 8, "mem_banks": [{"flags": {"a": 1}}, {"flags": {}}]},
    ]  # fmt: skip
    names = [{"kind": f"K{i}", "operations": ["NONE", f"op{i}"]} for i in range(12)]
    return {
        "metadata": {"node": {"hostname": "box"}, "pid": pid, "command": ["a", "]}"]},
        "agents": agents, "counters": [],
        "strings": {"callback_records": names, "buffer_records": names, "marker_api": [{"key": 9, "value": "my step"}]},
        "kernel_symbols": [
            {"size": 88, "kernel_id": 1, "kernel_name": "_Z3addv.kd", "formatted_kernel_name": "add(float*, int[2])"},
            {"size": 88, "kernel_id": 2, "kernel_name": "mul.kd", "formatted_kernel_name": ""},
        ],
        "callback_records": {"counter_collection": []},
        "buffer_records": {
            "kernel_dispatch": kernels, "hip_api": calls, "hsa_api": [],
            "marker_api": [{**call(9, 990, 1300), "kind": 7}],
            "memory_copy": [{**call(2, 2500, 2600), "kind": 12, "src_agent_id": {"handle": 900},
                             "dst_agent_id": {"handle": 800}, "stream_id": {"handle": 5}}],
        },
    }  # fmt: skip


def document() -> dict[str, Any]:
    one = process(
        77, [dispatch(1, 1, 1500, 1700), dispatch(2, 99, 1800, 1900)], [call(1, 1000, 1200), call(2, 2000, 2700)]
    )
    two = process(78, [dispatch(3, 1, 1600, 1650)], [])
    return {"rocprofiler-sdk-tool": [one, two]}


@pytest.mark.parametrize("indent", [None, 2])
def test_dispatches_calls_and_copies(tmp_path: Path, indent: int | None) -> None:
    path = tmp_path / "r.json"
    path.write_text(json.dumps(document(), indent=indent), encoding="utf-8")
    rows, trace = opened(path)
    ran = kind_of(rows, "execution")
    first = 1000
    got = {
        (r["name"], r["stream"], r["device"], r["start_ns"] + first, r.get("enqueue_ns"), r.get("launch_ns"))
        for r in ran
    }
    assert got == {
        ("add(float*, int[2])", "3", 4, 1500, 1200 - first, 200),
        ("mul.kd", "3", 4, 1800, None, None),
        ("MEMORY_COPY", "copies 5", 4, 2500, 2700 - first, 700),
        ("kernel 3", "78/3", 4, 1600, None, None),
        ("MEMORY_COPY", "78/copies 5", 4, 2500, None, None),
    }
    marks = kind_of(rows, "mark")
    assert [(r["name"], r["value"]) for r in marks] == [("my step", 310.0), ("my step", 310.0)]
    assert trace.header.hardware == {"device 4": "GPU é, 8 CUs"}
    assert trace.header.host == "box"


def test_windows_do_not_change_what_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = [dispatch(1 + i % 2, i, 1000 + 10 * i, 1005 + 10 * i) for i in range(1, 3000)]
    path = tmp_path / "r.json"
    path.write_text(json.dumps({"rocprofiler-sdk-tool": [process(77, kernels, [])]}))
    whole = rows_of(rocprof_json.read(path, MEMORY))
    assert len(kind_of(whole, "execution")) == 3000
    for window in (1 << 10, 5003):
        monkeypatch.setattr("fusetui.importers.rocprof_stream._WINDOW", window)
        assert rows_of(rocprof_json.read(path, MEMORY)) == whole


def test_cut_file_keeps_what_came_before(tmp_path: Path) -> None:
    kernels = [dispatch(1, i, 1000 + 10 * i, 1005 + 10 * i) for i in range(1, 100)]
    text = json.dumps({"rocprofiler-sdk-tool": [process(77, kernels, [])]})
    path = tmp_path / "r.json"
    path.write_text(text[: text.index('"dispatch_info"', len(text) // 2)])
    capture = rocprof_json.read(path, MEMORY)
    assert 10 < len(kind_of(rows_of(capture), "execution")) < 99
    assert any("the file ends inside kernel_dispatch" in note for note in capture.notes)


def test_nothing_in_it_is_named(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text('{"rocprofiler-sdk-tool":[{"metadata":{}}]}')
    with pytest.raises(TelemetryError, match="rocprofv3 JSON in which nothing ran"):
        opened(path)


def test_mutations_are_read_or_refused(tmp_path: Path) -> None:
    fuzzed(json.dumps(document()).encode(), tmp_path / "fuzz.json", rocprof_json.read, least=40)


def test_the_multi_agent_run_agrees_with_the_reference() -> None:
    capture = rocprof_json.read(corpus("rocprofv3_json", "AMD-AGI__TraceLens__rocprof_908_results.json.gz"), MEMORY)
    rows = sorted(rows_of(capture), key=lambda row: row["start_ns"])
    start, end = (np.array([row[name] for row in rows]) for name in ("start_ns", "end_ns"))
    reach = np.maximum.accumulate(end)
    before = np.concatenate([[start[0]], reach[:-1]])
    busy = int(np.maximum(0, reach - np.maximum(start, before)).sum())
    assert len(rows) == 43915
    assert (round(busy / 1e6, 3), round((reach[-1] - start[0]) / 1e6, 3)) == (4233.112, 15122.023)
    assert round(int((end - start).sum()) / 1e6, 3) == 4441.741
