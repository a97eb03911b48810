"""Opening captures written by anyone: whole, cut, growing, damaged in the middle."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from telemetry_samples import HEADER, foreign_stream, numbered, requests, stream_of

from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.open import open_trace
from fusetui.telemetry.schema import SCHEMA
from fusetui.telemetry.source import Trace

BATCHES = [numbered(i * 10, 10) for i in range(4)]


# An IPC file holds one dictionary a column.
UNIFIED = pa.Table.from_batches(BATCHES).unify_dictionaries().to_batches()


def whole(trace: Trace) -> list[int]:
    return requests(trace.read(i) for i in range(len(trace.index().rows)))


def ipc_file(path: Path, batches: list[pa.RecordBatch]) -> bytes:
    with (
        pa.OSFile(str(path), "wb") as sink,
        pa.ipc.new_file(sink, SCHEMA.with_metadata(HEADER.to_metadata())) as writer,
    ):
        for batch in batches:
            writer.write_batch(batch)
    return path.read_bytes()


def test_stream_file_and_parquet_give_the_same(tmp_path: Path) -> None:
    (tmp_path / "a.arrows").write_bytes(stream_of(BATCHES, "lz4"))
    ipc_file(tmp_path / "a.arrow", UNIFIED)
    pq.write_table(
        pa.Table.from_batches(BATCHES).replace_schema_metadata(HEADER.to_metadata()),
        tmp_path / "a.parquet",
        row_group_size=10,
    )
    for name in ("a.arrows", "a.arrow", "a.parquet"):
        trace = open_trace(tmp_path / name)
        index = trace.index()
        assert trace.header == HEADER
        assert index.rows.tolist() == [10] * 4
        assert index.first_ns.tolist() == [i * 10_000 + 500 for i in range(4)]
        assert index.last_ns.tolist() == [i * 10_000 + 9_500 for i in range(4)]
        assert trace.read(2).to_pylist() == BATCHES[2].to_pylist()
        assert (list(trace.notes), trace.complete, trace.refresh()) == ([], True, False)
        with pytest.raises(TelemetryError, match="there are 4"):
            trace.read(4)
        with pytest.raises(TelemetryError, match="there are 4"):
            trace.read(-1)
        trace.close()


def test_files_of_polars(tmp_path: Path) -> None:
    frame = pl.from_arrow(pa.Table.from_batches(BATCHES))
    assert isinstance(frame, pl.DataFrame)
    frame.write_ipc(tmp_path / "p.arrow", compression="zstd")
    frame.write_ipc_stream(tmp_path / "p.arrows")
    frame.select("kind", "name", "start_ns", "end_ns", "request").write_parquet(tmp_path / "p.parquet")
    for name in ("p.arrow", "p.arrows", "p.parquet"):
        trace = open_trace(tmp_path / name)
        assert whole(trace) == list(range(40))
        assert trace.read(0)["name"].to_pylist()[:3] == ["kernel_0", "kernel_1", "kernel_2"]
        assert list(trace.notes) == []


@pytest.mark.parametrize("form", ["stream", "file"])
def test_truncation_at_every_offset(tmp_path: Path, form: str) -> None:
    path = tmp_path / "t.arrows"
    data = stream_of(UNIFIED) if form == "stream" else ipc_file(path, UNIFIED)
    offset = 0 if form == "stream" else 8
    ends = [offset + len(stream_of(UNIFIED[:n])) - 8 for n in range(5)]
    for cut in [*range(1, len(data), 97), *ends, *(end - 1 for end in ends), len(data) - 1]:
        path.write_bytes(data[:cut])
        if cut < ends[0]:
            with pytest.raises(TelemetryError):
                open_trace(path)
            continue
        trace = open_trace(path)
        known = sum(end <= cut for end in ends) - 1
        assert whole(trace) == list(range(10 * known)), cut
        (note,) = trace.notes
        assert "without" in note
        assert note.endswith("bytes cut")
        trace.close()


def test_a_growing_stream_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "g.arrows"
    data = stream_of(BATCHES)
    ends = [len(stream_of(BATCHES[:n])) - 8 for n in range(5)]
    path.write_bytes(data[: ends[1] + 5])
    trace = open_trace(path)
    assert whole(trace) == list(range(10))
    assert not trace.complete
    assert list(trace.notes) == ["g.arrows: ends without end-of-stream marker, 5 bytes cut"]
    with path.open("ab") as file:
        file.write(data[ends[1] + 5 : ends[3]])
    assert trace.refresh()
    assert whole(trace) == list(range(30))
    with path.open("ab") as file:
        file.write(data[ends[3] :])
    assert trace.refresh()
    assert whole(trace) == list(range(40))
    assert trace.complete
    assert list(trace.notes) == []


def test_a_stream_that_stopped_long_ago_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "old.arrows"
    path.write_bytes(stream_of(BATCHES)[:-8])
    os.utime(path, (1_000_000_000, 1_000_000_000))
    assert open_trace(path).complete


@pytest.mark.parametrize("compression", [None, "zstd"])
def test_a_damaged_batch_in_the_middle_is_named_and_the_others_stay(tmp_path: Path, compression: None) -> None:
    path = tmp_path / "d.arrows"
    data = bytearray(stream_of(BATCHES, compression))
    low, high = (len(stream_of(BATCHES[:n], compression)) - 8 for n in (1, 2))
    start = (low + high) // 2 + 600
    data[start:high] = b"\x7f" * (high - start)
    path.write_bytes(data)
    trace = open_trace(path)
    index = trace.index()
    assert index.rows.tolist() == [10, 0, 10, 10]
    assert (index.first_ns[1], index.last_ns[1]) == (index.last_ns[0], index.last_ns[0])
    with pytest.raises(TelemetryError, match=r"d\.arrows batch 1"):
        trace.read(1)
    assert requests(trace.read(i) for i in (3, 0, 2)) == [*range(30, 40), *range(10), *range(20, 30)]
    (note,) = trace.notes
    assert note.startswith("d.arrows batch 1")


def test_damaged_framing_ends_the_trace_there(tmp_path: Path) -> None:
    path = tmp_path / "f.arrows"
    data = bytearray(stream_of(BATCHES))
    at = len(stream_of(BATCHES[:2])) - 8
    data[at : at + 8] = b"garbage!"
    path.write_bytes(data)
    trace = open_trace(path)
    assert whole(trace) == list(range(20))
    (note,) = trace.notes
    assert note.startswith(f"f.arrows: damaged at byte {at}, {len(data) - at} bytes lost: not an Arrow message")
    assert trace.complete


def test_streams_one_after_another_in_one_file(tmp_path: Path) -> None:
    path = tmp_path / "two.arrows"
    plain = pa.record_batch({"kind": ["mark"], "name": ["m"], "start_ns": [7], "end_ns": [7], "request": [77]})
    path.write_bytes(
        stream_of(BATCHES[:2]) + foreign_stream([plain, plain.slice(0, 0)]) + stream_of(BATCHES[2:], "zstd")
    )
    trace = open_trace(path)
    assert whole(trace) == [*range(20), 77, *range(20, 40)]
    assert requests(trace.read(i) for i in (4, 2, 0)) == [*range(30, 40), 77, *range(10)]
    assert list(trace.notes) == []


def test_rows_that_were_left_out_are_told(tmp_path: Path) -> None:
    bad = pa.record_batch({"kind": ["mark"] * 3, "name": ["m"] * 3, "start_ns": [5, 6, 7], "end_ns": [5, 5, 6]})
    (tmp_path / "b.arrows").write_bytes(foreign_stream([bad, bad]))
    pq.write_table(pa.Table.from_batches([bad]), tmp_path / "b.parquet")
    for name, dropped in (("b.arrows", 4), ("b.parquet", 2)):
        trace = open_trace(tmp_path / name)
        for number in range(len(trace.index().rows)):
            assert trace.read(number)["end_ns"].to_pylist() == [5]
            assert trace.read(number).num_rows == 1
        assert list(trace.notes) == [
            f"{name}: {dropped} rows left out: they end before they start, or lack a time, kind or name"
        ]


def test_a_file_that_is_cut_or_replaced_while_open(tmp_path: Path) -> None:
    path = tmp_path / "c.arrows"
    path.write_bytes(stream_of(BATCHES))
    trace = open_trace(path)
    os.truncate(path, len(stream_of(BATCHES[:2])))
    assert requests([trace.read(1)]) == list(range(10, 20))
    with pytest.raises(TelemetryError, match="end of the file"):
        trace.read(3)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file is empty"),
        (b"hello, this is not telemetry", "not an Arrow stream"),
        (b"FEA1" + bytes(32), "Feather version 1"),
        (b"\x1f\x8b\x08" + bytes(32), "gzip"),
        (b"PAR1" + bytes(32), "not a whole Parquet file"),
        (b"ARROW1\x00\x00" + bytes(64), "not an Arrow message"),
        (foreign_stream([pa.record_batch({"a": [1]})]), "required columns are missing: kind, name, start_ns, end_ns"),
    ],
)
def test_what_is_refused_and_how(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "bad"
    path.write_bytes(data)
    for isolate in (False, True):
        with pytest.raises(TelemetryError, match=message):
            open_trace(path, isolate=isolate)


def test_what_is_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(TelemetryError, match="a directory, not a capture"):
        open_trace(tmp_path)
    with pytest.raises(TelemetryError, match="No such file"):
        open_trace(tmp_path / "none")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TelemetryError, match="not a regular file"):
        open_trace(tmp_path / "pipe")


def test_a_parquet_row_group_over_the_limits_is_named(tmp_path: Path) -> None:
    from fusetui.telemetry.guard import Limits

    path = tmp_path / "big.parquet"
    pq.write_table(pa.Table.from_batches(BATCHES), path, row_group_size=20)
    trace = open_trace(path, limits=Limits(rows=15))
    with pytest.raises(TelemetryError, match=r"row group 1: 20 rows, \d+ bytes are over the limits; write it again"):
        trace.read(1)
