"""Shares that add up: Shapley on known games, and a runtime whose drivers are known to work together."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusetui.accelerator.errors import AcceleratorError
from fusetui.accelerator.runtime.arrivals import generator, poisson
from fusetui.accelerator.runtime.config import Config, Lookup, Placement
from fusetui.accelerator.runtime.counterfactual import Driver, attribute, counterfactuals, nearest_rank
from fusetui.accelerator.runtime.load import Load
from fusetui.accelerator.runtime.paths import Path, PlanTable


def test_glove_game() -> None:
    # a has a left glove, b and c a right one each; a pair is worth 6.
    worth = [6 if s & 1 and s & 6 else 0 for s in range(8)]
    result = attribute("abc", worth)
    assert result.shares == (4, 1, 1)
    assert result.removed_alone == (6, 0, 0)
    assert {(x, y): z for x, y, z in result.interactions} == {("a", "b"): 3, ("a", "c"): 3, ("b", "c"): -3}


def test_drivers_that_only_add_have_no_interaction() -> None:
    worth = [sum(v for i, v in enumerate((5, 7, 11)) if s >> i & 1) for s in range(8)]
    result = attribute(["x", "y", "z"], worth)
    assert result.shares == (5, 7, 11)
    assert all(value == 0 for _, _, value in result.interactions)


@given(st.integers(1, 5), st.data())
def test_shares_add_up_exactly(k: int, data: st.DataObject) -> None:
    worth = data.draw(st.lists(st.integers(1, 10**12), min_size=1 << k, max_size=1 << k))
    names = [str(i) for i in range(k)]
    assert sum(attribute(names, worth).shares) == worth[-1] - worth[0]
    ratio = attribute(names, worth, "log")
    assert sum(ratio.shares, Fraction(0)) == ratio.total


def test_a_slow_fallback_and_a_bad_placement_make_each_other_worse() -> None:
    path = Path.affine(1e6)
    load = Load.of(poisson(2300, 6000, 1), np.where(generator(1).random(6000) < 0.03, 9000, 100))
    config = Config(
        (PlanTable("p", path, path.scaled(8)),), cores=4, lookup=Lookup(limit=4096),
        placement=Placement("hashed", weights=(4, 2, 2, 2)),
    )  # fmt: skip
    drivers = [
        Driver("placement", lambda c: replace(c, placement=Placement("least_loaded"))),
        Driver("fallback", lambda c: replace(c, lookup=Lookup())),
    ]
    runs = counterfactuals(load, config, drivers)
    p99 = [nearest_rank(run.latency_ns, 0.99) for run in runs]
    result = attribute([d.name for d in drivers], p99)
    assert p99[0] < min(p99[1:3]) < p99[3]
    assert sum(result.shares) == p99[3] - p99[0]
    assert all(share > 0 for share in result.shares)
    assert result.interactions[0][2] == p99[3] - p99[2] - p99[1] + p99[0] > 0
    assert runs[3].end_ns.tobytes() == counterfactuals(load, config, drivers)[3].end_ns.tobytes()


def test_nearest_rank_is_the_ceiling() -> None:
    values = np.arange(10, 1010, 10)
    assert [nearest_rank(values, q) for q in (0.5, 0.95, 0.99, 1.0)] == [500, 950, 990, 1000]
    assert nearest_rank(np.arange(1, 21), 0.95) == 19


def test_bad_input_is_told_in_a_line() -> None:
    with pytest.raises(AcceleratorError, match="3 values for 2 drivers"):
        attribute("ab", [1, 2, 3])
    with pytest.raises(AcceleratorError, match="no logarithm"):
        attribute("a", [0, 1], "log")
    with pytest.raises(AcceleratorError, match="0 given"):
        counterfactuals(Load.of([0]), Config((PlanTable("p", Path.affine(1), Path.affine(1)),)), [])
    with pytest.raises(AcceleratorError, match="of no request"):
        nearest_rank(np.zeros(0), 0.5)
