"""Stamps and answers: there and back, through Arrow's own reader and ours, and nothing bad gets through."""

from __future__ import annotations

import io

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusetui.telemetry.header import Header
from fusetui.telemetry.reader import StreamReader
from fusetui.telemetry.schema import build_batch
from fusetui.telemetry.stamp import RUN_KEY, STAMP_KEY, Answer, Stamp
from fusetui.telemetry.writer import Encoder

STAMP = Stamp(rows=7, taken=9, sent_ns=1_700_000_000_000_000_000, asks=True, echo_ns=5, heard_ns=6)


def _batch(rows: int) -> pa.RecordBatch:
    return build_batch({"kind": "mark", "name": "x", "start_ns": 1, "end_ns": 1}, rows)


def test_there_and_back() -> None:
    assert Stamp.read(STAMP.to_bytes()) == STAMP
    assert Stamp.read(Stamp(0, 0, 0, final=True).to_bytes()) == Stamp(0, 0, 0, final=True)
    assert Answer.read(Answer(12, 34).to_bytes()) == Answer(12, 34)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[1]",
        b'{"rows": 1, "taken": 1}',
        b'{"rows": 1, "taken": 1, "sent_ns": -1}',
        b'{"rows": 1.5, "taken": 1, "sent_ns": 1}',
        b'{"rows": true, "taken": 1, "sent_ns": 1}',
        b'{"rows": 1, "taken": 1, "sent_ns": 99999999999999999999}',
        b'{"rows": 1, "taken": 1, "sent_ns": 1, "echo_ns": "x"}',
        b'{"rows": 1, "taken": 1, "sent_ns": 1, "x": "' + b"y" * 1024 + b'"}',
    ],
)
def test_what_is_no_stamp(raw: bytes) -> None:
    assert Stamp.read(raw) is None
    assert Answer.read(b"FUSETUI-HEARD " + raw) is None


@given(st.binary(max_size=200))
def test_no_bytes_raise(raw: bytes) -> None:
    Stamp.read(raw)
    Answer.read(b"FUSETUI-HEARD " + raw)


def test_stamps_travel_beside_batches_and_disturb_nobody() -> None:
    encoder = Encoder(Header(source="s"), extra_metadata={RUN_KEY: b"abc"})
    stamps = [b"one", None, b"three"]
    data = encoder.start() + b"".join(encoder.encode(_batch(n), s) for n, s in zip((3, 2, 0), stamps, strict=True))
    data += encoder.end()
    reader = StreamReader(io.BytesIO(data), "t")
    assert reader.header.source == "s"
    assert [(batch.num_rows, reader.stamp) for batch in reader] == [(3, b"one"), (2, b""), (0, b"three")]
    assert (reader.run, reader.ended) == ("abc", True)
    plain = pa.ipc.open_stream(data)
    first = plain.read_next_batch_with_custom_metadata()
    assert first.custom_metadata is not None
    assert dict(first.custom_metadata) == {STAMP_KEY: b"one"}
    assert plain.read_all().num_rows == 2


def test_other_peoples_metadata_is_passed_over() -> None:
    sink = io.BytesIO()
    batch = _batch(1)
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch, custom_metadata={"a": "b", "fusetui.stamp": "z" * 2000})
        writer.write_batch(batch, custom_metadata={"a": "b", "fusetui.stamp": "z"})
    reader = StreamReader(io.BytesIO(sink.getvalue()), "t")
    assert reader.header.source == "unknown"
    assert [reader.stamp for _ in reader] == [b"", b"z"]
    assert reader.run == ""
