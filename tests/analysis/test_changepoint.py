"""Change points: the energy statistic by definition, dates, marks, and the calibrated flag."""

from __future__ import annotations

import numpy as np
import pytest

from fusetui.analysis.changepoint.baseline import left_baseline
from fusetui.analysis.changepoint.changes import changes_of, first_seen
from fusetui.analysis.changepoint.e_divisive import MIN_PART, _best_cut, change_points
from fusetui.analysis.changepoint.page_hinkley import PageHinkley, flags, online_flags
from fusetui.analysis.changepoint.series import log_p95, tail_share
from fusetui.analysis.snapshot import Mark


def energy(x: np.ndarray, y: np.ndarray) -> float:
    m, k = x.size, y.size
    between = np.abs(x[:, None] - y[None, :]).mean()
    inside = np.abs(x[:, None] - x[None, :]).sum() / (m * (m - 1))
    outside = np.abs(y[:, None] - y[None, :]).sum() / (k * (k - 1))
    return float(m * k / (m + k) * (2 * between - inside - outside))


def test_the_best_cut_is_that_of_the_definition() -> None:
    values = np.random.default_rng(1).normal(0, 1, 24)
    every = {cut: energy(values[:cut], values[cut:]) for cut in range(MIN_PART, values.size - MIN_PART + 1)}
    cut, q = _best_cut(np.abs(values[:, None] - values[None, :])[None])
    assert int(cut[0]) == max(every, key=every.__getitem__)
    assert float(q[0]) == pytest.approx(max(every.values()))


def test_two_changes_are_dated() -> None:
    rng = np.random.default_rng(4)
    values = np.concatenate([rng.normal(level, 0.3, 40) for level in (0, 2, 1)])
    found = change_points(values, seed=1)
    assert [at for at, _ in found] == pytest.approx([40, 80], abs=2)
    assert found == change_points(values, seed=1)


def test_quiet_series_stay_quiet() -> None:
    rng = np.random.default_rng(6)
    assert sum(len(change_points(rng.normal(0, 1, 60), permutations=99)) for _ in range(30)) <= 2
    assert change_points(np.zeros(50)) == []
    assert change_points(np.arange(9.0)) == []
    with pytest.raises(ValueError, match="at most"):
        change_points(np.zeros(1000))


def test_series_by_hand() -> None:
    items = np.arange(1, 45)
    assert np.exp(log_p95(items, 20)) == pytest.approx([19, 39])
    assert tail_share(items, 20, 15) == pytest.approx([0.25, 1.0])


def test_the_first_bad_moment_and_the_marks_beside_it() -> None:
    rng = np.random.default_rng(9)
    items = rng.lognormal(14, 0.4, 4000).astype(np.int64)
    items[2600:] *= 2
    ends = np.arange(4000) * 1_000_000
    marks = [Mark(2_590_000_000, "deploy v2"), Mark(100_000_000, "start"), Mark(2_620_000_000, "driver 560")]
    (change,), why = changes_of(ends, items, marks)
    assert why == ""
    assert change.at_ns == pytest.approx(2_600_000_000, abs=2 * change.within_ns)
    assert change.ratio == pytest.approx(2.0, rel=0.15)
    assert {mark.name for mark in change.marks} == {"deploy v2", "driver 560"}
    assert change.p <= 0.01


def test_too_few_items_say_so() -> None:
    assert changes_of(np.arange(399), np.arange(399)) == ([], "changes over time need n ≥ 400, have 399")


def test_plans_that_come_later_are_marks() -> None:
    codes, ends = np.array([0, 0, 1, 1, -1]), np.array([5, 6, 7, 8, 9])
    assert first_seen(codes, ends, ["a", "b"], "plan") == [Mark(7, "plan b first seen")]


def test_a_flag_is_raised_once_and_armed_again() -> None:
    rng = np.random.default_rng(3)
    quiet = rng.normal(0, 1, 60)
    detector = PageHinkley(quiet, seed=1)
    steps = [5.0] * 20 + [0.0] * 80 + [-5.0] * 5
    raised = [(at, flag.up) for at, value in enumerate(steps) if (flag := detector.update(value))]
    assert len(raised) == 2
    assert raised[0][0] <= 4
    assert raised[0][1] is True
    assert 100 <= raised[1][0] <= 104
    assert raised[1][1] is False
    assert detector.update(float("nan")) is None


def test_half_more_latency_is_flagged_within_five_windows() -> None:
    rng = np.random.default_rng(12)
    delays = []
    for seed in range(15):
        items = rng.lognormal(14, 0.7, 200 * 100)
        items[200 * 80 :] *= 1.5
        found = [flag.at for flag in online_flags(items, 200, 60, seed=seed) if flag.up and flag.at >= 80]
        delays.append(found[0] - 80 + 1 if found else 99)
    assert max(delays) <= 5


def test_false_alarms_are_few() -> None:
    rng = np.random.default_rng(13)
    alarms = sum(len(flags(rng.normal(0, 1, 260), 60, seed=seed)) for seed in range(20))
    assert alarms / (20 * 200) <= 0.005


def test_leaving_the_baseline_is_dated() -> None:
    rng = np.random.default_rng(21)
    before, items = (rng.lognormal(14, 0.7, 6000).astype(np.int64) for _ in range(2))
    ends = np.arange(6000) * 1000
    assert left_baseline(before, ends, items) == (None, "")
    items[4000:] *= 2
    left, why = left_baseline(before, ends, items)
    assert why == ""
    assert left is not None
    assert left.per == 200
    assert left.began_ns == pytest.approx(4_000_000, abs=400_000)
    assert 4_000_000 <= left.flagged_ns <= 5_000_000
    assert left_baseline(before[:399], ends, items)[1] == "leaving the baseline needs n ≥ 400 before, have 399"


def test_a_reference_has_a_least_size() -> None:
    with pytest.raises(ValueError, match="20 windows"):
        PageHinkley(np.zeros(19))
