"""Microseconds to nanoseconds, exactly."""

from __future__ import annotations

from decimal import Decimal

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusetui.importers.kineto_times import ABSENT, FLOAT_EXACT_US, NeedsTextError, to_ns

BELOW = int(FLOAT_EXACT_US) * 1000 - 1000


@given(st.lists(st.integers(-BELOW, BELOW), min_size=1))
def test_floats_with_three_decimals_are_exact_below_the_limit(wanted: list[int]) -> None:
    values = [float(f"{Decimal(ns) / 1000:.3f}") for ns in wanted]
    assert to_ns(values).tolist() == wanted


@given(st.integers(0, 4 * 10**18))
def test_text_is_exact_everywhere(wanted: int) -> None:
    text = f"{wanted // 1000}.{wanted % 1000:03d}"
    assert to_ns([text, msgspec.Raw(text.encode()), msgspec.Raw(f'"{text}"'.encode())]).tolist() == [wanted] * 3


def test_floats_beyond_the_limit_ask_for_text() -> None:
    for value in (1712195498123456.75, float("inf"), float("-inf")):
        with pytest.raises(NeedsTextError):
            to_ns([1.5, value])
        with pytest.raises(NeedsTextError):
            to_ns([value, "1"])


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (1661203462598738, 1661203462598738000),
        (0, 0),
        (-5, -5000),
        ("1e3", 1_000_000),
        (" 12.5 ", 12500),
        ("1.0005", 1000),
        ("1.0015", 1002),
        ("-0.001", -1),
        (1 << 70, ABSENT),
        (1 << 63, ABSENT),
        (5 * 10**15, ABSENT),
        ("9" * 30, ABSENT),
        ("nan", ABSENT),
        ("", ABSENT),
        ("x", ABSENT),
        ("1e999999999", ABSENT),
        ("9" * 100000, ABSENT),
        (None, ABSENT),
        (True, ABSENT),
        ([1], ABSENT),
        ({}, ABSENT),
        (msgspec.Raw(b"null"), ABSENT),
        (msgspec.Raw(b"12.25"), 12250),
    ],
)
def test_known_values(value: object, wanted: int) -> None:
    assert to_ns([value]).tolist() == [wanted]
    assert to_ns([value, "1"]).tolist() == [wanted, 1000]


def test_nothing_gives_nothing() -> None:
    assert to_ns([]).dtype == np.int64
    assert to_ns([]).shape == (0,)
