"""The online flag: it stays quiet on what is usual, and dates a rise."""

from __future__ import annotations

import numpy as np
import pytest

from fusetui.app.change_watch import LEARN_NS, ChangeWatch

SECOND = 1_000_000_000
RATE = 100


def service(seconds: int, seed: int, rise_at_s: int | None = None, by: float = 1.6) -> tuple[np.ndarray, np.ndarray]:
    """RATE lognormal latencies a second, from `rise_at_s` on longer."""
    chance = np.random.default_rng(seed)
    n = seconds * RATE
    ends = np.arange(n, dtype=np.int64) * (SECOND // RATE)
    items = chance.lognormal(np.log(10e6), 0.5, n)
    if rise_at_s is not None:
        items[rise_at_s * RATE :] *= by
    return ends, items.astype(np.int64)


def fed(ends: np.ndarray, items: np.ndarray, watch: ChangeWatch | None = None) -> ChangeWatch:
    watch = watch or ChangeWatch()
    for at in range(0, len(items), RATE):
        watch.add(ends[at : at + RATE], items[at : at + RATE])
    return watch


def test_it_says_nothing_before_it_knows_what_is_usual() -> None:
    watch = fed(*service(LEARN_NS // SECOND - 2, 1, rise_at_s=10, by=5.0))
    assert watch.learning
    assert watch.now is None


@pytest.mark.parametrize("seed", range(8))
def test_what_is_usual_raises_no_flag(seed: int) -> None:
    watch = fed(*service(240, seed))
    assert watch.now is None
    assert watch.changes == []


@pytest.mark.parametrize("seed", range(6))
def test_a_rise_is_flagged_confirmed_and_dated(seed: int) -> None:
    watch = fed(*service(140, seed, rise_at_s=90))
    assert watch.now is not None
    assert watch.now.confirmed
    assert watch.now.rose
    assert abs(watch.now.at_ns / SECOND - 90) <= 2.0
    assert watch.now.after_ns / watch.now.before_ns == pytest.approx(1.6, rel=0.2)
    assert watch.changes == [watch.now]


def test_a_rise_is_over_when_the_tail_is_as_before() -> None:
    ends, items = service(200, 3, rise_at_s=90)
    items[140 * RATE :] = (items[140 * RATE :] / 1.6).astype(np.int64)
    watch = fed(ends, items)
    assert watch.now is None
    rise, back = watch.changes
    assert rise.rose
    assert not back.rose
    assert abs(back.at_ns / SECOND - 140) <= 4


def test_a_second_rise_is_another_change() -> None:
    ends, items = service(320, 5, rise_at_s=90)
    items[140 * RATE : 240 * RATE] = (items[140 * RATE : 240 * RATE] / 1.6).astype(np.int64)
    watch = fed(ends, items)
    assert [round(change.at_ns / SECOND) for change in watch.changes if change.rose] == pytest.approx([90, 240], abs=2)


def test_a_flood_is_looked_at_in_larger_windows_and_takes_no_more_memory() -> None:
    watch = ChangeWatch()
    chance = np.random.default_rng(0)
    for second in range(30):
        ends = second * SECOND + np.arange(50_000, dtype=np.int64) * 20_000
        watch.add(ends, chance.lognormal(16, 0.5, 50_000).astype(np.int64))
    assert not watch.learning
    assert watch._per >= 5_000
    assert watch._items.size < watch._per
    assert watch.now is None
