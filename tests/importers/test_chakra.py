"""Chakra traces: timed nodes run, nodes made for a simulator are marks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from kineto_samples import MEMORY, rows_of, write
from small_captures import chakra_node, chakra_trace

from fusetui.importers import chakra
from fusetui.telemetry.errors import TelemetryError

_CORPUS = os.environ.get("FUSETUI_CORPUS")


def opened(tmp_path: Path, content: bytes) -> tuple[list[dict[str, Any]], list[str]]:
    assert chakra.sniff(content)
    capture = chakra.read(write(tmp_path / "a.et", content), MEMORY)
    return rows_of(capture), capture.notes


def test_timed_nodes_are_executions(tmp_path: Path) -> None:
    nodes = [
        chakra_node(1, "allreduce", 7, start=1_000_100, took=30, comm_size=4096, is_cpu_op=0),
        chakra_node(0, "aten::mm", 4, start=1_000_000, took=50, is_cpu_op=1),
    ]
    rows, notes = opened(tmp_path, chakra_trace(nodes))
    assert [(r["kind"], r["name"], r["start_ns"], r["end_ns"], r["stream"], r.get("shape")) for r in rows] == [
        ("execution", "aten::mm", 0, 50_000, "operators of the host", None),
        ("execution", "allreduce", 100_000, 130_000, "operators of the device", "bytes=4096"),
    ]
    assert notes == []


def test_nodes_without_a_start_are_marks_in_file_order(tmp_path: Path) -> None:
    nodes = [chakra_node(5, "send it", 5, comm_size=131072), chakra_node(2, "", 4, took=7)]
    rows, notes = opened(tmp_path, chakra_trace(nodes))
    assert [(r["kind"], r["name"], r["end_ns"], r.get("shape")) for r in rows] == [
        ("mark", "send it", 0, "bytes=131072"),
        ("mark", "compute", 0, None),
    ]
    assert notes == ["2 of 2 nodes have no start, 1 of them a duration: such a trace is made to be simulated"]


def test_a_cut_file_gives_its_whole_nodes(tmp_path: Path) -> None:
    nodes = [chakra_node(n, f"n{n}", 4, start=10 + n, took=1) for n in range(3)]
    rows, notes = opened(tmp_path, chakra_trace(nodes)[:-2])
    assert [row["name"] for row in rows] == ["n0", "n1"]
    assert notes == ["the end of the file is missing: later nodes are not in it"]


def test_a_trace_without_nodes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TelemetryError, match="without one whole node"):
        opened(tmp_path, chakra_trace([]))


@pytest.mark.skipif(not _CORPUS, reason="set FUSETUI_CORPUS to a folder with traces/ and reference/")
def test_real_trace() -> None:
    path = Path(_CORPUS or ".") / "traces/chakra/astra-sim__astra-sim__custom_allreduce.0.et"
    rows = rows_of(chakra.read(path, MEMORY))
    assert len(rows) == 35
    names = [row["name"] for row in rows]
    assert names[:3] == ["COMM_SEND_NODE_tb0_step0", "COMM_RECV_NODE_tb0_step1", "COMP_NODE_tb0_step1"]
    assert rows[0]["shape"] == "bytes=131072"
