"""ONNX Runtime profiles: rows with the right times, runs and shapes, and files that are not whole."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from kineto_samples import rows_of, write
from onnxruntime_samples import node, runs, session, text_of

from fusetui.importers import onnxruntime
from fusetui.importers.open import importers, open_capture
from fusetui.telemetry.errors import TelemetryError

MEMORY = 64 << 20
_CORPUS = os.environ.get("FUSETUI_CORPUS")


def test_nodes_are_executions_of_their_run(tmp_path: Path) -> None:
    capture = onnxruntime.read(write(tmp_path / "p.json", text_of(runs(3))), MEMORY)
    rows = rows_of(capture)
    ran = [row for row in rows if row["kind"] == "execution"]
    assert [(r["name"], r["start_ns"], r["end_ns"], r["request"]) for r in ran[:3]] == [
        ("MatMul_1 (MatMul)", 1_001_000, 1_041_000, 0),
        ("Gather_2 (Gather)", 1_050_000, 1_055_000, 0),
        ("MatMul_1 (MatMul)", 1_101_000, 1_142_000, 1),
    ]
    assert {r["stream"] for r in ran} == {"CPU 9"}
    assert {r["core"] for r in ran} == {1}
    assert [r["shape"] for r in ran[:2]] == ["2x8x16 > 2x8x32 f32", "9x4:f32 3:i64 > 3x4:f32"]
    asked = [row for row in rows if row["kind"] == "request"]
    assert [(r["name"], r["request"], r["start_ns"], r["end_ns"]) for r in asked] == [
        ("model_run", i, (1000 + 100 * i) * 1000, (1070 + 100 * i) * 1000) for i in range(3)
    ]
    assert all("enqueue_ns" not in r for r in asked)
    assert capture.notes == []
    assert (capture.header.source, capture.header.clock) == ("onnxruntime", "trace")


def test_it_is_found_by_content(tmp_path: Path) -> None:
    assert onnxruntime.NAME in [importer.NAME for importer in importers()]
    trace = open_capture([write(tmp_path / "anything.txt", text_of(runs(1)))], memory_bytes=MEMORY)
    assert trace.header.source == "onnxruntime"
    trace.close()
    assert not onnxruntime.sniff(b'[{"ph": "X", "cat": "Node", "name": "other"}]')
    assert not onnxruntime.sniff(b'{"traceEvents": []}')


def test_a_file_without_its_end_is_read(tmp_path: Path) -> None:
    text = text_of(runs(5))
    capture = onnxruntime.read(write(tmp_path / "p.json", text[: text.rindex("MatMul_1")]), MEMORY)
    assert sum(row["kind"] == "execution" for row in rows_of(capture)) == 8
    assert any("closing ]" in note for note in capture.notes)
    assert "unreadable events skipped: 1" in capture.notes


def test_a_trailing_comma_and_a_broken_event_cost_nothing_else(tmp_path: Path) -> None:
    lines = text_of(runs(2)).rstrip("\n]").splitlines()
    lines[3] = lines[3].replace('"dur": 40', '"dur": 40, nonsense')
    capture = onnxruntime.read(write(tmp_path / "p.json", "\n".join(lines) + ",\n]"), MEMORY)
    assert sum(row["kind"] == "execution" for row in rows_of(capture)) == 3
    assert capture.notes == ["unreadable events skipped: 1"]


def test_impossible_times_and_device_kernels_are_counted(tmp_path: Path) -> None:
    events = [
        *runs(1),
        node("a", "Add", -5, 3, [], []),
        node("b", "Add", 5, "long", [], []),
        node("c", "Add", 5, 10**18, [], []),
        {**session("gemm_kernel", 5, 5), "cat": "Kernel"},
    ]
    capture = onnxruntime.read(write(tmp_path / "p.json", text_of(events)), MEMORY)
    assert sum(row["kind"] == "execution" for row in rows_of(capture)) == 2
    assert sorted(capture.notes) == [
        "events left out, kernels of a device, their nodes are shown: 1",
        "events left out, without usable times: 3",
    ]


def test_nothing_ran(tmp_path: Path) -> None:
    path = write(tmp_path / "p.json", text_of([session("model_loading_array", 1, 1)]))
    with pytest.raises(TelemetryError, match="in which no node ran; run the model before ending the profile"):
        onnxruntime.read(path, MEMORY)


@pytest.mark.skipif(not _CORPUS, reason="set FUSETUI_CORPUS to a folder with traces/")
def test_real_profiles_have_the_nodes_their_maker_counted() -> None:
    folder = Path(_CORPUS or ".") / "traces/local/ort"
    counted = json.loads((folder / "ort_summary.json").read_text())
    checked = 0
    for path in sorted(folder.glob("ort_*_*_*.json")):
        known = counted[path.stem.removeprefix("ort_")]
        rows = rows_of(onnxruntime.read(path, MEMORY))
        nodes = [row for row in rows if row["kind"] == "execution"]
        asked = len(rows) - len(nodes)
        assert len(nodes) == known["node_kernel_events"]
        assert len(nodes) / asked == known["nodes_per_run"]
        took_us = sum(row["end_ns"] - row["start_ns"] for row in nodes) / 1e3
        assert took_us / asked == pytest.approx(known["kernel_us_per_run"], abs=1e-6)
        assert all("request" in row and "shape" in row for row in nodes)
        checked += 1
    assert checked == 32
