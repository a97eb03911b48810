"""The log histogram: its grid, its error bound, merging."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusetui.analysis.loghist import (
    BUCKETS,
    EDGES,
    MAX_VALUE,
    REPRESENTATIVE,
    LogHistogram,
    bucket_of,
    rank_buckets,
)

durations = st.integers(0, MAX_VALUE)


def bucket_by_definition(value: int) -> int:
    """Smallest i with value <= 2^((i-1)/32), in exact integer arithmetic: value^32 <= 2^(i-1)."""
    if value == 0:
        return 0
    power = value**32
    exponent = power.bit_length() - 1
    return 1 + exponent + (power > 1 << exponent)


@given(durations)
def test_bucket_is_the_one_of_the_definition(value: int) -> None:
    assert bucket_of(np.array([value], np.int64))[0] == bucket_by_definition(value)


@pytest.mark.parametrize("power", range(63))
def test_bucket_is_exact_around_powers_of_two(power: int) -> None:
    near = [v for v in range((1 << power) - 2, (1 << power) + 3) if 0 <= v <= MAX_VALUE]
    assert bucket_of(np.array(near, np.int64)).tolist() == [bucket_by_definition(v) for v in near]


@pytest.mark.parametrize("index", [33, 700, 1000, 1500, 1984])
def test_bucket_is_exact_around_irrational_boundaries(index: int) -> None:
    edge = int(Fraction(2) ** (index // 32) * Fraction(2.0 ** (index % 32 / 32)))
    near = list(range(max(edge - 3, 0), min(edge + 4, MAX_VALUE + 1)))
    assert bucket_of(np.array(near, np.int64)).tolist() == [bucket_by_definition(v) for v in near]


def test_out_of_range_values_are_clipped() -> None:
    assert bucket_of(np.array([-5, -(1 << 62), (1 << 63) - 1], np.int64)).tolist() == [0, 0, BUCKETS - 1]


@given(durations.filter(lambda v: v > 0))
def test_representative_is_within_the_error_bound(value: int) -> None:
    representative = REPRESENTATIVE[bucket_of(np.array([value], np.int64))[0]]
    assert abs(representative - value) / value <= 0.01084


@given(st.lists(durations, min_size=1, max_size=200), st.sampled_from([0.0, 0.5, 0.95, 0.99, 1.0]))
def test_quantile_is_nearest_rank_within_the_bound(values: list[int], q: float) -> None:
    histogram = LogHistogram()
    histogram.add(np.array(values, np.int64))
    rank = max(1, -(-round(q * 1000) * len(values) // 1000))
    exact = sorted(values)[rank - 1]
    found = histogram.quantile(q)
    assert found is not None
    assert found <= histogram.max == max(values)
    assert abs(found - exact) <= 0.011 * exact + 0.5


@given(st.lists(st.lists(durations, max_size=20), min_size=3, max_size=3))
def test_merge_is_associative_and_equals_adding_everything(parts: list[list[int]]) -> None:
    def histogram(values: list[int]) -> LogHistogram:
        made = LogHistogram()
        made.add(np.array(values, np.int64))
        return made

    left, right = [histogram(p) for p in parts], [histogram(p) for p in parts]
    left[0].merge(left[1])
    left[0].merge(left[2])
    right[1].merge(right[2])
    right[0].merge(right[1])
    bulk = histogram([v for part in parts for v in part])
    for made in (left[0], right[0]):
        assert np.array_equal(made.counts, bulk.counts)
        assert (made.n, made.max) == (bulk.n, bulk.max)


def test_empty_histogram_has_no_quantile() -> None:
    assert LogHistogram().quantile(0.5) is None
    assert rank_buckets(np.zeros((2, BUCKETS), np.int64), 0.5).tolist() == [-1, -1]


def test_edges_enclose_their_buckets() -> None:
    values = np.array([1, 2, 3, 1000, 123_456_789], np.int64)
    bucket = bucket_of(values)
    assert (EDGES[bucket] < values).all()
    assert (values <= EDGES[bucket + 1] * (1 + 1e-12)).all()
