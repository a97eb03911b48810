"""The protobuf wire format: what is written comes back, and nothing hostile gets far."""

from __future__ import annotations

import io
import random
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from protobuf_samples import content, double, number, varint, word

from fusetui.importers.protowire import FIXED32, FIXED64, LENGTH, VARINT, Fields, Spans, fields_of, pieces

_FIELD = st.tuples(st.integers(1, (1 << 29) - 1), st.one_of(st.integers(0, (1 << 64) - 1), st.binary(max_size=300)))


def parsed(messages: list[bytes]) -> tuple[Fields, bytes]:
    data = b"".join(messages)
    sizes = np.array([len(m) for m in messages], np.int64)
    starts = np.cumsum(sizes) - sizes
    return fields_of(np.frombuffer(data, np.uint8), starts, sizes), data


@given(st.lists(st.lists(_FIELD, max_size=6), max_size=8))
def test_fields_come_back(messages: list[list[tuple[int, int | bytes]]]) -> None:
    encoded = [b"".join(number(f, v) if isinstance(v, int) else content(f, v) for f, v in m) for m in messages]
    fields, data = parsed(encoded)
    assert not fields.broken.any()
    for i, message in enumerate(messages):
        rows = np.flatnonzero(fields.owner == i)
        found: list[tuple[int, int | bytes]] = []
        for row in rows.tolist():
            value, size = int(fields.value[row]), int(fields.size[row])
            found.append((int(fields.number[row]), data[value : value + size] if fields.wire[row] == LENGTH else value))
        assert found == message
    spans = Spans(io.BytesIO(data))
    at = 0
    for part, message in zip(encoded, messages, strict=True):
        seen = [(n, spans.bytes_at(v, s) if w == LENGTH else v) for n, w, v, s in spans.fields(at, at + len(part))]
        assert seen == message
        at += len(part)


def test_fixed_fields_and_the_last_value() -> None:
    fields, _ = parsed([double(2, -1.5) + word(3, 77) + number(1, 5) + number(1, 6), number(1, 9)])
    assert fields.last(1, VARINT).tolist() == [6, 9]
    assert fields.last(3, FIXED32, absent=1).tolist() == [77, 1]
    (bits,) = fields.only(2, FIXED64)[1].tolist()
    assert struct.unpack("<d", struct.pack("<Q", bits)) == (-1.5,)


@pytest.mark.parametrize(
    "bad",
    [b"\x08", b"\x08" + b"\xff" * 11, b"\x12\x05ab", b"\x00\x01", b"\x0b\x01", b"\x0c", b"\x0d\x01", b"\x09\x01\x02"],
    ids=["no value", "endless varint", "cut content", "field 0", "group", "group end", "cut word", "cut double"],
)
def test_a_broken_message_keeps_what_came_before(bad: bytes) -> None:
    fields, _ = parsed([number(1, 5) + bad, number(1, 8)])
    assert fields.broken.tolist() == [True, False]
    assert fields.last(1, VARINT).tolist() == [5, 8]


def test_content_beyond_the_message_is_clamped_and_told() -> None:
    data = content(1, b"abc") + varint(2 << 3 | 2) + varint(1 << 40) + b"xy"
    spans = Spans(io.BytesIO(data))
    assert [(n, spans.bytes_at(v, s)) for n, _, v, s in spans.fields(0, len(data))] == [(1, b"abc"), (2, b"xy")]
    assert spans.clamped


def test_pieces_of_a_stream_of_messages() -> None:
    data = (
        number(1, 3) + content(4, b"a" * 300) + content(2, b"skip") + content(4, b"") + word(9, 1) + content(4, b"cc")
    )
    starts, sizes, used = pieces(data, 4, True)
    assert [data[s : s + n] for s, n in zip(starts, sizes, strict=True)] == [b"a" * 300, b"", b"cc"]
    assert used == len(data)
    for cut in range(len(data)):
        starts, sizes, used = pieces(data[:cut], 4, False)
        again, more, _ = pieces(data[used:], 4, True)
        found = [data[s : s + n] for s, n in zip(starts, sizes, strict=True)]
        assert found + [data[used + s : used + s + n] for s, n in zip(again, more, strict=True)] == [
            b"a" * 300, b"", b"cc",
        ]  # fmt: skip


def test_noise_is_bounded() -> None:
    noise = random.Random(5)
    for _ in range(300):
        data = bytes(noise.choice([0, 8, 10, 34, 127, 128, 255, noise.randrange(256)]) for _ in range(200))
        starts, sizes, used = pieces(data, 4, noise.random() < 0.5)
        assert 0 <= used <= len(data)
        assert all(s >= 0 and s + n <= len(data) for s, n in zip(starts, sizes, strict=True))
        fields, _ = parsed([data[:90], data[90:]])
        ends = fields.value[fields.wire == LENGTH].astype(np.int64) + fields.size[fields.wire == LENGTH]
        assert (ends <= len(data)).all()
        assert len(list(Spans(io.BytesIO(data)).fields(0, len(data)))) <= len(data)
