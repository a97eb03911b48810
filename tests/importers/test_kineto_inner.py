"""Operators inside compiled regions and backward nodes: no time twice, none lost but slivers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kineto_samples import MEMORY, operator, rows_of, text_of, write

from fusetui.importers import kineto

DIMS: dict[str, Any] = {"Input Dims": [[4, 8], [8, 16]], "Input type": ["float", "float"]}
REGION = "Torch-Compiled Region: 0/0"
NODE = "autograd::engine::evaluate_function: MmBackward0"


def inner(tmp_path: Path, *events: dict[str, Any]) -> list[tuple[Any, ...]]:
    path = write(tmp_path / "trace.json", text_of(list(events)))
    rows = [row for row in rows_of(kineto.read_inner(path, MEMORY)) if row["kind"] == "execution"]
    rows.sort(key=lambda row: row["start_ns"])
    first = rows[0]["start_ns"]
    return [(r["name"], r["start_ns"] - first, r["end_ns"] - first, r.get("shape")) for r in rows]


def test_a_region_is_its_operators_and_what_is_between(tmp_path: Path) -> None:
    found = inner(
        tmp_path,
        operator(REGION, 100, 60),
        operator("aten::addmm", 110, 20, **DIMS),
        operator("aten::copy_", 112, 3, **DIMS),
        operator("aten::relu", 130.5, 9.5, **DIMS),
        operator("aten::add", 170, 5, **DIMS),
    )
    assert found == [
        ("Torch-Compiled Region: 0", 0, 10_000, None),
        ("aten::addmm", 10_000, 30_000, "4x8 8x16 f32"),
        ("aten::relu", 30_500, 40_000, "4x8 8x16 f32"),  # the half microsecond before it is a sliver
        ("Torch-Compiled Region: 0", 40_000, 60_000, None),
        ("aten::add", 70_000, 75_000, "4x8 8x16 f32"),
    ]


def test_nested_nodes_and_threads(tmp_path: Path) -> None:
    found = inner(
        tmp_path,
        operator(NODE, 0, 50),
        operator("MmBackward0", 5, 40),
        operator("aten::mm", 10, 30, **DIMS),
        operator(NODE, 20, 8, tid=200),
        operator("aten::mul", 45, 2, tid=200),
    )
    assert found == [
        (NODE, 0, 10_000, None),
        ("aten::mm", 10_000, 40_000, "4x8 8x16 f32"),
        (NODE, 20_000, 28_000, None),
        (NODE, 40_000, 50_000, None),
        ("aten::mul", 45_000, 47_000, None),
    ]


def test_a_region_inside_an_operator_is_the_operator(tmp_path: Path) -> None:
    events = (operator("aten::linear", 0, 20, **DIMS), operator(REGION, 5, 10))
    assert inner(tmp_path, *events) == [("aten::linear", 0, 20_000, "4x8 8x16 f32")]
