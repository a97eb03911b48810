"""Unions of intervals against brute force."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusetui.analysis.busy import IntervalUnion, by_key_and_end, disjoint, union_by_key_ns, union_ns

interval = st.tuples(st.integers(0, 3), st.integers(0, 60), st.integers(0, 20)).map(lambda t: (t[0], t[1], t[1] + t[2]))
intervals = st.lists(interval, min_size=1, max_size=40)


def arrays(rows: list[tuple[int, int, int]], scale: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    key, start, end = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    return key, start * scale, end * scale


def covered(rows: list[tuple[int, int, int]]) -> set[int]:
    return {ns for _, start, end in rows for ns in range(start, end)}


@given(intervals)
def test_union_is_the_count_of_covered_ns(rows: list[tuple[int, int, int]]) -> None:
    key, start, end = arrays(rows)
    assert union_ns(start, end) == len(covered(rows))
    by_key = [len(covered([row for row in rows if row[0] == k])) for k in range(4)]
    assert union_by_key_ns(key, start, end, 4).tolist() == by_key


@given(intervals)
def test_disjoint_pieces_cover_the_same_and_never_overlap(rows: list[tuple[int, int, int]]) -> None:
    key, start, end = arrays(rows)
    order = by_key_and_end(key, end)
    begin, stop = disjoint(key[order], start[order], end[order])
    pieces = [(int(k), int(a), int(b)) for k, a, b in zip(key[order], begin, stop, strict=True)]
    for k in range(4):
        mine = [piece for piece in pieces if piece[0] == k]
        assert sum(b - a for _, a, b in mine) == len(covered(mine))
        assert covered(mine) == covered([row for row in rows if row[0] == k])


@given(intervals)
def test_huge_times_take_the_slow_way_to_the_same_answer(rows: list[tuple[int, int, int]]) -> None:
    key, start, end = arrays(rows, scale=1 << 54)
    assert union_by_key_ns(key, start, end, 4).tolist() == [
        len(covered([row for row in rows if row[0] == k])) << 54 for k in range(4)
    ]


@given(intervals, st.integers(1, 7))
def test_union_in_batches_is_the_union(rows: list[tuple[int, int, int]], size: int) -> None:
    union = IntervalUnion(pending_limit=5)
    for at in range(0, len(rows), size):
        _, start, end = arrays(rows[at : at + size])
        union.add(start, end)
    assert union.total_ns() == len(covered(rows))
    assert union.exact


def test_union_beyond_its_limit_stays_exact_for_rows_in_order() -> None:
    union = IntervalUnion(limit=10, pending_limit=5)
    for at in range(0, 1000, 10):
        union.add(np.array([at]), np.array([at + 4]))
    assert union.total_ns() == 400
    assert union.exact


def test_union_beyond_its_limit_says_when_it_is_not_exact() -> None:
    union = IntervalUnion(limit=10, pending_limit=5)
    for at in range(0, 1000, 10):
        union.add(np.array([at]), np.array([at + 4]))
    union.add(np.array([5]), np.array([8]))
    assert not union.exact
    assert union.total_ns() == 400


@pytest.mark.parametrize("n", [0, 1])
def test_few_intervals(n: int) -> None:
    assert union_ns(np.full(n, 3, np.int64), np.full(n, 9, np.int64)) == 6 * n
