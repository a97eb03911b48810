"""Drift of shapes, metastable fallback, and padding proposals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusetui.analysis.arrays import Floats
from fusetui.analysis.mapping_adapt import best_padding
from fusetui.analysis.mapping_drift import drift_in_window, drift_of, envelope_of
from fusetui.analysis.mapping_kinds import Kinds
from fusetui.analysis.mapping_metastable import metastable
from fusetui.analysis.mapping_padding import padding_of

NAN = math.nan


def test_the_index_is_the_sum_over_shapes() -> None:
    found = drift_of(np.array([500, 500]), np.array([900, 100]), ("a", "b"), "first quarter", "requests")
    assert found is not None
    a, e = (900.5 / 1001, 100.5 / 1001), (0.5, 0.5)
    assert found.index == pytest.approx(sum((x - y) * math.log(x / y) for x, y in zip(a, e, strict=True)))
    assert (found.verdict, found.expected_n, found.seen_n) == ("major", 1000, 1000)


@pytest.mark.parametrize(
    ("seen", "verdict"), [([5000, 5000], "stable"), ([6900, 3100], "moderate"), ([8000, 2000], "major")]
)
def test_readings_of_the_index(seen: list[int], verdict: str) -> None:
    found = drift_of(np.array([5000, 5000]), np.array(seen), ("a", "b"), "first quarter", "requests")
    assert found is not None
    assert found.verdict == verdict


def test_samples_of_one_mix_stay_under_chance_19_times_in_20() -> None:
    rng = np.random.default_rng(3)
    mix = np.array([0.4, 0.3, 0.1, 0.1, 0.05, 0.05])
    over = 0
    for _ in range(400):
        found = drift_of(rng.multinomial(300, mix), rng.multinomial(900, mix), tuple("abcdef"), "first quarter", "x")
        assert found is not None
        over += found.index > found.by_chance
        assert found.verdict == "stable" or found.index > found.by_chance
    assert 0.02 < over / 400 < 0.09


def test_few_samples_and_single_shapes_have_no_index() -> None:
    assert drift_of(np.array([50, 49]), np.array([500, 500]), ("a", "b"), "first quarter", "x") is None
    assert drift_of(np.array([500]), np.array([500]), ("a",), "first quarter", "x") is None
    assert drift_in_window(np.zeros((0, 5), np.int64), (), "x", {}) is None


def test_the_window_is_compared_with_its_first_quarter() -> None:
    by_slot = np.zeros((2, 50), np.int64)
    by_slot[0, 10:20] = 100
    by_slot[1, 20:50] = 100
    found = drift_in_window(by_slot, ("old", "new"), "requests", {})
    assert found is not None
    assert (found.against, found.expected_n, found.seen_n, found.verdict) == ("first quarter", 1000, 3000, "major")


def test_the_envelope_of_the_plans_is_what_is_expected() -> None:
    plans = {"p": "buckets; envelope: m=8 bf16 @ 3; m=16 bf16 @ 1", "q": "nothing", "r": "envelope: m=32 @ 4; x @ no"}
    envelope = envelope_of(plans)
    assert envelope == {"m=8 bf16": 0.375, "m=16 bf16": 0.125, "m=32": 0.5}
    by_slot = np.array([[3000, 750], [1000, 250], [0, 5000]])
    found = drift_in_window(by_slot, ("m=8 bf16", "m=16 bf16", "m=32"), "requests", envelope)
    assert found is not None
    assert (found.against, found.verdict, found.seen_n) == ("envelope", "stable", 10_000)
    assert found.index == pytest.approx(0.0, abs=1e-6)
    missing = drift_in_window(by_slot[:1], ("m=8 bf16",), "requests", envelope)
    assert missing is not None
    assert missing.verdict == "major"


def series(fell_at: int, until: int = 60, batch_up: float = 48.0) -> tuple[Floats, Floats, Floats, Floats]:
    """Sixty slots: planned with batches of 20 to 32, then fallback with larger ones; nothing waits."""
    fell = np.zeros(60)
    fell[fell_at:until] = 1.0
    batch = np.where(fell > 0, batch_up, 20.0 + np.arange(60) % 13)
    return fell, batch, np.zeros(60), np.full(60, 100.0)


def test_a_fallback_that_stays_with_larger_batches_while_all_looks_normal() -> None:
    found = metastable(*series(30))
    assert found is not None
    # Three of sixty slots are the last twentieth, which is not looked at.
    assert (found.from_slot, found.slots, found.largest_planned, found.batch_during) == (30, 27, 32, 48.0)
    assert (found.fallback_share, found.rate_before, found.rate_during) == (1.0, 100.0, 100.0)
    assert any("demand may have grown" in line for line in found.does_not_prove)


def test_work_of_another_kind_does_not_hide_it() -> None:
    kinds, slots = Kinds(60), np.arange(60)
    fell, batch, depth, rate = series(30)
    for _ in range(3):
        kinds.add(np.zeros(60, np.int32), batch.astype(np.int64), np.where(fell > 0, 2, 0).astype(np.int8), slots)
        kinds.add(np.ones(60, np.int32), np.full(60, 4), np.zeros(60, np.int8), slots)
    found = kinds.evidence(["steps", "prompts"], slots, depth, rate)
    assert found is not None
    assert (found.of, found.from_slot, found.batch_during) == ("steps", 30, 48.0)
    kinds.clear(slots[:40])
    assert kinds.evidence(["steps", "prompts"], slots, depth, rate) is None


def test_gaps_do_not_hide_it() -> None:
    fell, batch, depth, rate = series(30)
    fell[35:40] = NAN
    depth[50:] = NAN
    assert metastable(fell, batch, depth, rate) is not None


@pytest.mark.parametrize(
    "case", ["recovers", "short", "always", "small batches", "queue", "slower", "never", "no depth"]
)
def test_what_is_no_metastable_fallback(case: str) -> None:
    fell, batch, depth, rate = series(30)
    if case == "recovers":
        fell, batch, depth, rate = series(30, until=50)
    elif case == "short":
        fell, batch, depth, rate = series(55)
    elif case == "always":
        fell, batch, depth, rate = series(0)
    elif case == "small batches":
        fell, batch, depth, rate = series(30, batch_up=24.0)
    elif case == "queue":
        depth[30:] = 9.0
    elif case == "slower":
        rate[30:] = 60.0
    elif case == "never":
        fell[:] = 0.0
    else:
        depth[:] = NAN
    assert metastable(fell, batch, depth, rate) is None


def test_empty_series_show_nothing() -> None:
    assert metastable(*(np.zeros(0),) * 4) is None


def test_the_best_larger_size_beyond_the_margin_is_proposed() -> None:
    times = {100: 10.0, 128: 5.0, 192: 5.0, 200: 4.9, 256: 20.0, 300: math.nan}
    found = [(p.size, p.pad_to) for p in best_padding(times, margin=0.0)]
    assert found == [(100, 200), (128, 200), (192, 200)]
    assert [(p.size, p.pad_to) for p in best_padding(times, margin=0.05)] == [(100, 200)]
    (near,) = best_padding(times, margin=0.05, reach=1.5)
    assert (near.size, near.pad_to, near.gain) == (100, 128, 1.0)


@given(st.dictionaries(st.integers(1, 1000), st.floats(0.1, 100), max_size=30), st.floats(0, 1))
def test_proposals_gain_more_than_the_margin_and_none_is_missed(times: dict[int, float], margin: float) -> None:
    found = {p.size: p for p in best_padding(times, margin)}
    for size, time in times.items():
        larger = [t for m, t in times.items() if m > size]
        gain = time / min(larger) - 1 if larger else 0.0
        assert (size in found) == (bool(larger) and gain > margin)
        if size in found:
            assert found[size].padded_time == min(larger)
            assert found[size].pad_to == min(m for m, t in times.items() if m > size and t == min(larger))


@pytest.mark.parametrize(
    ("ran", "asked", "wanted"),
    [
        ("m=8192 n=64 k=8 bf16", "m=3208 n=64 k=8 bf16", (8192.0, 3208.0)),
        ("b=4 s=128 bf16", "b=3 s=100 bf16", (512.0, 300.0)),
        ("m=64 bf16", "m=64 bf16", (64.0, 64.0)),
        ("768 64x256 256x768 64x768 f32", "768 48x256 256x768 48x768 f32", (768 * 64 / 48, 768.0)),
        ("m=64 bf16", "m=65 bf16", None),
        ("m=64 bf16", "m=32 f32", None),
        ("m=64 n=128 bf16", "m=64 n=64 bf16", None),
        ("8x16 f32", "4x4 f32", None),
        ("8x16 f32", "8x16x1 f32", None),
        ("decode", "decode", None),
        ("", "", None),
    ],
)
def test_padding_of_two_shapes(ran: str, asked: str, wanted: tuple[float, float] | None) -> None:
    assert padding_of(ran, asked) == (None if wanted is None else pytest.approx(wanted))
