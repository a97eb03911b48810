"""Brackets from buckets hold the nearest-rank quantile, whatever was observed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusetui.sources.prometheus_hist import Bracket, mean_bounds, mean_fits, quantile_bracket

BOUNDS = np.array([0.5, 1.0, 2.0, np.inf])


@pytest.mark.parametrize(
    ("counts", "q", "bracket"),
    [
        ([6, 5, 3, 5], 0.5, Bracket(0.5, 1.0)),
        ([1, 1, 1, 1], 0.25, Bracket(0.0, 0.5)),
        ([1, 1, 1, 1], 0.26, Bracket(0.5, 1.0)),
        ([0, 0, 99, 1], 0.99, Bracket(1.0, 2.0)),
        ([0, 0, 98, 2], 0.99, Bracket(2.0, math.inf)),
        ([0, 0, 0, 0], 0.5, None),
        ([1, 0, 0, 0], 0.0, Bracket(0.0, 0.5)),
        ([1, 0, 0, 0], 1.0, Bracket(0.0, 0.5)),
    ],
)
def test_the_bucket_of_a_quantile(counts: list[int], q: float, bracket: Bracket | None) -> None:
    assert quantile_bracket(BOUNDS, np.array(counts, float), q) == bracket


def test_a_first_bucket_up_to_zero_holds_zeros() -> None:
    assert quantile_bracket(np.array([0.0, 1.0, np.inf]), np.array([3.0, 1.0, 0.0]), 0.5) == Bracket(0.0, 0.0)


@given(st.lists(st.floats(0.0, 10.0), min_size=1, max_size=200), st.sampled_from((0.5, 0.95, 0.99, 0.999)))
def test_the_true_quantile_is_inside(seen: list[float], q: float) -> None:
    values = np.sort(seen)
    slot = np.searchsorted(BOUNDS, values, side="left")
    counts = np.bincount(slot, minlength=len(BOUNDS)).astype(float)
    truth = values[math.ceil(q * len(values) - 1e-9) - 1]
    bracket = quantile_bracket(BOUNDS, counts, q)
    assert bracket is not None
    assert bracket.lo <= truth <= bracket.hi
    within = mean_bounds(BOUNDS, counts)
    assert within is not None
    assert mean_fits(float(values.mean()), within)


def test_a_mean_that_its_buckets_cannot_have() -> None:
    within = mean_bounds(BOUNDS, np.array([3.0, 0.0, 0.0, 0.0]))
    assert within == Bracket(0.0, 0.5)
    assert not mean_fits(442.655, within)
    assert mean_fits(0.5, within)
    assert mean_bounds(BOUNDS, np.zeros(4)) is None
