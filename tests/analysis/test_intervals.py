"""Intervals of quantiles: weights by value, what is refused, and that they hold what they promise."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusetui.analysis.intervals import (
    dependence,
    mean_ratio,
    mean_ratio_of,
    needed_n,
    quantile_interval,
    quantile_ratio,
    share_interval,
    share_ratio,
    shift_function,
    too_small,
)
from fusetui.analysis.intervals.beta import beta_cells
from fusetui.analysis.intervals.harrell_davis import harrell_davis, log_error
from fusetui.analysis.intervals.ordered import resampled
from fusetui.analysis.intervals.student import t_reach


@pytest.mark.parametrize(("a", "b"), [(1, 1), (2, 3), (5, 1), (9, 2), (19, 6)])
def test_beta_cells_are_the_binomial_tail(a: int, b: int) -> None:
    """I_x(a, b) of whole a, b is the probability of a or more of a + b - 1 at x."""
    n, trials = 8, a + b - 1

    def incomplete(x: float) -> float:
        return sum(math.comb(trials, k) * x**k * (1 - x) ** (trials - k) for k in range(a, trials + 1))

    first, weights = beta_cells(n, a, b)
    full = np.zeros(n)
    full[first : first + weights.size] = weights
    wanted = np.diff([incomplete(i / n) for i in range(n + 1)])
    assert full == pytest.approx(wanted, abs=1e-9)


def test_harrell_davis_by_hand() -> None:
    """The median of three: weights 7/27, 13/27, 7/27 of Beta(2, 2)."""
    assert harrell_davis(np.array([0.0, 9.0, 27.0]), 0.5) == pytest.approx((9 * 13 + 27 * 7) / 27)


def test_log_error_of_uniform_order_statistics() -> None:
    """x_(m) of n uniforms is Beta(m, n - m + 1): its log has a known variance, trigamma(m) - trigamma(n + 1)."""
    n, q = 4000, 0.9
    ordered = (np.arange(n) + 0.5) / n * 1e9
    wanted = math.sqrt(1 / (n * q) - 1 / (n + 1))
    assert log_error(ordered, q) == pytest.approx(wanted, rel=0.01)


def test_ranks_of_resamples() -> None:
    """The median of resamples drawn one by one has the distribution of those drawn by rank."""
    rng = np.random.default_rng(5)
    values = np.sort(rng.lognormal(0, 1, 60))
    by_rank = resampled(values, 0.5, np.random.default_rng(1), resamples=40_000)
    one_by_one = np.sort(rng.choice(values, (40_000, 60)), axis=1)[:, 29]
    for level in (0.025, 0.25, 0.5, 0.75, 0.975):
        assert (
            abs(
                (by_rank <= np.quantile(one_by_one, level)).mean()
                - (one_by_one <= np.quantile(one_by_one, level)).mean()
            )
            < 0.01
        )


@pytest.mark.parametrize(("q", "n", "told"), [(0.99, 299, "p99 needs n ≥ 300"), (0.99, 300, ""), (0.95, 59, "n ≥ 60"),
                                              (0.1, 29, "p10 needs n ≥ 30"), (0.999, 3000, "")])  # fmt: skip
def test_three_samples_beyond(q: float, n: int, told: str) -> None:
    assert told in too_small(q, n, 10_000)
    assert bool(too_small(q, n, 10_000)) == bool(told)
    rng = np.random.default_rng(1)
    values = rng.permutation(n) + 1
    ratio = quantile_ratio(values, rng.permutation(10_000) + 1, q)
    assert (ratio.low is None) == bool(told)
    assert (quantile_interval(values, q) is None) == bool(told)


@pytest.mark.parametrize("method", ["hd", "bootstrap"])
@pytest.mark.parametrize("q", [0.5, 0.95, 0.99])
def test_intervals_cover_no_change(method: str, q: float) -> None:
    rng = np.random.default_rng(11)
    hits = 0
    for seed in range(200):
        before, after = (rng.lognormal(14, 1, 400).astype(np.int64) for _ in range(2))
        ratio = quantile_ratio(before, after, q, method=method, seed=seed)
        assert ratio.low is not None
        assert ratio.high is not None
        hits += ratio.low <= 1 <= ratio.high
    assert 0.9 <= hits / 200 <= 1.0


def test_a_doubling_is_seen_and_seeded() -> None:
    rng = np.random.default_rng(3)
    before = rng.lognormal(14, 0.5, 2000).astype(np.int64)
    after = 2 * rng.permutation(before)
    for method in ("hd", "bootstrap"):
        ratio = quantile_ratio(before, after, 0.95, method=method, seed=4)
        assert ratio.ratio == pytest.approx(2.0, rel=0.01)
        assert ratio.moved == 1
        assert ratio == quantile_ratio(before, after, 0.95, method=method, seed=4)
        assert quantile_ratio(after, before, 0.95, method=method).moved == -1


def test_zeros_have_a_difference_but_no_ratio() -> None:
    ratio = quantile_ratio(np.zeros(500, np.int64), np.full(500, 1000), 0.5)
    assert (ratio.ratio, ratio.low) == (None, None)
    assert (ratio.shift_low, ratio.shift_high, ratio.moved) == (1000.0, 1000.0, 1)


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=80), st.lists(st.integers(0, 10**12), max_size=80),
       st.sampled_from([0.1, 0.5, 0.9]), st.sampled_from(["hd", "bootstrap"]))  # fmt: skip
def test_any_durations(before: list[int], after: list[int], q: float, method: str) -> None:
    ratio = quantile_ratio(np.array(before, np.int64), np.array(after, np.int64), q, method=method)  # type: ignore[arg-type]
    assert (ratio.shift_low is None) == bool(ratio.why)
    for value in (ratio.low, ratio.high, ratio.shift_low, ratio.shift_high):
        assert value is None or math.isfinite(value)
    if ratio.low is not None and ratio.high is not None:
        assert 0 <= ratio.low <= ratio.high


def test_needed_n_scales_with_the_square() -> None:
    assert needed_n(100, 1 / 1.21, 1.21, 0.1) == 400
    assert needed_n(100, 1 / 1.1, 1.1, 0.21) == 25
    assert needed_n(100, 0.0, 2.0, 0.1) is None


def test_neighbours_alike_are_worth_less() -> None:
    rng = np.random.default_rng(8)
    alone = [dependence(rng.exponential(1, 4000), 0.9) for _ in range(30)]
    assert np.mean(alone) < 1.3
    repeated = [dependence(np.repeat(rng.exponential(1, 400), 10), 0.9) for _ in range(30)]
    assert np.mean(repeated) == pytest.approx(10, rel=0.25)


def test_few_runs_of_large_values_are_refused() -> None:
    rng = np.random.default_rng(8)
    before, after = (np.repeat(rng.exponential(1e6, 150), 20) for _ in range(2))
    ratio = quantile_ratio(before, after, 0.99)
    assert ratio.low is None
    assert ratio.why.startswith("neighbours are alike: 3,000 are worth about ")
    assert quantile_ratio(before, after, 0.99, independent=True).low is not None
    assert quantile_ratio(before, after, 0.5).low is not None


def test_shift_function_of_a_tail_that_grew() -> None:
    rng = np.random.default_rng(2)
    before = rng.lognormal(14, 0.3, 4000)
    after = rng.permutation(before)
    after[rng.random(4000) < 0.08] *= 5
    found = {q: ratio.ratio for q, ratio in shift_function(before, after)}
    for q in (0.1, 0.3, 0.5):
        # The smallest 92 % are as before: their quantile q is that of q / 0.92.
        assert found[q] == pytest.approx(np.quantile(before, q / 0.92) / np.quantile(before, q), rel=0.03)
    assert found[0.95] == pytest.approx(5 * np.quantile(before, 0.3) / np.quantile(before, 0.95), rel=0.2)


def test_means_by_hand() -> None:
    """1..5 before, 2..6 after: means 3 and 4, both with variance 2.5: 1 ± t(8) · sqrt(2 · 2.5 / 5)."""
    ratio = mean_ratio((5, 5), (15, 20), (55, 90))
    assert (ratio.before, ratio.after, ratio.ratio) == (3, 4, pytest.approx(4 / 3))
    assert (ratio.shift_low, ratio.shift_high) == pytest.approx((1 - 2.306004, 1 + 2.306004), abs=1e-5)
    assert mean_ratio((4, 5), (15, 20), (55, 90)).low is None


def test_shares_by_hand() -> None:
    """Wilson's interval of 10 of 100 is 5.5 % to 17.4 %; Newcombe's example 56/70 less 48/80 is 5.2 % to 33.4 %."""
    assert share_interval(10, 100) == pytest.approx((0.0552, 0.1744), abs=1e-4)
    assert share_interval(0, 50)[0] == 0.0
    ratio = share_ratio((48, 56), (80, 70))
    assert (ratio.shift_low, ratio.shift_high) == pytest.approx((0.0524, 0.3339), abs=1e-4)


def test_a_mean_that_few_values_make_up_has_no_interval() -> None:
    few, many = np.ones(1000), np.ones(1000)
    few[:3], many[:30] = 1e6, 1e6
    found = mean_ratio_of(few, few)
    assert (found.why, found.low, found.before) == (
        "a few of the largest values make up the mean", None, pytest.approx(3000.997)
    )  # fmt: skip
    assert mean_ratio_of(many, many).why == ""


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 19, 100, 10_000_000])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_students_t_holds_its_level(level: float, freedom: int) -> None:
    """The density, integrated by the trapezium rule in the angle: t = sqrt(n) tan(a) makes it cos(a)^(n-1)."""
    reach = t_reach(level, freedom)
    if freedom > 1000:
        assert reach == pytest.approx(NormalDist().inv_cdf((1 + level) / 2))
        return
    angles = np.linspace(-np.pi / 2, np.pi / 2, 200_001)
    density = np.cos(angles) ** (freedom - 1)
    inside = density[np.abs(np.tan(angles)) * np.sqrt(freedom) <= reach].sum() / density.sum()
    assert inside == pytest.approx(level, abs=1e-4)
