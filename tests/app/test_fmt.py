"""Numbers as text: right digits, right unit, always the same width."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from fusetui.app import fmt

FLOATS = st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True), st.integers(-(2**63), 2**63 - 1))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.00"), (0.31, "0.31"), (9.99, "9.99"), (9.994, "9.99"), (9.996, "10.0"), (10.0, "10.0"),
        (99.94, "99.9"), (99.96, " 100"), (100, " 100"), (999.4, " 999"), (999.6, "1000"), (1000, "1000"),
        (9_999, "9999"), (10_000, " 1e4"), (123_456, " 1e5"), (5e99, "5e99"), (1e300, ">e99"),
        (-9.9, "-9.9"), (-99, " -99"), (-999, "-999"), (-0.001, " 0.0"), (-2e5, "-2e5"), (-1e12, "<-e9"),
        (None, "   —"), (math.nan, "   —"), (math.inf, "   —"), (-math.inf, "   —"),
    ],
)  # fmt: skip
def test_number(value: float | None, text: str) -> None:
    assert fmt.number(value) == text


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0.00 ns"), (1, "1.00 ns"), (999, " 999 ns"), (999.4, " 999 ns"), (999.6, "1.00 µs"), (1_000, "1.00 µs"),
        (9_990, "9.99 µs"), (10_000, "10.0 µs"), (99_900, "99.9 µs"), (100_000, " 100 µs"), (999_000, " 999 µs"),
        (1_000_000, "1.00 ms"), (58_100_000, "58.1 ms"), (22_400_000_000, "22.4 s "), (9_999e9, "9999 s "),
        (10_800e9, "3.00 h "), (400_000 * 3.6e12, " 2e4 d "), (-12_345, " -12 µs"), (None, "   —   "),
    ],
)  # fmt: skip
def test_duration(ns: float | None, text: str) -> None:
    assert fmt.duration(ns) == text


def test_lower_bounds_carry_their_mark() -> None:
    assert fmt.duration(22_400_000_000, at_least=True) == "≥22.4 s "
    assert fmt.bounded(22_400_000_000, False) == " 22.4 s "
    assert fmt.bounded(None, True) == "    —   "
    assert fmt.lower_bound(22_400_000_000) == "≥ 22.4 s"
    assert fmt.lower_bound(None) == "—"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "   0 "), (7, "   7 "), (999, " 999 "), (1_000, "1.00k"), (9_990, "9.99k"), (9_999, "10.0k"),
        (12_400, "12.4k"),
        (99_960, " 100k"), (999_400, " 999k"), (999_600, "1.00M"), (1_200_000, "1.20M"), (3e9, "3.00G"), (1.5, "1.50 "),
        (None, "   — "),
    ],
)  # fmt: skip
def test_count(value: float | None, text: str) -> None:
    assert fmt.count(value) == text


def test_bytes_rates_shares_and_ratios() -> None:
    assert fmt.size(14_200) == "14.2 kB"
    assert fmt.size(999) == " 999 B "
    assert fmt.rate(118_000) == " 118k/s"
    assert fmt.percent(0.972) == "97.2 %"
    assert fmt.percent(1.0) == " 100 %"
    assert fmt.percent(0.003) == "0.30 %"
    assert fmt.ratio(0.31) == "0.31"
    assert fmt.ratio(9.996) == "10.0"
    assert fmt.short(50.0) == "50"
    assert fmt.short(2.5) == "2.5"
    assert fmt.short(0.25) == "0.25"
    assert fmt.short(1_000) == "1000"


@given(FLOATS)
def test_every_width_holds_whatever_the_value(value: float | None) -> None:
    assert cell_len(fmt.number(value)) == fmt.NUMBER_CELLS
    assert cell_len(fmt.duration(value)) == fmt.DURATION_CELLS
    assert cell_len(fmt.bounded(value, True)) == fmt.DURATION_CELLS + 1
    assert cell_len(fmt.count(value)) == fmt.COUNT_CELLS
    assert cell_len(fmt.size(value)) == fmt.BYTES_CELLS
    assert cell_len(fmt.rate(value)) == fmt.RATE_CELLS
    assert cell_len(fmt.percent(value)) == fmt.PERCENT_CELLS
    assert cell_len(fmt.ratio(value)) == fmt.NUMBER_CELLS
    assert cell_len(fmt.age(value)) <= 5


@given(st.floats(1e-3, 9e9))
def test_a_duration_reads_back_to_half_a_percent(seconds: float) -> None:
    ns = seconds * 1e9
    digits, unit = fmt.duration(ns).split()
    back = float(digits) * {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9, "h": 3.6e12, "d": 86.4e12}[unit]
    assert abs(back - ns) <= 0.00501 * ns or "e" in digits


def test_moments() -> None:
    at = 1_700_017_841_234_567_891
    assert fmt.moment(at, 10e9) == "03:10:41.2Z"
    assert fmt.moment(at, 600e9) == "03:10:41Z"
    assert fmt.moment(at, 1e9) == "03:10:41.234Z"
    assert fmt.moment(at, 1e6) == "03:10:41.234567Z"
    assert fmt.moment(at, 1e3) == "03:10:41.234567891Z"
    assert fmt.moment(at, 3e14) == "11-15 03:10Z"
    assert fmt.moment(12_300_000, 1e9, "trace") == "+12.3 ms"
    assert fmt.moment(None, 1e9) == "—"
    assert fmt.moment(-1, 1e9) == "23:59:59.999Z"
    assert fmt.moment(2**63 - 1, 1e12).endswith("Z")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "0.0s"),
        (0.4, "0.4s"),
        (9.94, "9.9s"),
        (9.96, "10s"),
        (99.4, "99s"),
        (99.6, "2m"),
        (7_200, "2h"),
        (1e6, "12d"),
    ],
)
def test_age(seconds: float, text: str) -> None:
    assert fmt.age(seconds) == text


def test_clip_counts_cells_not_characters() -> None:
    assert fmt.clip("prefill", 7) == "prefill"
    assert fmt.clip("prefill", 6) == "prefi…"
    assert fmt.clip("注意力機構", 6) == "注意…"
    assert fmt.clip("注意", 1) == "…"
    assert fmt.clip("x", 0) == ""
    assert fmt.fit("注意", 6) == "注意  "
    assert fmt.fit("ab", 4, right=True) == "  ab"


@given(st.text(st.characters(exclude_categories=("C", "Zl", "Zp")), max_size=30), st.integers(0, 20))
def test_fit_is_exact(text: str, cells: int) -> None:
    assert cell_len(fmt.fit(text, cells)) == cells
    assert cell_len(fmt.clip(text, cells)) <= cells
