"""Reading and writing streams: nothing changes on the way, and every kind of end is told apart."""

from __future__ import annotations

import io
import os
import threading
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from telemetry_samples import HEADER, foreign_stream, numbered, requests, stream_of

from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.framing import parse_message
from fusetui.telemetry.guard import GuardedReader, Limits
from fusetui.telemetry.reader import StreamReader
from fusetui.telemetry.schema import KINDS, MAPPINGS, SCHEMA, build_batch
from fusetui.telemetry.writer import Compression, StreamWriter

COMPRESSIONS: list[Compression] = [None, "lz4", "zstd"]


class Dribble:
    """A raw pipe at its worst: one to three bytes a read."""

    def __init__(self, data: bytes) -> None:
        self._file = io.BytesIO(data)
        self._count = 0

    def read(self, size: int, /) -> bytes:
        self._count += 1
        return self._file.read(min(size, 1 + self._count % 3))


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_what_is_written_is_read(compression: Compression) -> None:
    batches = [numbered(0, 100), numbered(100, 1), numbered(101, 5000)]
    reader = StreamReader(io.BytesIO(stream_of(batches, compression)), "x")
    assert reader.header == HEADER
    read = list(reader)
    assert [b.to_pylist() for b in read] == [b.to_pylist() for b in batches]
    assert (reader.batches, reader.rows, reader.ended, reader.cut_bytes, reader.streams) == (3, 5101, True, 0, 1)
    assert reader.bytes_in == len(stream_of(batches, compression))


def test_other_tools_read_what_is_written() -> None:
    data = stream_of([numbered(0, 10), numbered(10, 10)], "zstd")
    assert pl.read_ipc_stream(data)["request"].to_list() == list(range(20))
    assert pa.ipc.open_stream(data).read_all().column("request").to_pylist() == list(range(20))


def test_the_schema_goes_out_before_the_first_batch() -> None:
    sink = io.BytesIO()
    StreamWriter(sink, HEADER)
    assert StreamReader(io.BytesIO(sink.getvalue()), "x").header == HEADER


def test_a_large_batch_goes_out_in_parts_and_unused_words_stay_home() -> None:
    words = pa.array([f"word number {i}" for i in range(50_000)])
    name = pa.DictionaryArray.from_arrays(pa.array([7, 49_999], pa.int32()), words)
    small = build_batch({"kind": "mark", "name": name, "start_ns": [1, 2], "end_ns": [1, 2]})
    assert len(stream_of([small] * 10)) < 40_000
    assert StreamReader(io.BytesIO(stream_of([small])), "x").__iter__().__next__()["name"].to_pylist() == [
        "word number 7",
        "word number 49999",
    ]
    big = numbered(0, 300_000)
    assert [b.num_rows for b in StreamReader(io.BytesIO(stream_of([big])), "x")] == [131_072, 131_072, 37_856]


TEXT = st.none() | st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=6)
INT64 = st.none() | st.integers(-(1 << 63), (1 << 63) - 1)
INT32 = st.none() | st.integers(-(1 << 31), (1 << 31) - 1)
TIME = st.integers(-(1 << 62), (1 << 62) - 1)
ROW = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(KINDS),
        "name": st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=6),
        "enqueue_ns": st.none() | TIME,
        "end_ns": TIME,
        "launch_ns": st.none() | st.integers(0, 1 << 62),
        "node": INT32,
        "host": TEXT,
        "device": INT32,
        "stream": TEXT,
        "request": INT64,
        "plan": TEXT,
        "mapping": st.none() | st.sampled_from(MAPPINGS),
        "shape": TEXT,
        "flops": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "dram_bytes": INT64,
        "unit": TEXT,
    }
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(ROW, min_size=1, max_size=8), min_size=1, max_size=4), st.sampled_from(COMPRESSIONS))
def test_any_columns_and_nulls_survive(batches: list[list[dict[str, Any]]], compression: Compression) -> None:
    built = [
        build_batch(
            {name: pa.array([row[name] for row in rows], _plain(name)) for name in rows[0]},
            len(rows),
        )
        for rows in batches
    ]
    read = list(StreamReader(io.BytesIO(stream_of(built, compression)), "x"))
    assert [b.to_pylist() for b in read] == [b.to_pylist() for b in built]


def _plain(name: str) -> pa.DataType:
    kind = SCHEMA.field(name).type
    return pa.utf8() if isinstance(kind, pa.DictionaryType) else kind


def test_short_reads_are_continued() -> None:
    data = stream_of([numbered(0, 50)])
    reader = StreamReader(Dribble(data), "x")
    assert requests(reader) == list(range(50))
    assert reader.ended


def _cuts(data: bytes) -> list[int]:
    """Around every message boundary, in every prefix, metadata and body, and some places more."""
    cuts, at = set(range(1, len(data), 97)), 0
    while at < len(data):
        length = int.from_bytes(data[at + 4 : at + 8], "little")
        body = parse_message(data[at + 8 : at + 8 + length], "x", Limits()).body_bytes if length else 0
        end = at + 8 + length + body
        cuts |= {at - 1, at, at + 1, at + 4, at + 7, at + 8, at + 8 + length // 2, at + 8 + length, end - body // 2}
        at = end
    return sorted(cut for cut in cuts if 0 < cut < len(data))


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_truncation_at_every_offset(compression: Compression) -> None:
    batches = [numbered(i * 3, 3) for i in range(3)]
    data = stream_of(batches, compression)
    ends = [len(stream_of(batches[:n], compression)) - 8 for n in range(4)]
    for cut in _cuts(data):
        reader = StreamReader(io.BytesIO(data[:cut]), "x")
        if cut < ends[0]:
            with pytest.raises(TelemetryError, match="nothing came"):
                _ = reader.header
            continue
        whole = sum(end <= cut for end in ends) - 1
        assert requests(reader) == list(range(3 * whole)), cut
        assert not reader.ended
        # At a message boundary nothing is cut; dictionaries lie between, so only the batch ends are known here.
        if cut in ends:
            assert reader.cut_bytes == 0


def test_a_second_stream_follows_the_first() -> None:
    other = pa.record_batch(
        {"kind": ["mark"], "name": ["m"], "start_ns": [1], "end_ns": [1], "request": pa.array([99], pa.int16())}
    )
    data = stream_of([numbered(0, 3)]) + foreign_stream([other]) + stream_of([numbered(3, 2)], "lz4")
    reader = StreamReader(io.BytesIO(data), "x")
    assert requests(reader) == [0, 1, 2, 99, 3, 4]
    assert (reader.streams, reader.ended) == (3, True)


def test_end_markers_without_end_are_no_trap() -> None:
    reader = StreamReader(io.BytesIO(stream_of([numbered(0, 3)]) + b"\xff\xff\xff\xff\x00\x00\x00\x00" * 5000), "x")
    assert requests(reader) == [0, 1, 2]
    assert (reader.streams, reader.ended) == (1, True)


def test_an_ipc_file_over_a_pipe() -> None:
    sink = io.BytesIO()
    batch = numbered(0, 5)
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    reader = StreamReader(io.BytesIO(sink.getvalue()), "x")
    assert requests(reader) == [0, 1, 2, 3, 4]
    assert reader.ended


def test_dictionary_deltas_and_replacements() -> None:
    def batch(words: list[str], codes: list[int]) -> pa.RecordBatch:
        name = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(words))
        size = len(codes)
        return build_batch({"kind": "mark", "name": name, "start_ns": [1] * size, "end_ns": [1] * size})

    batches = [batch(["a"], [0]), batch(["a", "b"], [1, 0]), batch(["a", "b", "c"], [2]), batch(["z"], [0])]
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    with pa.ipc.new_stream(sink, SCHEMA, options=options) as writer:
        for b in batches:
            writer.write_batch(b)
        assert writer.stats.num_dictionary_deltas == 2
    read = list(StreamReader(io.BytesIO(sink.getvalue()), "x"))
    assert [b["name"].to_pylist() for b in read] == [["a"], ["b", "a"], ["c"], ["z"]]


def test_a_bad_batch_is_skipped_and_counted() -> None:
    good = pa.record_batch({"kind": ["mark"], "name": ["m"], "start_ns": [1], "end_ns": [1], "request": [1]})
    bad = pa.record_batch({"kind": ["nonsense"], "name": ["m"], "start_ns": [1], "end_ns": [1], "request": [2]})
    reader = StreamReader(io.BytesIO(foreign_stream([good, bad, good])), "cap")
    assert requests(reader) == [1, 1]
    assert (reader.batches, reader.rejected) == (2, 1)
    assert reader.last_error == "cap batch 1, column 'kind': unknown word 'nonsense'"


def test_damage_inside_a_batch_leaves_the_next_ones() -> None:
    batches = [numbered(i * 100, 100) for i in range(3)]
    data = bytearray(stream_of(batches, "zstd"))
    middle = (len(stream_of(batches[:1], "zstd")) + len(stream_of(batches[:2], "zstd"))) // 2
    data[middle : middle + 300] = bytes(300)
    reader = StreamReader(io.BytesIO(bytes(data)), "x")
    assert requests(reader) == [*range(100), *range(200, 300)]
    assert reader.rejected == 1


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"FEA1" + bytes(40), "Feather version 1"),
        (b"\x1f\x8b\x08\x00" + bytes(40), "gzip -dc"),
        (b"\x28\xb5\x2f\xfd" + bytes(40), "zstd -dc"),
        (b"PAR1" + bytes(40), "open it as a file"),
        (b"\x10\x01\x00\x00\x10\x00\x00\x00" + bytes(40), "before version 0.15"),
        (b"GET / HTTP/1.1\r\n", "not an Arrow stream"),
        (b"\xff\xff\xff\xff\xff\xff\xff\x7f" + bytes(40), "metadata of 2147483647 bytes is over the limit"),
        (b"\xff\xff\xff\xff\x10\x00\x00\x00" + bytes(40), "not a schema, dictionary or batch"),
        (b"\xff\xff\xff\xff\x10\x00\x00\x00" + b"\xff" * 40, "damaged message metadata"),
        (b"", "nothing came"),
    ],
)
def test_what_is_refused_and_how(data: bytes, message: str) -> None:
    with pytest.raises(TelemetryError, match=message) as caught:
        _ = StreamReader(io.BytesIO(data), "x").header
    assert "\n" not in str(caught.value)


def test_reads_are_capped() -> None:
    asked: list[int] = []

    class Watching(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            asked.append(size or 0)
            return super().read(size)

    big = stream_of([numbered(0, 100_000)])
    with pytest.raises(TelemetryError, match="is over the limit of 100000"):
        list(StreamReader(Watching(big), "x", Limits(message=100_000)))
    assert max(asked) <= 1 << 20
    with pytest.raises(TelemetryError, match="more than 1000 bytes in all"):
        GuardedReader(io.BytesIO(bytes(5000)), "x", Limits(total=1000)).read(1001)


def test_dictionaries_that_only_grow_end_the_reader() -> None:
    words = [f"a long word for the dictionary, number {i}" for i in range(400)]
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, SCHEMA, options=pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)) as writer:
        for number in range(1, 400):
            name = pa.DictionaryArray.from_arrays(pa.array([number - 1], pa.int32()), pa.array(words[:number]))
            writer.write_batch(build_batch({"kind": "mark", "name": name, "start_ns": [1], "end_ns": [1]}))
    got = []
    with pytest.raises(TelemetryError, match="dictionaries are over the limit"):
        got.extend(StreamReader(io.BytesIO(sink.getvalue()), "x", Limits(dictionary=9000)))
    assert 50 < len(got) < 300
    assert got[-1]["name"].to_pylist() == [words[len(got) - 1]]


def test_a_decompression_bomb_is_refused_before_it_is_unpacked() -> None:
    rows = 3_000_000
    zeros = pa.array([0], pa.int64()).take(pa.nulls(rows, pa.int64()).fill_null(0))
    kind = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(3, pa.int8()), rows), pa.array(KINDS))
    name = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), rows), pa.array(["n"]))
    columns = {"kind": kind, "name": name, **dict.fromkeys(("start_ns", "end_ns", "request", "enqueue_ns"), zeros)}
    columns |= {f"extra{i}": zeros for i in range(8)}
    sink = io.BytesIO()
    batch = pa.record_batch(columns)
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(batch)
    assert len(sink.getvalue()) < 100_000
    before = pa.total_allocated_bytes()
    reader = StreamReader(io.BytesIO(sink.getvalue()), "x")
    assert list(reader) == []
    assert "decompressed bytes is over the limit" in reader.last_error
    assert pa.total_allocated_bytes() - before < 1 << 20


def test_a_pipe_that_is_still_open_yields_what_came() -> None:
    read_fd, write_fd = os.pipe()
    data = stream_of([numbered(0, 4), numbered(4, 4)])
    first = len(stream_of([numbered(0, 4)])) - 8
    with os.fdopen(read_fd, "rb", buffering=0) as source, os.fdopen(write_fd, "wb", buffering=0) as sink:
        batches = iter(StreamReader(source, "pipe"))
        sink.write(data[:first])
        assert requests([next(batches)]) == [0, 1, 2, 3]
        later = threading.Timer(0.05, sink.write, [data[first:]])
        later.start()
        assert requests([next(batches)]) == [4, 5, 6, 7]
        later.join()
