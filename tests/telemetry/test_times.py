"""Times, durations and sizes as people type them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusetui.telemetry.times import parse_bytes, parse_duration_ns, parse_position_ns

DAY_NS = 86_400 * 10**9
MIDNIGHT_NS = 20_000 * DAY_NS  # 2024-10-04


@pytest.mark.parametrize(
    ("text", "ns"),
    [("10s", 10**10), ("2.5 ms", 2_500_000), ("7", 7 * 10**9), ("3us", 3000), ("1µs", 1000), ("2m", 12 * 10**10)],
)
def test_durations(text: str, ns: int) -> None:
    assert parse_duration_ns(text) == ns


@pytest.mark.parametrize("text", ["", "s", "-1s", "nan", "1e3", "10 parsecs", "inf"])
def test_not_a_duration(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration_ns(text)


@pytest.mark.parametrize(("text", "size"), [("512MiB", 512 << 20), ("1G", 1 << 30), ("10", 10), ("1.5k", 1536)])
def test_sizes(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize(
    ("text", "offset_ns"),
    [
        ("start", 0),
        ("end", 100 * 10**9),
        ("50%", 50 * 10**9),
        ("+5s", 65 * 10**9),
        ("-500ms", 59_500_000_000),
        ("12.5s", 12_500_000_000),
        ("23:59:10", 10 * 10**9),
        ("00:00:05.25", 65_250_000_000),
        ("2024-10-03T23:59:30", 30 * 10**9),
        ("-1h", 0),
        ("900%", 100 * 10**9),
    ],
)
def test_positions_in_a_trace_over_midnight(text: str, offset_ns: int) -> None:
    start_ns = MIDNIGHT_NS - 60 * 10**9
    assert parse_position_ns(text, start_ns, start_ns + 100 * 10**9, start_ns + 60 * 10**9) == start_ns + offset_ns


@pytest.mark.parametrize("text", ["yesterday", "25:00", "", "%", "12:61:00"])
def test_not_a_position(text: str) -> None:
    with pytest.raises(ValueError):
        parse_position_ns(text, 0, 100, 50)


@given(st.text(max_size=20), st.integers(-(2**60), 2**60), st.integers(0, 2**50))
def test_any_text_is_clamped_or_refused(text: str, start_ns: int, span_ns: int) -> None:
    try:
        place = parse_position_ns(text, start_ns, start_ns + span_ns, start_ns)
    except ValueError:
        return
    assert start_ns <= place <= start_ns + span_ns
