"""A Kineto or Chrome trace whose tables all go to temporary files, in many short runs, reads as one held in memory."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fusetui.importers import chrome, kineto, rows, sortedrows
from fusetui.importers.kineto_work import Replays
from fusetui.importers.sortedrows import SortedRows


@pytest.fixture
def spilled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Every table holds some ten rows; gives the number of rows written to files."""
    monkeypatch.setattr(sortedrows, "_BLOCK_ROWS", 16)
    monkeypatch.setattr(sortedrows, "_FEW_RUNS", 3)
    monkeypatch.setattr(sortedrows, "_PIECE_BYTES", 200)
    monkeypatch.setattr(sortedrows, "_LARGE_PIECE_BYTES", 400)
    written: list[int] = []
    sort_in, rows_in, write = SortedRows.__init__, rows.Rows.__init__, SortedRows._write

    def count(self: SortedRows, table: sortedrows.Table) -> None:
        written.append(len(table))
        write(self, table)

    monkeypatch.setattr(SortedRows, "__init__", lambda self, dtype, keys, _: sort_in(self, dtype, keys, 1500))
    monkeypatch.setattr(rows.Rows, "__init__", lambda self, dtype, _: rows_in(self, dtype, 500))
    monkeypatch.setattr(SortedRows, "_write", count)
    monkeypatch.setattr("fusetui.importers.kineto_stream.WINDOW", 2000)
    return written


def _read(importer: Any, path: Path, events: list[dict[str, Any]], **top: Any) -> list[dict[str, Any]]:
    path.write_text(json.dumps({**top, "traceEvents": events}))
    return [row for batch in importer.read(path, 1 << 26).batches for row in batch.to_pylist()]


def test_kernels_find_their_calls_and_shapes_on_disk(tmp_path: Path, spilled: list[int]) -> None:
    count = 300
    events = []
    for i in range(1, count):
        op = i // 3 + 1  # three kernels of one operator, which may stand in different portions
        if i % 3 == 0 or i == 1:
            events.append({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 100 * i, "dur": 5,
                           "args": {"External id": op, "Input Dims": [[op, 2]], "Input type": ["float"]}})  # fmt: skip
        events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 100 * i,
                       "dur": 4, "args": {"correlation": i}})  # fmt: skip
        events.append({"ph": "X", "cat": "kernel", "name": f"k{i}", "pid": 0, "tid": 7, "ts": 100 * i + 10, "dur": 20,
                       "args": {"correlation": i, "External id": op, "stream": 7, "device": 0}})  # fmt: skip
    random.Random(1).shuffle(events)
    found = _read(kineto, tmp_path / "trace", events, schemaVersion=1)
    assert sum(spilled) > count
    got = [tuple(row[key] for key in ("name", "enqueue_ns", "start_ns", "end_ns", "launch_ns", "shape"))
           for row in found]  # fmt: skip
    assert got == [
        (f"k{i}", (i - 1) * 100_000 + 4_000, (i - 1) * 100_000 + 10_000, (i - 1) * 100_000 + 30_000, 4_000,
         f"{i // 3 + 1}x2 f32")
        for i in range(1, count)
    ]  # fmt: skip


def test_host_operators_nest_on_disk(tmp_path: Path, spilled: list[int]) -> None:
    def operator(name: str, thread: int, begin: int, took: int) -> dict[str, Any]:
        return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": thread, "ts": begin, "dur": took, "args": {}}

    events = []
    for i in range(200):
        events += [operator(f"outer{i}", i % 3, 10 * i, 25), operator("inner", i % 3, 10 * i + 1, 3)]
    random.Random(2).shuffle(events)
    found = _read(kineto, tmp_path / "trace", events, schemaVersion=1)
    assert sum(spilled) > 200
    assert [(row["name"], row["start_ns"], row["end_ns"]) for row in found] == [
        (f"outer{i}", 10_000 * i, 10_000 * i + 25_000) for i in range(200)
    ]


def test_begins_and_ends_pair_on_disk(tmp_path: Path, spilled: list[int]) -> None:
    events = []
    for i in range(200):
        for name, begin, end in ((f"outer{i}", 10 * i, 10 * i + 9), ("inner", 10 * i + 2, 10 * i + 4)):
            events.append({"ph": "B", "name": name, "pid": 1, "tid": i % 3, "ts": begin})
            events.append({"ph": "E", "name": name, "pid": 1, "tid": i % 3, "ts": end})
        events.append({"ph": "C", "name": "load", "pid": 1, "tid": 1, "ts": 10 * i + 9.5, "args": {"value": i}})
    random.Random(3).shuffle(events)
    found = _read(chrome, tmp_path / "trace", events)
    assert sum(spilled) > 200
    ran = [(row["name"], row["start_ns"], row["end_ns"]) for row in found if row["kind"] == "execution"]
    assert ran == [(f"outer{i}", 10_000 * i, 10_000 * i + 9_000) for i in range(200)]
    read = [(row["start_ns"], row["value"]) for row in found if row["kind"] == "counter"]
    assert read == [(10_000 * i + 9_500, i) for i in range(200)]


def test_replays_are_counted_once_across_portions(spilled: list[int]) -> None:
    launches = SortedRows(np.dtype([("correlation", "i8")]), ("correlation",), 0)
    for i in range(100):
        launches.add(correlation=np.array([i // 2, 7]))
    replays = Replays(launches)
    for keys in ([1, 2, 2, 3], [7, 7], [8, 60]):
        replays.look(np.array(keys))
    assert (replays.count, replays.answered) == (50, 5)
