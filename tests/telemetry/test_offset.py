"""Another machine's clock, from stamps: right within the error it states, whatever the ways took."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fusetui.telemetry.offset import ClockOffset, Offset

MS = 1_000_000


def test_nothing_said_nothing_known() -> None:
    assert ClockOffset().estimate() is None


def test_equal_ways_give_the_exact_offset() -> None:
    clock = ClockOffset()
    # Theirs is 250 ms ahead; 1 ms there, 1 ms back, 40 ms in between.
    clock.exchange(1_000 * MS, 1_251 * MS, 1_291 * MS, 1_042 * MS)
    assert clock.estimate() == Offset(250 * MS, 1 * MS, "exchange")
    assert str(clock.estimate()) == "clock +250.0 ±1.0 ms"


def test_the_quickest_exchange_counts_until_it_is_old() -> None:
    clock = ClockOffset()
    clock.exchange(0, 10 * MS, 10 * MS, 20 * MS)
    clock.exchange(100 * MS, 100 * MS + 1_000, 100 * MS + 1_000, 100 * MS + 2_000)
    clock.exchange(200 * MS, 205 * MS, 205 * MS, 210 * MS)
    # 110 ms later, 15 ppm of them: 1.65 us more.
    assert clock.estimate() == Offset(0, 1_000 + 109_998_000 * 15 // 10**6, "exchange")


def test_an_echo_counts_once_and_a_clock_set_in_between_does_not() -> None:
    clock = ClockOffset()
    clock.exchange(10, 20, 30, 40)
    first = clock.estimate()
    clock.exchange(10, 20, 30, 35)
    clock.exchange(50, 60, 900, 70)
    assert clock.estimate() == first


def test_one_way_tells_only_that_a_clock_is_ahead() -> None:
    clock = ClockOffset()
    clock.one_way(sent_ns=1_250 * MS, received_ns=1_003 * MS)
    clock.one_way(sent_ns=1_350 * MS, received_ns=1_190 * MS)
    assert clock.estimate() == Offset(247 * MS, None, "bound")
    assert str(clock.estimate()) == "clock at least 247.0 ms ahead"
    behind = ClockOffset()
    behind.one_way(sent_ns=0, received_ns=5)
    assert str(behind.estimate()) == "clock unknown (one way)"


@given(
    st.integers(-(10**12), 10**12),
    st.lists(st.tuples(*[st.integers(0, 10**9)] * 3), min_size=1, max_size=100),
)
def test_the_truth_is_within_the_error(skew: int, ways: list[tuple[int, int, int]]) -> None:
    clock = ClockOffset()
    at = 0
    for there, think, back in ways:
        heard = at + there + skew
        received = at + there + think + back
        clock.one_way(heard + think, received)
        clock.exchange(at, heard, heard + think, received)
        at = received + 1
    found = clock.estimate()
    assert found is not None
    assert found.error_ns is not None
    assert abs(found.offset_ns - skew) <= found.error_ns + 1
