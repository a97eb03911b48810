"""The replay clock under a fake wall clock: exact, whatever the number of frames."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusetui.telemetry.clock import ReplayClock


class Wall:
    def __init__(self) -> None:
        self.ns = 123

    def __call__(self) -> int:
        return self.ns


def make(start_ns: int, end_ns: int, speed: float = 1.0) -> tuple[ReplayClock, Wall]:
    wall = Wall()
    return ReplayClock(start_ns, end_ns, speed=speed, wall_ns=wall), wall


@pytest.mark.parametrize("speed", [0.1, 0.25, 1.0, 3.0, 8.0, 1000.0])
def test_ten_thousand_frames_are_exact(speed: float) -> None:
    frame_ns = 33_333_333
    clock, wall = make(1_000, 1_000 + 10**18, speed)
    clock.play()
    begun_ns = wall.ns
    for frame in range(1, 10_001):
        wall.ns += frame_ns
        exact = 1_000 + int(frame * frame_ns * Fraction(speed).limit_denominator(1000))
        assert clock.position_ns() == exact
    assert wall.ns - begun_ns == 10_000 * frame_ns


def test_pausing_and_speed_changes_never_jump() -> None:
    clock, wall = make(0, 10**15)
    clock.play()
    wall.ns += 1_000
    clock.set_speed(10)
    assert clock.position_ns() == 1_000
    wall.ns += 1_000
    assert clock.position_ns() == 11_000
    clock.pause()
    wall.ns += 5_000
    assert clock.position_ns() == 11_000
    clock.play()
    wall.ns += 7
    assert clock.position_ns() == 11_070


def test_stops_at_the_end_and_play_starts_again() -> None:
    clock, wall = make(100, 200)
    clock.play()
    wall.ns += 1_000
    assert (clock.position_ns(), clock.at_end) == (200, True)
    clock.pause()
    clock.play()
    assert (clock.position_ns(), clock.at_end) == (100, False)


def test_loop_wraps_and_counts_laps() -> None:
    clock, wall = make(100, 200)
    clock.loop = True
    clock.play()
    wall.ns += 100
    assert (clock.position_ns(), clock.laps()) == (200, 0)
    wall.ns += 30
    assert (clock.position_ns(), clock.laps()) == (130, 1)
    wall.ns += 1_000
    assert (clock.position_ns(), clock.laps()) == (130, 11)


def test_growing_end_goes_on_without_a_jump() -> None:
    clock, wall = make(0, 100)
    clock.play()
    wall.ns += 500
    clock.extend(1_000)
    assert clock.position_ns() == 100
    wall.ns += 50
    assert clock.position_ns() == 150


@given(st.integers(-(2**62), 2**62), st.integers(0, 2**40), st.integers(-(2**63), 2**63))
def test_seek_is_clamped_to_the_trace(start_ns: int, span_ns: int, target_ns: int) -> None:
    clock, _ = make(start_ns, start_ns + span_ns)
    clock.seek(target_ns)
    assert clock.position_ns() == min(max(target_ns, start_ns), start_ns + span_ns)


def test_nan_speed_is_refused_and_others_clamped() -> None:
    clock, _ = make(0, 1)
    with pytest.raises(ValueError, match="not a number"):
        clock.set_speed(float("nan"))
    clock.set_speed(float("inf"))
    assert clock.speed == 1000.0
    clock.set_speed(-3)
    assert clock.speed == pytest.approx(0.1)
