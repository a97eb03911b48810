"""A counter has ended when readings are missing, an upper bound when its lower one goes on without it."""

from __future__ import annotations

import numpy as np
import pytest

from fusetui.analysis.counters_stale import stale_of

SLOTS = 60


def ended(**counters: tuple[int, int]) -> set[str]:
    """The names that have ended; of each: read in every n-th slot, up to a slot. `_` in a name is a blank."""
    filled = np.zeros((len(counters), SLOTS), np.bool_)
    for line, (every, until) in zip(filled, counters.values(), strict=True):
        line[4:until:every] = True
    names = [name.replace("_", " ") for name in counters]
    found = stale_of([(name, "") for name in names], filled)
    return {name for name, stale in zip(names, found.tolist(), strict=True) if stale}


def test_an_upper_bound_ends_where_its_lower_one_goes_on() -> None:
    assert ended(p99_lo=(5, SLOTS), p99_hi=(5, 55), p50_lo=(5, SLOTS), p50_hi=(5, SLOTS)) == {"p99 hi"}
    assert ended(p99_hi=(5, 55), other=(5, SLOTS)) == set(), "without a lower one it is a counter like others"


@pytest.mark.parametrize(("until", "stale"), [(60, False), (50, False), (45, False), (40, True), (35, True)])
def test_a_counter_is_stale_after_three_missed_readings(until: int, stale: bool) -> None:
    assert ended(a=(5, SLOTS), b=(5, until)) == ({"b"} if stale else set())


def test_a_slow_counter_is_not_stale_beside_a_fast_one() -> None:
    assert ended(a=(1, SLOTS), b=(20, SLOTS)) == set()


def test_two_readings_tell_no_pace() -> None:
    assert ended(a=(5, SLOTS), b=(5, 14)) == set()
    assert ended(a=(5, SLOTS), b=(5, 15)) == {"b"}, "of three the gaps are known"


def test_each_device_has_a_newest_reading_of_its_own() -> None:
    filled = np.zeros((2, SLOTS), np.bool_)
    filled[0, ::5], filled[1, :20:5] = True, True
    assert stale_of([("a", "0"), ("a", "1")], filled).tolist() == [False, False]
    assert stale_of([("a", "0"), ("b", "0")], filled).tolist() == [False, True]


def test_the_usual_gap_is_the_median_of_uneven_ones() -> None:
    filled = np.zeros((2, SLOTS), np.bool_)
    filled[0, -1] = True
    filled[1, [10, 11, 12, 22, 32]] = True  # gaps 1, 1, 10, 10: median 5.5, overdue after 16.5 slots, 27 have gone
    assert stale_of([("a", ""), ("b", "")], filled).tolist() == [False, True]
    filled[1, [43]] = True  # gaps 1, 1, 10, 10, 11: median 10, overdue after 30
    assert stale_of([("a", ""), ("b", "")], filled).tolist() == [False, False]


def test_none_at_all() -> None:
    assert stale_of([], np.zeros((0, SLOTS), np.bool_)).tolist() == []
