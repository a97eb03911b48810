"""What runs for a size: hit, padded, made anew, or the generic path, and what each costs above the best."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusetui.accelerator.errors import AcceleratorError
from fusetui.accelerator.runtime.config import Config, Lookup
from fusetui.accelerator.runtime.lookup import find, kernel_parts, map_jobs
from fusetui.accelerator.runtime.outcome import (
    ADAPTED,
    FALLBACK,
    GENERIC,
    HIT,
    LAUNCH,
    PADDED,
    PADDING,
    PLANNED,
    RECOMPILED,
    STALL,
    UNFUSED,
)
from fusetui.accelerator.runtime.paths import Path, PlanTable

PLAN = Path.of([1, 1001], [1000.0, 101_000.0], launch_ns=50.0)  # 900 + 100 a row
TABLE = PlanTable("mlp", PLAN, PLAN.scaled(3.0))


def found(rows: list[int], lookup: Lookup) -> list[tuple[int, int]]:
    bucket, mapping = find(np.array(rows), lookup)
    return list(zip(bucket.tolist(), mapping.tolist(), strict=True))


def test_without_captured_sizes_one_plan_fits_up_to_its_limit() -> None:
    assert found([1, 4096, 4097], Lookup(limit=4096)) == [(1, HIT), (4096, HIT), (4097, GENERIC)]
    assert found([10**6], Lookup()) == [(10**6, HIT)]


def test_a_captured_size_is_hit_padded_to_or_missed() -> None:
    lookup = Lookup((16, 32, 64))
    assert found([16, 17, 32, 33, 7, 65], lookup) == [
        (16, HIT), (32, PADDED), (32, HIT), (64, PADDED), (7, GENERIC), (65, GENERIC),
    ]  # fmt: skip


def test_padding_too_far_is_worse_than_the_generic_path() -> None:
    # 3208 tokens with plans for 2816, 3072 and 8192: 2.55 times the work.
    assert found([3208, 3072, 4096], Lookup((2816, 3072, 8192))) == [(3208, GENERIC), (3072, HIT), (8192, PADDED)]
    assert found([3208], Lookup((2816, 3072, 8192), pad_limit=3)) == [(8192, PADDED)]


def test_the_size_at_the_limit_must_be_captured_itself() -> None:
    # A limit of 700 without a plan for 700: exactly the peak runs generic.
    assert found([512, 700], Lookup((256, 512), limit=700)) == [(512, HIT), (700, GENERIC)]


def test_a_plan_is_made_once_for_each_size_and_the_first_job_waits_for_it() -> None:
    rows = np.array([16, 20, 20, 33, 20])
    none, ones = np.zeros(5, np.int64), np.ones(5)
    config = Config((TABLE,), lookup=Lookup((16,), limit=100, miss="recompile", cost_ns=7000))
    mapped = map_jobs(rows, none, ones, none, config)
    assert mapped.mapping.tolist() == [HIT, RECOMPILED, HIT, RECOMPILED, HIT]
    assert mapped.parts[:, STALL].tolist() == [0, 7000, 0, 7000, 0]
    assert (mapped.parts[:, PLANNED] == 900 + 100 * rows).all()
    again = map_jobs(rows, none, ones, none, config, mapped.seen)
    assert again.parts[:, STALL].sum() == 0


def test_adapted_plans_stay_adapted() -> None:
    rows, none = np.array([20, 20]), np.zeros(2, np.int64)
    config = Config((TABLE,), lookup=Lookup((16,), limit=100, miss="adapt", cost_ns=7000))
    mapped = map_jobs(rows, none, np.ones(2), none, config)
    assert mapped.mapping.tolist() == [ADAPTED, ADAPTED]
    assert mapped.parts[:, STALL].tolist() == [7000, 0]


def test_a_size_of_another_table_is_another_size() -> None:
    rows, none = np.array([20, 20]), np.zeros(2, np.int64)
    config = Config((TABLE, TABLE), lookup=Lookup((16,), limit=100, miss="adapt", cost_ns=7000))
    assert map_jobs(rows, none, np.ones(2), np.array([0, 1]), config).parts[:, STALL].tolist() == [7000, 7000]


def parts_of(table: PlanTable, rows: int, bucket: int, generic: bool, work: float = 1.0) -> dict[int, int]:
    one = np.array([1])
    parts, _ = kernel_parts(table, one * rows, one * bucket, np.array([generic]), one * 0, np.array([work]))
    return {i: int(v) for i, v in enumerate(parts[0]) if v}


def test_padding_costs_the_plan_of_the_bucket() -> None:
    assert parts_of(TABLE, 20, 32, False) == {LAUNCH: 50, PLANNED: 2900, PADDING: 1200}


def test_fallback_costs_the_generic_path_above_the_plan() -> None:
    assert parts_of(TABLE, 20, 20, True) == {LAUNCH: 50, PLANNED: 2900, FALLBACK: 5800}


def test_a_plan_that_is_not_the_best_known_shows_what_it_loses() -> None:
    worse = PlanTable("mlp", PLAN.scaled(1.5), PLAN.scaled(3.0), best=PLAN)
    assert parts_of(worse, 20, 20, False) == {LAUNCH: 50, PLANNED: 2900, UNFUSED: 1450}
    assert parts_of(worse, 20, 20, True) == {LAUNCH: 50, PLANNED: 2900, UNFUSED: 1450, FALLBACK: 4350}


def test_a_generic_path_that_beats_the_plan_costs_nothing_extra() -> None:
    assert parts_of(PlanTable("mlp", PLAN, PLAN.scaled(0.5)), 20, 20, True) == {LAUNCH: 50, PLANNED: 1450}


@given(
    st.integers(0, 5000), st.integers(0, 5000), st.booleans(), st.floats(0, 10), st.floats(0.1, 5), st.floats(0.1, 5)
)
def test_the_parts_are_never_negative_and_sum_to_what_runs(
    rows: int, more: int, generic: bool, work: float, fallback: float, best: float
) -> None:
    table = PlanTable("mlp", PLAN, PLAN.scaled(fallback), best=PLAN.scaled(best))
    parts = parts_of(table, rows, rows + more, generic, work)
    assert min(parts.values(), default=0) >= 0
    size = np.array([rows if generic else rows + more])
    runs = (table.fallback if generic else table.plan).time_ns(size)[0][0] * work
    assert sum(parts.values()) - parts.get(LAUNCH, 0) == round(runs)


def test_times_are_linear_between_known_sizes_go_on_above_and_stay_below() -> None:
    path = Path.of([10, 20, 40], [100.0, 200.0, 300.0])
    kernels, launches = path.time_ns(np.array([5, 10, 15, 30, 60]))
    assert kernels.tolist() == [100.0, 100.0, 150.0, 250.0, 400.0]
    assert launches.tolist() == [0.0] * 5


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Lookup((4, 2)), "not ascending"),
        (lambda: Lookup(pad_limit=0.5), "pad limit"),
        (lambda: Path.of([2, 1], [1, 1]), "not ascending"),
        (lambda: Path.of([1], [-1.0]), "negative"),
        (lambda: Config(()), "no plan table"),
        (lambda: Config((TABLE,), decode=TABLE), "continuous"),
        (lambda: Config((TABLE,), cores=0), "0 cores"),
    ],
)
def test_bad_settings_are_told_in_a_line(make: object, says: str) -> None:
    with pytest.raises(AcceleratorError, match=says):
        make()  # type: ignore[operator]
