"""Protobuf written for many rows at once is what one message at a time would be."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusetui.telemetry import wire

NUMBERS = st.lists(st.integers(-(1 << 63), (1 << 63) - 1), min_size=1, max_size=20)


def test_a_number_is_seven_bits_a_byte() -> None:
    assert wire.varint(300) == b"\xac\x02"
    assert wire.varint(-1) == b"\xff" * 9 + b"\x01"
    assert wire.content(2, "ä") == b"\x12\x02\xc3\xa4"


@given(NUMBERS)
def test_columns_of_numbers_are_numbers_one_by_one(values: list[int]) -> None:
    column = np.array(values, np.int64)
    assert wire.numbers(9, column).tobytes() == b"".join(wire.number(9, value) for value in values)


@given(NUMBERS, st.data())
def test_messages_of_columns_are_messages_one_by_one(values: list[int], data: st.DataObject) -> None:
    present = np.array([data.draw(st.booleans()) for _ in values])
    column = np.array(values, np.int64)
    whole = wire.messages(11, [wire.numbers(1, column), wire.fixed(47, column).where(present)]).tobytes()
    one_by_one = b""
    for value, there in zip(values, present.tolist(), strict=True):
        flow = wire.varint(47 << 3 | 1) + struct.pack("<q", value) if there else b""
        one_by_one += wire.content(11, wire.number(1, value) + flow)
    assert whole == one_by_one


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_doubles_are_eight_bytes(rows: int) -> None:
    values = np.linspace(-1.5, 2.5, rows)
    expected = b"".join(wire.varint(44 << 3 | 1) + struct.pack("<d", value) for value in values)
    assert wire.doubles(44, values).tobytes() == expected
