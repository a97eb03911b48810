"""Work that comes faster than it ends: found with its rates, and not where a window only fills up."""

from __future__ import annotations

import numpy as np
import pytest

from fusetui.analysis.attribution.backlog import Backlog, backlog_of

S = 1_000_000_000


def _served(came: np.ndarray, each_ns: int, servers: int) -> np.ndarray:
    """Ends, first come first served by equal servers of one service time."""
    end = np.zeros(len(came), np.int64)
    for i, at in enumerate(came.tolist()):
        end[i] = max(at, int(end[i - servers]) if i >= servers else 0) + each_ns
    return end


def _overload() -> Backlog:
    """1/s for 100 s, then 10/s for 20 s, by a server that does 4/s; calm after."""
    came = np.concatenate([np.arange(100), 100 + np.arange(200) / 10, 180 + np.arange(50)]) * S
    found = backlog_of(came.astype(np.int64), _served(came.astype(np.int64), S // 4, 1))
    assert found is not None
    return found


def test_rates_times_and_size_of_a_build_up() -> None:
    found = _overload()
    # 6/s are left over for 20 s: 120, the quarter of which is reached after 5 s.
    assert found.peak == pytest.approx(120, abs=2)
    assert found.from_ns / S == pytest.approx(105, abs=0.5)
    assert found.peak_ns / S == pytest.approx(119.9, abs=0.1)
    assert found.came_per_s == pytest.approx(10, rel=0.02)
    assert found.ended_per_s == pytest.approx(4, rel=0.05)
    assert found.drained_ns is not None
    assert found.drained_ns / S == pytest.approx(120 + 0.9 * 120 / 4, abs=1)  # 4/s until 12 are left
    assert found.calm_ns == S // 4
    assert found.late_ns > 20 * S


def test_an_overload_that_is_on_from_the_beginning() -> None:
    came = np.arange(400, dtype=np.int64) * S // 10
    found = backlog_of(came, _served(came, S // 2, 2))
    assert found is not None
    assert found.peak == pytest.approx(400 * 0.6, rel=0.02)
    assert found.late_ns > 3 * found.calm_ns


@pytest.mark.parametrize("seed", range(10))
def test_a_window_that_fills_up_is_no_overload(seed: int) -> None:
    """Ten seconds each at 20/s: 200 in progress as a matter of course."""
    rng = np.random.default_rng(seed)
    came = np.cumsum(rng.exponential(S / 20, 2000)).astype(np.int64)
    assert backlog_of(came, came + rng.gamma(4.0, 2.5 * S, 2000).astype(np.int64)) is None


@pytest.mark.parametrize("seed", range(10))
def test_chance_in_a_busy_queue_is_no_overload(seed: int) -> None:
    rng = np.random.default_rng(seed)
    came = np.cumsum(rng.exponential(S / 3.2, 4000)).astype(np.int64)
    assert backlog_of(came, _served(came, S // 4, 1)) is None


def test_few_items_tell_nothing() -> None:
    came = np.arange(30, dtype=np.int64)
    assert backlog_of(came, came + 1000 * S) is None
