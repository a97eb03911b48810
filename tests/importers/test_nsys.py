"""Nsight Systems exports: joined within a process, orphans kept, several schemas, broken files."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from import_checks import MEMORY, corpus, fuzzed, kind_of, opened, rows_of
from nsys_samples import CALL, GIGA, tables, write_db

from fusetui.importers import nsys, nsys_recipe
from fusetui.telemetry.errors import TelemetryError


def test_work_is_joined_within_its_process(tmp_path: Path) -> None:
    capture = nsys.read(write_db(tmp_path / "a.sqlite", tables()), MEMORY)
    rows = rows_of(capture)
    ran = kind_of(rows, "execution")
    assert [(r["name"], r["device"], r["stream"], r["start_ns"] - GIGA) for r in ran] == [
        ("add", 1, "11/7", 1600), ("gemm<float>", 0, "10/7", 1500), ("add", 0, "10/7", 2500), ("add", 0, "10/7", 2600),
        ("add", 0, "10/7", 2700), ("gemm<float>", 0, "10/7", 3000), ("Memcpy HtoD", 0, "10/7", 3500),
    ]  # fmt: skip
    assert [r.get("enqueue_ns", GIGA - 1) - GIGA for r in ran] == [1650, 1200, 2400, 2400, 2400, -1, 3450]
    assert [r.get("launch_ns") for r in ran] == [550, 200, 400, 400, 400, None, 150]
    assert [r.get("node") for r in ran] == [None, None, 0, 1, 2, None, None]
    assert capture.header.clock == "epoch"
    assert capture.header.hardware == {"device 0": "GPU X, 66 SMs, 1000 GB/s"}
    assert capture.header.build["schema"] == "3.25.0"


def test_steps_marks_and_metrics(tmp_path: Path) -> None:
    capture = nsys.read(write_db(tmp_path / "a.sqlite", tables()), MEMORY)
    rows = rows_of(capture)
    steps = kind_of(rows, "request")
    assert [(r["name"], r["start_ns"] - GIGA, r["end_ns"] - GIGA, r["request"]) for r in steps] == [
        ("step 1", 900, 1800, 0),
        ("step 2", 1900, 3700, 1),
    ]
    # By when it was launched; the orphan by when it began.
    assert [r.get("request") for r in kind_of(rows, "execution")] == [0, 0, 1, 1, 1, 1, 1]
    assert [(r["name"], r["end_ns"] - GIGA) for r in kind_of(rows, "mark")] == [("checkpoint", 1960)]
    (metric,) = kind_of(rows, "counter")
    assert (metric["name"], metric["unit"], metric["value"], metric["device"]) == ("SMs Active", "%", 42.0, 0)
    text = "; ".join(capture.notes)
    assert "without its launch call in the capture: 1 of 7" in text
    assert "began before its launch call returned, wait 0: 1 of 6" in text
    assert "NVTX ranges that are no steps, not shown: 1" in text
    assert "NVTX ranges without an end left out: 1" in text


def test_reduced_exports_join_on_the_correlation_alone(tmp_path: Path) -> None:
    path = write_db(tmp_path / "a.sqlite", {
        "CUPTI_ACTIVITY_KIND_KERNEL": ("start, end, deviceId, correlationId, shortName", [(10, 20, 0, 5, 1)]),
        "CUPTI_ACTIVITY_KIND_RUNTIME": (CALL, [(-4, 6, 5, 123 << 24, 0)]),
        "StringIds": ("id, value", [(1, "k")]),
    })  # fmt: skip
    capture = nsys.read(path, MEMORY)
    (row,) = rows_of(capture)
    assert (row["name"], row["start_ns"] - row["enqueue_ns"], row["launch_ns"]) == ("k", 4, 10)
    assert any("reduced export" in note for note in capture.notes)
    assert capture.header.clock == "trace"


def test_whole_graphs_are_one_execution(tmp_path: Path) -> None:
    path = write_db(tmp_path / "a.sqlite", {
        "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": (
            "start, end, deviceId, streamId, correlationId, globalPid, graphId", [(10, 90, 0, 1, 5, 0, 3)],
        ),
    })  # fmt: skip
    capture = nsys.read(path, MEMORY)
    assert [row["name"] for row in rows_of(capture)] == ["CUDA graph 3"]
    assert any("--cuda-graph-trace=node" in note for note in capture.notes)
    assert any("no queue wait" in note for note in capture.notes)


def test_nothing_is_written_beside_it_and_views_are_not_used(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    db = sqlite3.connect(path)
    db.execute("create table META_DATA_EXPORT (name, value)")
    db.execute("create view CUPTI_ACTIVITY_KIND_KERNEL as with recursive r(i) as (select 1 union all select 1 from r) "
               "select i as start, i as end from r")  # fmt: skip
    db.commit()
    db.close()
    before = path.read_bytes()
    with pytest.raises(TelemetryError, match="nothing ran"):
        nsys.read(path, MEMORY)
    assert [p.name for p in tmp_path.iterdir()] == ["a.sqlite"]
    assert path.read_bytes() == before


def test_a_damaged_table_gives_what_came_before(tmp_path: Path) -> None:
    rows = [(i * 10, i * 10 + 5, 0, 7, i, 0, 1, 1) for i in range(1, 20001)]
    content = dict(tables())
    content["CUPTI_ACTIVITY_KIND_KERNEL"] = (content["CUPTI_ACTIVITY_KIND_KERNEL"][0], rows)
    path = write_db(tmp_path / "a.sqlite", content)
    data = bytearray(path.read_bytes())
    half = len(data) // 2 // 4096 * 4096
    data[half : half + 65536] = bytes(65536)
    path.write_bytes(data)
    capture = nsys.read(path, MEMORY)
    assert any("is damaged" in note for note in capture.notes)
    assert len(rows_of(capture)) > 1000


def test_mutations_are_read_or_refused(tmp_path: Path) -> None:
    sample = write_db(tmp_path / "sample", tables()).read_bytes()
    fuzzed(sample, tmp_path / "fuzz.sqlite", nsys.read, least=20)


def recipe(path: Path) -> Path:
    table = {
        "Name": [None, "TSL:XlaModule:#hlo_module=jit_f,program_id=1#", "TSL:Thunk:#name=a,hlo_op=fusion.3#", "NCCL:x"],
        "Projected Start": [90, 100, 100, 150], "Projected Duration": [300, 90, 40, 40],
        "Orig Start": [None, 10.0, 20.0, 60.0], "Orig Duration": [None, 120.0, 30.0, 50.0],
        "NumGPUOps": [4, 2, 1, 1], "Lvl": [None, 0.0, 1.0, 1.0], "NumChild": [0, 2, 0, 0], "Rank": [3, 3, 3, 3],
    }  # fmt: skip
    pq.write_table(pa.table(table), path)
    return path


def test_projected_ranges_are_executions_of_their_module(tmp_path: Path) -> None:
    rows, trace = opened(recipe(tmp_path / "trace.parquet"))
    ran = kind_of(rows, "execution")
    assert [(r["name"], r["start_ns"] - r["enqueue_ns"], r["end_ns"] - r["start_ns"], r["launch_ns"]) for r in ran] == [
        ("fusion.3", 50, 40, 30),
        ("NCCL:x", 40, 40, 50),
    ]
    (module,) = kind_of(rows, "request")
    assert (module["name"], module["end_ns"] - module["start_ns"]) == ("jit_f", 180)
    assert {r["request"] for r in ran} == {0}
    assert any("outside any range, not shown: 4" in note for note in trace.notes)
    assert nsys_recipe.read(tmp_path / "trace.parquet", MEMORY).rank == 3


def test_mutated_recipes_are_read_or_refused(tmp_path: Path) -> None:
    sample = recipe(tmp_path / "sample.parquet").read_bytes()
    fuzzed(sample, tmp_path / "fuzz.parquet", nsys_recipe.read, least=0)


def test_two_gpu_capture_agrees_with_the_profiler() -> None:
    rows = kind_of(
        rows_of(nsys.read(corpus("nsys_sqlite", "GindaChen__nsys-ai__h100_2gpu_1s.sqlite"), MEMORY)), "execution"
    )
    kernels = [row for row in rows if not row["name"].startswith("Mem")]
    assert (len(kernels), sum("enqueue_ns" in row for row in kernels)) == (3442, 1632)
    same = [row for row in kernels if "vectorized_elementwise" in row["name"] and "enqueue_ns" in row]
    assert len(same) == 874
    assert np.mean([row["launch_ns"] for row in same]) / 1e3 == pytest.approx(282.1, abs=0.05)
    waits = [max(0, row["start_ns"] - row["enqueue_ns"]) for row in same]
    assert np.mean(waits) / 1e3 == pytest.approx(364941.8, abs=0.05)
    assert np.mean([row["end_ns"] - row["start_ns"] for row in same]) / 1e3 == pytest.approx(1.716, abs=0.0005)


@pytest.mark.parametrize(
    ("name", "work", "joined"),
    [
        ("GindaChen__nsys-ai__healthy_1pct", 400, 400),
        ("GindaChen__nsys-ai__healthy_judged_1pct", 20, 20),
        ("GindaChen__nsys-ai__mfu_2gpu_before", 5299, 5268),
        ("GindaChen__nsys-ai__mock", 3, 3),
        ("morluto__flameox__nsight-2025.5.2", 6, 6),
    ],
)
def test_every_schema_opens(name: str, work: int, joined: int) -> None:
    rows = kind_of(rows_of(nsys.read(corpus("nsys_sqlite", f"{name}.sqlite"), MEMORY)), "execution")
    assert (len(rows), sum("enqueue_ns" in row for row in rows)) == (work, joined)
    assert not any(row["start_ns"] < row["enqueue_ns"] - row["launch_ns"] for row in rows if "enqueue_ns" in row)


def test_an_archive_of_a_jax_run_opens_as_it_is() -> None:
    rows, trace = opened(corpus("nsys_jax_zip", "NVIDIA__JAX-Toolbox__pax_fsdp4_4proc_proc0.zip"))
    assert len(kind_of(rows, "execution")) == 13849
    assert len(kind_of(rows, "request")) == 33
    assert trace.header.hardware == {"device 0": "NVIDIA A100-SXM4-40GB, 108 SMs"}
