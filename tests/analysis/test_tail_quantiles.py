"""Nearest rank, refusal, Kaplan-Meier."""

import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusetui.analysis.loghist import BUCKETS, bucket_of
from fusetui.analysis.quantiles import kaplan_meier, nearest_rank, tail_of, tail_of_counts

samples = st.lists(st.integers(0, 10**12), min_size=1, max_size=300)


def by_counting(values: list[int], q: str) -> int:
    """The smallest value that at least q n values do not exceed, counted one by one."""
    for value in sorted(values):
        if sum(other <= value for other in values) >= Decimal(q) * len(values):
            return value
    raise AssertionError


@given(samples)
def test_nearest_rank_equals_counting(values: list[int]) -> None:
    found = nearest_rank(np.array(values, np.int64), (0.5, 0.95, 0.99, 0.999))
    assert found == [by_counting(values, q) for q in ("0.5", "0.95", "0.99", "0.999")]


def test_nearest_rank_of_the_published_vector() -> None:
    tens = np.arange(10, 1001, 10, dtype=np.int64)
    assert nearest_rank(tens, (0.95, 0.99)) == [950, 990]
    assert nearest_rank(tens[:20], (0.95, 0.99)) == [190, 200]


@pytest.mark.parametrize(
    ("n", "p99", "p999"), [(99, False, False), (100, True, False), (999, True, False), (1000, True, True)]
)
def test_quantiles_are_refused_below_their_n(n: int, p99: bool, p999: bool) -> None:
    values = np.arange(1, n + 1, dtype=np.int64)
    for tail in (tail_of(values), tail_of_counts(np.bincount(bucket_of(values), minlength=BUCKETS), 0.0, n)):
        assert (tail.p99_ns is not None, tail.p999_ns is not None) == (p99, p999)
        assert tail.p50_ns is not None
        assert (f"have {n}" in tail.why) == (not p999)


def test_no_samples_says_so() -> None:
    tail = tail_of(np.zeros(0, np.int64))
    assert (tail.n, tail.p50_ns, tail.max_ns, tail.mean_ns, tail.why) == (0, None, None, None, "no samples")


def test_kaplan_meier_of_the_textbook_example() -> None:
    # Remission weeks of the 6-MP group (Freireich et al. 1963), + censored: 6 6 6 6+ 7 9+ 10 10+ 11+ 13 16 17+ 19+ 20+
    # 22 23 25+ 32+ 32+ 34+ 35+. Published S: 6 .857, 7 .807, 10 .753, 13 .690, 16 .627, 22 .538, 23 .448; median 23.
    ended = [6, 6, 6, 7, 10, 13, 16, 22, 23]
    still = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]
    times = np.unique(ended + still)
    events = np.array([ended.count(t) for t in times])
    censored = np.array([still.count(t) for t in times])
    published = {6: 0.857, 7: 0.807, 10: 0.753, 13: 0.690, 16: 0.627, 22: 0.538, 23: 0.448}
    for time, survival in published.items():
        [(found, reached)] = kaplan_meier(times, events, censored, [1 - survival - 0.001])
        assert reached
        assert found == time
    assert kaplan_meier(times, events, censored, [0.5]) == [(23, True)]
    assert kaplan_meier(times, events, censored, [0.95]) == [(35, False)]


@given(samples, st.lists(st.integers(0, 10**12), max_size=50))
def test_open_work_never_lowers_a_quantile(values: list[int], ages: list[int]) -> None:
    done, open_ages = np.array(values, np.int64), np.array(ages, np.int64)
    without, with_open = tail_of(done), tail_of(done, open_ages)
    assert with_open.open_n == len(ages)
    assert with_open.n == len(values) + len(ages)
    for name in ("p50_ns", "p95_ns"):
        assert getattr(with_open, name) >= getattr(without, name) or name[:-3] in with_open.at_least


def test_an_overload_is_a_lower_bound() -> None:
    tail = tail_of(np.full(90, 5, np.int64), np.full(10, 22, np.int64))
    assert tail.p50_ns == 5
    assert (tail.p95_ns, tail.max_ns) == (22, 22)
    assert tail.at_least == {"p95", "p99", "max"}
    assert tail.mean_ns == 5.0


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=100), st.lists(st.integers(1, 10**12), max_size=30))
def test_histogram_tail_is_within_the_bound_of_the_exact_one(values: list[int], ages: list[int]) -> None:
    done, open_ages = np.array(values, np.int64), np.array(ages, np.int64)
    counts = np.bincount(bucket_of(done), minlength=BUCKETS)
    rough = tail_of_counts(counts, float(done.sum()), int(done.max()), open_ages)
    # The order of values within one bucket is lost, so compare with the exact tail of the bucketed ones.
    exact = tail_of(done, open_ages)
    assert (rough.n, rough.open_n, rough.max_ns) == (exact.n, exact.open_n, exact.max_ns)
    assert not rough.exact
    assert math.isclose(rough.mean_ns or 0, exact.mean_ns or 0, rel_tol=1e-9)
    if not ages:
        assert abs((rough.p95_ns or 0) - (exact.p95_ns or 0)) <= 0.011 * (exact.p95_ns or 0) + 0.5


def test_a_lower_bound_never_lies_below_a_smaller_quantile() -> None:
    # Ended and open fall into one bucket, the ended one is the larger of the two.
    counts = np.bincount(bucket_of(np.array([1_000_001_572_007_701_931] * 60)), minlength=BUCKETS)
    tail = tail_of_counts(counts, 6e19, 1_000_001_572_007_701_931, np.array([999_999_999_999_999_301] * 40))
    assert "p95" in tail.at_least
    known = [tail.p50_ns, tail.p95_ns, tail.max_ns]
    assert known == sorted(known)
