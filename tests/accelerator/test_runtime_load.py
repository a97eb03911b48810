"""Arrivals, shapes and loads: seeded, in order, right rates; a log keeps its arrivals and shapes together."""

from __future__ import annotations

import numpy as np
import pytest

from fusetui.accelerator.errors import AcceleratorError
from fusetui.accelerator.runtime.arrivals import Mix, bursty, poisson, shapes, varying
from fusetui.accelerator.runtime.load import Load, Stream


def test_the_same_seed_gives_the_same_bytes_and_another_gives_others() -> None:
    assert poisson(1000, 500, 7).tobytes() == poisson(1000, 500, 7).tobytes()
    assert poisson(1000, 500, 7).tobytes() != poisson(1000, 500, 8).tobytes()
    assert bursty(10, 100, 1, 1, 500, 7).tobytes() == bursty(10, 100, 1, 1, 500, 7).tobytes()


def test_poisson_gaps_have_the_mean_and_the_spread_of_the_rate() -> None:
    gaps = np.diff(poisson(1000, 100_000, 1)) / 1e6
    assert gaps.mean() == pytest.approx(1.0, rel=0.02)
    assert gaps.std() == pytest.approx(1.0, rel=0.03)


def test_a_rate_over_time_gives_that_many_arrivals_in_each_piece() -> None:
    arrival = varying([0, 10, 20], [1000, 0, 4000], 50_000, 3) / 1e9
    assert ((arrival >= 0) & (arrival < 10)).sum() == pytest.approx(10_000, rel=0.04)
    assert not ((arrival > 10) & (arrival < 20)).any()
    assert (arrival[-1] - 20) == pytest.approx(40_000 / 4000, rel=0.04)


def test_bursts_come_in_bursts() -> None:
    arrival = bursty(100, 2000, 4, 1, 100_000, 5)
    counts = np.bincount(arrival // 100_000_000)
    # A Poisson process has as much variance as mean in every window; this one far more.
    assert counts.var() > 20 * counts.mean()
    assert len(arrival) / arrival[-1] * 1e9 == pytest.approx((100 * 4 + 2000) / 5, rel=0.25)


def test_shapes_drift_from_one_mix_to_the_next() -> None:
    arrival = np.arange(20_000) * 1_000_000
    mixes = [Mix((64, 128), (3, 1), (5, 6)), Mix((512,), (1,), from_s=10.0)]
    tokens, output = shapes(arrival, mixes, 1)
    early = tokens[:10_000]
    assert set(early.tolist()) == {64, 128}
    assert (early == 64).mean() == pytest.approx(0.75, abs=0.02)
    assert (output[:10_000] == np.where(early == 64, 5, 6)).all()
    assert (tokens[10_000:] == 512).all()
    assert (output[10_000:] == 0).all()


def test_a_scaled_log_is_faster_and_otherwise_the_same() -> None:
    log = Load.of([0, 1000, 5000], [10, 20, 30], [1, 2, 3])
    fast = log.scaled(2)
    assert fast.arrival_ns.tolist() == [0, 500, 2500]
    assert fast.tokens.tolist() == [10, 20, 30]


def test_merged_loads_are_in_order_and_share_streams_of_the_same_name() -> None:
    a = Load.of([0, 10], [1, 2], streams=[Stream("a")])
    b = Load.of([5, 10], [3, 4], stream=[0, 1], streams=[Stream("b", 1), Stream("a")])
    both = a.merged(b)
    assert both.arrival_ns.tolist() == [0, 5, 10, 10]
    assert both.tokens.tolist() == [1, 3, 2, 4]
    assert [both.streams[i].name for i in both.stream] == ["a", "b", "a", "a"]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Load.of([5, 3]), "not in order"),
        (lambda: Load.of([-1, 3]), "not in order"),
        (lambda: Load.of([0, 1], tokens=[1]), "1 of tokens for 2 arrivals"),
        (lambda: Load.of([0], work=float("nan")), "not a number"),
        (lambda: Load.of([0], stream=1), "not one of the 1 named"),
        (lambda: Load.of([0]).scaled(0), "above 0"),
        (lambda: poisson(0, 10, 1), "last is 0"),
        (lambda: varying([1], [1], 10, 1), "do not start at 0"),
        (lambda: shapes(np.zeros(1, np.int64), [Mix((1,), (1, 2))], 1), "one share"),
        (lambda: shapes(np.zeros(1, np.int64), [], 1), "one mix from 0 s"),
    ],
)
def test_bad_loads_are_told_in_a_line(make: object, says: str) -> None:
    with pytest.raises(AcceleratorError, match=says):
        make()  # type: ignore[operator]
