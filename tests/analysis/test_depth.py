"""Queue depth against counting at every ns."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusetui.analysis.queue import depth_from_slots, depth_of

item = st.tuples(st.integers(0, 40), st.integers(0, 15)).map(lambda t: (t[0], t[0] + t[1]))


@given(st.lists(item, min_size=1, max_size=25), st.lists(st.integers(0, 40), max_size=5), st.integers(0, 20))
def test_depth_is_that_of_counting(items: list[tuple[int, int]], waiting: list[int], window_from: int) -> None:
    to_ns = 70
    enqueue = np.array([a for a, _ in items] + waiting, np.int64)
    start = np.array([b for _, b in items], np.int64)
    found = depth_of(enqueue, start, window_from, to_ns, len(waiting))
    begin = max(window_from, min(enqueue.tolist()))
    at_each = [sum(a <= ns < b for a, b in items) + sum(a <= ns for a in waiting) for ns in range(begin, to_ns)]
    assert found.mean == pytest.approx(sum(at_each) / len(at_each))
    assert found.max == max(at_each)
    assert found.p95 == sorted(at_each)[-(-95 * len(at_each) // 100) - 1]
    assert found.now == len(waiting)


def test_no_work_has_no_depth() -> None:
    none = np.zeros(0, np.int64)
    found = depth_of(none, none, 0, 10, None)
    assert (found.mean, found.p95, found.max, found.now) == (None, None, None, None)


def test_depth_of_slots_ignores_slots_without_data() -> None:
    found = depth_from_slots(np.array([np.nan, 1.0, 2.5, np.nan]), 3)
    assert (found.mean, found.p95, found.max, found.now) == (1.75, 3, 3, 3)
