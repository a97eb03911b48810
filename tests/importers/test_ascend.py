"""Ascend kernel tables: exact times, streams, and a wait that is a gap."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from kineto_samples import MEMORY, rows_of, write
from small_captures import KERNEL_DETAILS

from fusetui.importers import ascend
from fusetui.importers.ascend_shapes import shape_key
from fusetui.importers.kineto_times import ABSENT
from fusetui.telemetry.errors import TelemetryError

_AT = 1_774_670_741_777_000_123


def test_kernel_details(tmp_path: Path) -> None:
    assert ascend.sniff(KERNEL_DETAILS)
    capture = ascend.read(write(tmp_path / "k.csv", KERNEL_DETAILS), MEMORY)
    rows = rows_of(capture)
    keys = ("name", "start_ns", "end_ns", "device", "stream", "shape", "flops")
    assert [tuple(row.get(key) for key in keys) for row in rows if row["kind"] == "execution"] == [
        ("aclnnMatmul_MatMulV2", _AT, _AT + 420_500, 0, "stream 7", "2x4096 4096x512 bf16", 67108864.0),
        ("aclnnAdd", _AT + 421_500, _AT + 430_800, 0, "stream 7", "2x4096 f32", None),
        ("hcom_allReduce__1", _AT + 430_877, _AT + 530_877, 1, None, None, None),
    ]
    assert [(r["start_ns"] - _AT, r["value"], r["unit"]) for r in rows if r["name"] == "task wait"] == [
        (0, 20.0, "ns"), (421_500, 1000.0, "ns"), (430_877, 0.0, "ns"),
    ]  # fmt: skip
    assert [row["value"] for row in rows if row["name"] == "cores used"] == [24, 8]
    assert all("enqueue_ns" not in row for row in rows)
    assert capture.header.clock == "epoch"
    assert capture.notes[0].startswith("no queue wait")


def test_op_summary(tmp_path: Path) -> None:
    content = (
        b"Device_id,Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us),Task Wait Time(us),Block Dim\n"
        b'0,"add, fused",Add,AI_CORE,"5000.25\t",1.5,N/A,4\n'
        b"0,lost,Add,AI_CORE,N/A,1.5,0,4\n"
    )
    assert ascend.sniff(content)
    capture = ascend.read(write(tmp_path / "s.csv", content), MEMORY)
    rows = [row for row in rows_of(capture) if row["kind"] == "execution"]
    assert [(row["name"], row["start_ns"], row["end_ns"]) for row in rows] == [("add, fused", 0, 1500)]
    assert capture.header.clock == "trace"
    assert capture.notes[1:] == [
        "rows left out: no times, or another number of fields: 1",
        "no input shapes: profile at level 1 or above",
    ]


def test_a_table_without_times_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TelemetryError, match="no row has times"):
        ascend.read(write(tmp_path / "k.csv", KERNEL_DETAILS.partition(b"\n")[0] + b"\n"), MEMORY)


def test_times_and_shapes() -> None:
    texts = pa.array(["1774670741777000.123\t", "7", " 0.0019 ", "-1", "x", "", "99999999999999999"])
    expected = [1774670741777000123, 7000, 1, ABSENT, ABSENT, ABSENT, ABSENT]
    assert ascend.micros_ns(texts).tolist() == expected
    assert shape_key('"2,4096;;16"', "DT_BF16;INT64;INT64") == "2x4096:bf16 16:i64"
    assert shape_key("[2,3]", "N/A") == "2x3"
    assert shape_key("N/A", "N/A") is None
