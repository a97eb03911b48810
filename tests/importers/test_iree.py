"""IREE exports: dispatches, submissions and command buffers; sums and bundles are refused by name."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from kineto_samples import MEMORY, rows_of, write
from test_kineto_fuzz import mutate

from fusetui.importers import iree
from fusetui.importers.foreign import recognised
from fusetui.importers.open import open_capture
from fusetui.telemetry.errors import TelemetryError

_CORPUS = os.environ.get("FUSETUI_CORPUS")
_IREE = Path(_CORPUS or ".") / "traces/local/iree"
needs_corpus = pytest.mark.skipif(not _CORPUS, reason="set FUSETUI_CORPUS to a folder with traces/")


def ran(op: str, submission: int, start: int, end: int, **more: Any) -> dict[str, Any]:
    return {
        "type": "host_execution_event", "op": op, "submission_id": submission, "executable_id": 1,
        "function_ordinal": 2, "physical_device_ordinal": 0, "queue_ordinal": 1, "stream_id": 0,
        "start_host_time_ns": start, "end_host_time_ns": end, "valid": True, **more,
    }  # fmt: skip


def queued(op: str, submission: int, at: int) -> dict[str, Any]:
    return {
        "type": "queue_event", "op": op, "submission_id": submission, "physical_device_ordinal": 0,
        "queue_ordinal": 1, "host_time_ns": at,
    }  # fmt: skip


LINES = [
    {"type": "queue_summary", "queues": 1, "dropped_records": 0, "truncated_chunks": 0},
    {"type": "queue", "queue_ordinal": 1},
    queued("alloca", 1, 1000),
    queued("execute", 2, 1500),
    ran("alloca", 1, 1100, 1200),
    ran("dispatch", 2, 2000, 2600),
    ran("dispatch", 2, 2700, 3000, key="softmax"),
    ran("execute", 2, 1900, 3100),
    ran("dispatch", 3, 4000, 4100),
]


def text_of(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_operations_wait_from_their_submission(tmp_path: Path) -> None:
    path = write(tmp_path / "q.jsonl", text_of(LINES))
    assert iree.sniff(path.read_bytes())
    capture = iree.read(path, MEMORY)
    rows = rows_of(capture)
    keys = ("name", "enqueue_ns", "start_ns", "end_ns", "node", "request")
    assert [tuple(map(r.get, keys)) for r in rows if r["kind"] == "execution"] == [
        ("alloca", 0, 100, 200, None, None),
        ("dispatch 1:2", 500, 1000, 1600, 0, None),
        ("softmax", 500, 1700, 2000, 1, None),
        ("dispatch 1:2", None, 3000, 3100, None, None),
    ]
    assert all("launch_ns" not in row for row in rows)
    assert {row["stream"] for row in rows if row["kind"] == "execution"} == {"queue 1 stream 0"}
    assert [(r["start_ns"], r["end_ns"]) for r in rows if r["kind"] == "request"] == [(900, 2100)]


def test_what_is_lost_or_unknown_is_told(tmp_path: Path) -> None:
    odd = [
        {"type": "queue_summary", "dropped_records": 7, "truncated_chunks": 1},
        ran("dispatch", 1, 1, 2, valid=False),
        ran("dispatch", 1, 9, 3),
        {"type": "counter_sample", "value": 3},
        ran("dispatch", 1, 5, 8),
    ]
    capture = iree.read(write(tmp_path / "q.jsonl", text_of(odd) + '{"type": "host_exec'), MEMORY)
    assert sum(row["kind"] == "execution" for row in rows_of(capture)) == 1
    for note in (
        "the profiler lost records: 7 dropped, 1 chunks cut",
        "work marked as invalid left out: 1",
        "work without usable times left out: 1",
        "lines of type counter_sample left out: 1",
        "unreadable lines left out: 1",
    ):
        assert note in capture.notes
    assert any("`iree-profile queue` has them" in note for note in capture.notes)


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"IRPF\x01\0\x06\0" + b"\0" * 40, "iree-profile queue --format=jsonl FILE"),
        (b'{"type":"summary","file_records":10}\n', "IREE profile summary"),
        (b";\n; Aggregate Statistics (static, whole-program)\n;\n", "IREE compiler statistics"),
        (b'{\n "context": {"num_cpus": 2},\n "benchmarks": []}', "google-benchmark results"),
    ],
)
def test_other_files_of_iree_are_refused_by_name(tmp_path: Path, content: bytes, named: str) -> None:
    kind = recognised(content)
    assert named in f"{kind.what}; {kind.remedy}"
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises(TelemetryError, match=named):
        open_capture([path], memory_bytes=MEMORY)


@pytest.mark.parametrize("block", range(4))
def test_mutations_are_read_or_refused(tmp_path: Path, block: int) -> None:
    data, read = text_of(LINES).encode(), 0
    lines: list[str] = []
    for case in range(block, 200, 4):
        path = write(tmp_path / "fuzz.jsonl", mutate(data, random.Random(case)))
        try:
            rows = rows_of(iree.read(path, 1 << 20))
        except TelemetryError as error:
            lines.append(str(error))
        else:
            assert all(row["end_ns"] >= row["start_ns"] for row in rows)
            read += 1
    assert read + len(lines) == 50
    assert read >= 25
    assert not any("\n" in line for line in lines)


@needs_corpus
@pytest.mark.parametrize(("level", "dispatches"), [("O0", 17), ("O3", 12)])
def test_real_exports_have_the_dispatches_of_the_compiler(level: str, dispatches: int) -> None:
    table = (_IREE / f"block_1x128.{level}.stats.csv").read_text()
    assert table.count('"dispatch"') == dispatches
    summary = json.loads((_IREE / f"block_1x128.{level}.summary.jsonl").read_text().splitlines()[0])
    alone = rows_of(iree.read(_IREE / f"block_1x128.{level}.dispatch.jsonl", MEMORY))
    assert [row["node"] for row in alone] == list(range(dispatches))
    rows = rows_of(iree.read(_IREE / f"block_1x128.{level}.queue.jsonl", MEMORY))
    work = [row for row in rows if row["kind"] == "execution"]
    same = [row["end_ns"] - row["start_ns"] for row in work if row["name"].startswith("dispatch")]
    assert same == [row["end_ns"] - row["start_ns"] for row in alone]
    assert all("enqueue_ns" in row for row in work)
    assert sum(row["end_ns"] - row["start_ns"] for row in rows) == summary["total_host_execution_duration_ns"]
