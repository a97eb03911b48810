"""One door for every file: opened by content, or refused by the name of what it is."""

from __future__ import annotations

import gzip
import pickle
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from kineto_samples import BASE, MEMORY, kernel, launch, text_of, write

from fusetui.importers.open import importers, open_capture
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import SCHEMA, build_batch
from fusetui.telemetry.source import Trace


def rows_of(trace: Trace) -> list[dict[str, Any]]:
    while not trace.complete:
        trace.refresh()
    return [row for number in range(len(trace.index().rows)) for row in trace.read(number).to_pylist()]


def rank_file(path: Path, rank: int | None, shift: int, base: int = BASE) -> Path:
    events = []
    for i in range(1, 4):
        events += [launch("cudaLaunchKernel", i * 100 + shift, 5, i), kernel(f"k{i}", i * 100 + shift + 10, 20, i)]
    top = {} if rank is None else {"distributedInfo": {"rank": rank}}
    return write(path, text_of(events, **top, **({"baseTimeNanoseconds": base} if base else {})))


def test_kineto_is_found_by_content_not_by_name(tmp_path: Path) -> None:
    plain = rank_file(tmp_path / "notes.txt", 0, 0)
    packed = write(tmp_path / "other.bin", gzip.compress(plain.read_bytes()))
    for path in (plain, packed):
        trace = open_capture([path], memory_bytes=MEMORY)
        rows = rows_of(trace)
        assert [row["name"] for row in rows] == ["k1", "k2", "k3"]
        assert all(row["host"] is None for row in rows)
        assert trace.header.source == "kineto"
        trace.close()


def test_contract_files_go_through_the_same_door(tmp_path: Path) -> None:
    batch = build_batch({"kind": "execution", "name": "k", "start_ns": np.array([1, 2]), "end_ns": np.array([3, 4])})
    stream, parquet = tmp_path / "a.arrows", tmp_path / "a.parquet"
    with pa.ipc.new_stream(str(stream), SCHEMA.with_metadata(Header(source="me").to_metadata())) as writer:
        writer.write_batch(batch)
    pq.write_table(pa.Table.from_batches([batch]), parquet)
    for path in (stream, parquet):
        trace = open_capture([path], memory_bytes=MEMORY)
        assert [row["end_ns"] for row in rows_of(trace)] == [3, 4]
        trace.close()


def test_ranks_merge_in_time_with_host_as_rank(tmp_path: Path) -> None:
    paths = [rank_file(tmp_path / "a.json", 5, 50), rank_file(tmp_path / "b.json", 0, 0)]
    trace = open_capture(paths, memory_bytes=MEMORY)
    rows = rows_of(trace)
    assert [(row["host"], row["name"]) for row in rows] == [
        ("rank 0", "k1"), ("rank 5", "k1"), ("rank 0", "k2"), ("rank 5", "k2"), ("rank 0", "k3"), ("rank 5", "k3"),
    ]  # fmt: skip
    # Equal correlation ids of two ranks do not meet.
    assert [row["enqueue_ns"] - row["launch_ns"] - BASE for row in rows[:2]] == [100_000, 150_000]
    assert all(row["device"] == 0 for row in rows)
    trace.close()


def test_ranks_without_numbers_go_by_file_name(tmp_path: Path) -> None:
    paths = [rank_file(tmp_path / name, rank, 0) for name, rank in (("x.json", None), ("y.json", 1), ("z.json", 1))]
    trace = open_capture(paths, memory_bytes=MEMORY)
    assert {row["host"] for row in rows_of(trace)} == {"x", "y", "z"}
    trace.close()


def test_ranks_on_different_clocks_are_refused(tmp_path: Path) -> None:
    paths = [rank_file(tmp_path / "a.json", 0, 0), rank_file(tmp_path / "b.json", 1, 0, base=0)]
    with pytest.raises(TelemetryError, match="no time since the epoch"):
        open_capture(paths, memory_bytes=MEMORY)


def test_contract_file_among_ranks_is_refused(tmp_path: Path) -> None:
    batch = build_batch({"kind": "execution", "name": "k", "start_ns": np.array([1]), "end_ns": np.array([3])})
    pq.write_table(pa.Table.from_batches([batch]), tmp_path / "a.parquet")
    with pytest.raises(TelemetryError, match="ranks of one job"):
        open_capture([rank_file(tmp_path / "a.json", 0, 0), tmp_path / "a.parquet"], memory_bytes=MEMORY)


def _nsys(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("create table CUPTI_ACTIVITY_KIND_KERNEL (start int)")
    db.close()


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"", "the file is empty"),
        (gzip.compress(b"", mtime=0), "gzip of: nothing in it"),
        (_nsys, "Nsight Systems export"),
        (pickle.dumps({"segments": []}), "Python pickle"),
        (b'{"schema": "1.0.1", "pid": 1, "nodes": [{"id": 1}]}', "PyTorch execution trace"),
        (gzip.compress(b'{"chips": {}}', mtime=0), "gzip of: JSON of no known profiler"),
        (b'[\n{"cat" : "Session","pid" :1,"ts" :3,"ph" : "X","name" :"model_run"}', "ONNX Runtime profile"),
        (b'{"displayTimeUnit":"ns","traceEvents":[{"ph":"M","args":{"name":"/host:CPU"}}]}', "JAX or XProf trace"),
        (b'{"rocprofiler-sdk-tool":[{"metadata":{}}]}', "rocprofv3 JSON"),
        (b'"Kind","Agent_Id","Kernel_Name"\n"KERNEL_DISPATCH",1,"k"\n', "rocprofv3 table"),
        (b'{"common_info": {"congestion_model_name": "fast"}}', "Tenstorrent NoC simulation"),
        (b"name,cpu_milli,gpu_milli,scheduled_time\npod,1,2,3\n", "cluster scheduler log"),
        (b"# HELP up is it up\n# TYPE up gauge\nup 1\n", "Prometheus metrics"),
        (b"PK\x03\x04rest", "zip archive"),
        (b"\x7fELF\x02\x01", "program"),
        (b"time,queue\n1,2\n", "CSV table"),
        (b"hello world", "text"),
        (b"\x01\x02\x00\x03", "binary file"),
        (b"{}", "JSON of no known profiler"),
    ],
)
def test_other_files_are_named(tmp_path: Path, content: Any, name: str) -> None:
    path = tmp_path / "file"
    content(path) if callable(content) else path.write_bytes(content)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(TelemetryError) as caught:
        open_capture([path], memory_bytes=MEMORY)
    assert name in caught.value.what
    assert sorted(tmp_path.iterdir()) == before


def test_directories_missing_files_and_no_files_are_named(tmp_path: Path) -> None:
    for path, name in ((tmp_path, "a directory"), (tmp_path / "none", "cannot be read"), (Path("\0"), "not a path")):
        with pytest.raises(TelemetryError, match=name):
            open_capture([path], memory_bytes=MEMORY)
    with pytest.raises(TelemetryError, match="nothing to open"):
        open_capture([], memory_bytes=MEMORY)


def test_importers_are_found_by_the_package() -> None:
    assert "PyTorch profiler (Kineto) trace" in [importer.NAME for importer in importers()]
