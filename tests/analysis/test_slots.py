"""Slot widths and spreading intervals over slots."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusetui.analysis.slots import SLOTS, Grid, ladder, ladder_below, spread


@pytest.mark.parametrize(("value", "up", "down"), [(1, 1, 1), (3, 5, 2), (500, 500, 500), (501, 1000, 500), (7, 10, 5)])
def test_the_ladder(value: int, up: int, down: int) -> None:
    assert (ladder(value), ladder_below(value)) == (up, down)


def test_a_minute_has_120_half_seconds() -> None:
    assert Grid.of_window(60_000_000_000) == Grid(500_000_000, 120)


@given(st.integers(1, 10**18))
def test_slots_cover_the_window(window_ns: int) -> None:
    grid = Grid.of_window(window_ns)
    assert 1 <= grid.count <= SLOTS
    assert window_ns <= grid.width * grid.count < window_ns + grid.width


@given(st.integers(-(10**17), 10**17), st.integers(0, 10**17))
def test_slots_of_a_span_hold_its_first_and_last_event(first: int, span: int) -> None:
    grid = Grid.of_span(first, first + span)
    assert 1 <= grid.count <= SLOTS
    assert grid.slot_of(np.array([first, first + span])).tolist() == [0, grid.count - 1]


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(-20, 60), st.integers(0, 50)), min_size=1, max_size=20),
    st.integers(1, 9),
    st.integers(-3, 3),
    st.integers(-2, 2),
    st.integers(1, 6),
)
def test_spread_is_the_overlap_with_every_slot(
    rows: list[tuple[int, int, int]], width: int, origin: int, first: int, slots: int
) -> None:
    grid = Grid(width, slots, origin)
    key, begin, length = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    found = spread(key, begin, begin + length, 3, grid, first, slots)
    for k in range(3):
        for slot in range(slots):
            low = grid.start_of(first + slot)
            overlaps = [max(0, min(b + n, low + width) - max(b, low)) for j, b, n in rows if j == k]
            assert found[k, slot] == sum(overlaps)
