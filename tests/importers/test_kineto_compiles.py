"""Compilations and compiled regions in Kineto captures."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from kineto_samples import executions, kernel, launch, operator, read, rows_of, text_of

from fusetui.importers import kineto

_CORPUS = os.environ.get("FUSETUI_CORPUS")
_SHAPE: dict[str, Any] = {"Input Dims": [[32, 8], [8, 4]], "Input type": ["float", "float"]}


def _marks(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if row["kind"] == "mark"]


def test_a_compilation_is_a_mark_with_its_stall_and_the_shape_of_the_call_that_followed(tmp_path: Path) -> None:
    events = [
        operator("entire_frame_compile", 100, 50),
        operator("_compile.compile_inner (dynamo_timed)", 101, 48),
        operator("aten::detach", 110, 5, **{"Input Dims": [[99]], "Input type": ["float"]}),
        operator("Torch-Compiled Region: 0/3", 160, 20),
        operator("AOTDispatcher Runtime Wrapper Prologue", 161, 2),
        operator("aten::mm", 165, 10, **_SHAPE),
        operator("aten::mm", 200, 10, **_SHAPE),
    ]
    rows = rows_of(read(tmp_path, text_of(events)))
    assert _marks(rows) == [
        {
            "kind": "mark",
            "name": "compile",
            "start_ns": 50_000,
            "end_ns": 50_000,
            "stream": "100",
            "plan": "0/3",
            "shape": "32x8 8x4 f32",
            "value": 50_000.0,
            "unit": "ns",
        }
    ]
    ran = [row for row in rows if row["kind"] == "execution"]
    assert [(row["name"], row.get("plan"), row.get("mapping"), row.get("shape")) for row in ran] == [
        ("entire_frame_compile", None, None, None),
        ("Torch-Compiled Region: 0", "0/3", "planned", "32x8 8x4 f32"),
        ("aten::mm", None, None, "32x8 8x4 f32"),
    ]


def test_a_region_of_another_thread_is_not_what_was_compiled_for(tmp_path: Path) -> None:
    events = [
        operator("_compile.<locals>.compile_inner (dynamo_timed)", 100, 50, tid=1),
        operator("Torch-Compiled Region: 0/0", 160, 20, tid=2),
        operator("aten::mm", 165, 10, tid=1, **_SHAPE),
    ]
    rows = rows_of(read(tmp_path, text_of(events)))
    (mark,) = _marks(rows)
    assert (mark["value"], mark.get("plan"), mark.get("shape")) == (50_000.0, None, None)
    assert "shape" not in next(row for row in rows if row["name"] == "Torch-Compiled Region: 0")


def test_device_work_is_planned_when_its_thread_launched_it_inside_a_region(tmp_path: Path) -> None:
    def call(at: int, number: int, thread: int) -> list[dict[str, Any]]:
        return [launch("cudaLaunchKernel", at, 2, number) | {"tid": thread}, kernel(f"k{number}", at + 50, 1, number)]

    events = [
        operator("Torch-Compiled Region: 0/1", 100, 20, tid=5),
        operator("Torch-Compiled Region: 1/0", 130, 10, tid=5),
        *call(99, 1, 5),
        *call(100, 2, 5),
        *call(119, 3, 5),
        *call(120, 4, 5),
        *call(110, 5, 6),
        *call(135, 6, 5),
        kernel("orphan", 111, 1, 77),
    ]
    rows = executions(read(tmp_path, text_of(events)))
    assert {row["name"]: (row.get("plan"), row.get("mapping")) for row in rows} == {
        "k1": (None, None),
        "k2": ("0/1", "planned"),
        "k3": ("0/1", "planned"),
        "k4": (None, None),
        "k5": (None, None),
        "k6": ("1/0", "planned"),
        "orphan": (None, None),
    }


def test_regions_are_found_among_operators_that_are_otherwise_passed_over(tmp_path: Path) -> None:
    filler = [operator(f"aten::add_{i}", i, 1) for i in range(12_000)]
    middle = [operator("Torch-Compiled Region: 0/0", 12_000, 10)]
    ends = [operator(f"aten::add_{i}", 13_000 + i, 1) for i in range(12_000)]
    events = [*filler, *middle, *ends, launch("cudaLaunchKernel", 12_005, 1, 3), kernel("k", 12_050, 1, 3)]
    (row,) = executions(read(tmp_path, text_of(events)))
    assert (row["plan"], row["mapping"]) == ("0/0", "planned")


@pytest.mark.skipif(not _CORPUS, reason="set FUSETUI_CORPUS to a folder with traces/")
@pytest.mark.parametrize(("variant", "compiles"), [("auto", 2), ("static", 8), ("dynamic", 1)])
def test_compilations_of_changing_shapes(variant: str, compiles: int) -> None:
    folder = Path(_CORPUS or ".") / "traces/local/torch"
    rows = rows_of(kineto.read(folder / f"torch_changing_shapes_{variant}.json.gz", 64 << 20))
    marks = _marks(rows)
    assert len(marks) == len({mark["shape"] for mark in marks}) == compiles
    regions = [row for row in rows if row["name"] == "Torch-Compiled Region: 0"]
    assert len(regions) == 16
    assert len({row["shape"] for row in regions}) == 8
    calls = json.loads((folder / "torch_summary.json").read_text())[f"changing_{variant}"]["calls"]
    measured = {f"768 {2 * size}x256": seconds for number, size, seconds in calls if number == 0}
    for mark in marks:
        stall = mark["value"] / 1e9
        whole_call = measured[mark["shape"].split(" 256x768")[0]]
        assert 0.9 * whole_call < stall < whole_call
