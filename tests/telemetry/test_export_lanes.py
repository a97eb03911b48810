"""Slices on lanes: none overlaps, as few as needed when they come in order."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fusetui.telemetry.export_lanes import Lanes, distinct

SLICES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 50), st.integers(0, 20)), max_size=60)


@given(SLICES, st.integers(1, 7))
def test_no_two_slices_of_a_lane_overlap(slices: list[tuple[int, int, int]], size: int) -> None:
    lanes = Lanes()
    last: dict[tuple[int, int], int] = {}
    for low in range(0, len(slices), size):
        queue, start, took = (np.array(column, np.int64) for column in zip(*slices[low : low + size], strict=True))
        for key, begun, done in zip(zip(queue, lanes.of(queue, start, start + took), strict=True), start, start + took):  # noqa: B905
            assert begun >= last.get(key, 0)
            last[key] = done


def test_a_queue_in_order_takes_one_lane_and_two_at_once_take_two() -> None:
    queue = np.zeros(4, np.int64)
    in_order = Lanes().of(queue, np.array([0, 5, 9, 9]), np.array([5, 9, 9, 12]))
    assert in_order.tolist() == [0, 0, 0, 0]
    at_once = Lanes().of(queue, np.array([0, 2, 5, 6]), np.array([5, 6, 8, 9]))
    assert at_once.tolist() == [0, 1, 0, 1]


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-(1 << 62), 1 << 62)), min_size=1, max_size=30))
def test_combinations_are_told_apart(rows: list[tuple[int, int]]) -> None:
    first, index = distinct(*(np.array(column, np.int64) for column in zip(*rows, strict=True)))
    assert len(first) == len(set(rows))
    assert [rows[at] for at in first[index]] == rows
