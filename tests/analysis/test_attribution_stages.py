"""The stage that left its budget first: none in noise, the right one with the right time after a change."""

from __future__ import annotations

import numpy as np
import pytest

from fusetui.analysis.attribution.parts import FALLBACK, IMBALANCE, PARTS, PLANNED, QUEUE, REST, STAGES
from fusetui.analysis.attribution.stages import MIN_SLICES, PER_SLICE, stage_budgets

N = 4000
S = 1_000_000_000


def noisy(seed: int) -> np.ndarray:
    """[N, PARTS]: 2 ms of queue and 5 ms of planned service on average, a request each 10 ms."""
    rng = np.random.default_rng(seed)
    parts = np.zeros((N, len(PARTS)), np.int64)
    parts[:, QUEUE] = rng.exponential(2e6, N)
    parts[:, PLANNED] = rng.gamma(4.0, 1.25e6, N)
    return parts


def found(parts: np.ndarray, slo_ns: int | None = None) -> tuple[str | None, float | None, str]:
    end = np.arange(len(parts)) * 10_000_000
    stages, first, of = stage_budgets(parts, parts.sum(axis=1), end, slo_ns)
    if first is None:
        return None, None, of
    left = stages[first].left_ns
    assert left is not None
    return STAGES[first], left / S, of


@pytest.mark.parametrize("seed", range(12))
def test_noise_leaves_no_budget(seed: int) -> None:
    assert found(noisy(seed)) == (None, None, "calm")


@pytest.mark.parametrize(
    ("part", "stage"), [(FALLBACK, "compile plan"), (QUEUE, "runtime queue"), (IMBALANCE, "core placement"),
                        (REST, "completion")]
)  # fmt: skip
def test_a_stage_that_grows_is_told_with_its_time(part: int, stage: str) -> None:
    parts = noisy(1)
    parts[2000:, part] += 40_000_000
    name, at, _ = found(parts)
    assert name == stage
    assert at == pytest.approx(20.0, abs=0.7)


def test_the_first_of_two_is_named_and_of_two_at_once_the_one_furthest_over() -> None:
    parts = noisy(2)
    parts[1500:, IMBALANCE] += 30_000_000
    parts[2000:, QUEUE] += 300_000_000
    assert found(parts)[0] == "core placement"
    parts[1500:2000, QUEUE] += 300_000_000
    assert found(parts)[0] == "runtime queue"


def test_one_slice_out_of_order_is_no_change() -> None:
    parts = noisy(3)
    parts[2000:2060, QUEUE] += 100_000_000
    assert found(parts)[0] is None


def test_a_bad_state_that_lasts_most_of_the_window_is_no_calm() -> None:
    parts = noisy(4)
    parts[1200:, FALLBACK] += 30_000_000
    name, at, _ = found(parts)
    assert name == "compile plan"
    assert at == pytest.approx(12.0, abs=0.7)


def test_an_objective_is_the_budget() -> None:
    parts = noisy(5)
    assert found(parts, 100_000_000) == (None, None, "slo")
    name, at, of = found(parts, 5_000_000)
    assert (name, of) == ("completion", "slo")
    assert at == pytest.approx(0.0, abs=0.7)
    stages, _, _ = stage_budgets(parts, parts.sum(axis=1), np.arange(N), 100_000_000)
    assert stages[0].budget_ns == 10_000_000
    assert stages[1].budget_ns + stages[3].budget_ns == pytest.approx(100_000_000)


def test_within_the_objective_no_stage_is_over_its_share() -> None:
    parts = noisy(5)
    parts[1000:, QUEUE] += 40_000_000
    name, at, of = found(parts, 100_000_000)  # within: it is told against the calm part
    assert (name, of) == ("runtime queue", "calm")
    assert at == pytest.approx(10.0, abs=0.7)
    parts[2000:, IMBALANCE] += 200_000_000
    name, at, of = found(parts, 100_000_000)
    assert (name, of) == ("core placement", "slo")
    assert at == pytest.approx(20.0, abs=0.7)


def test_the_moment_is_when_the_first_that_took_more_ended() -> None:
    parts = noisy(7)
    parts[2033:, QUEUE] += 400_000_000  # in the middle of a slice
    _, at, _ = found(parts)
    assert at is not None
    assert 20.33 <= at < 21.0


def test_a_short_window_tells_nothing() -> None:
    short = noisy(6)[: MIN_SLICES * PER_SLICE - 1]
    assert stage_budgets(short, short.sum(axis=1), np.arange(len(short)), None) == ((), None, "calm")
