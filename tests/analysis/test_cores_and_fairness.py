"""Imbalance, steps, fairness, the tail cohort."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from tracerows import batch_of

from fusetui.analysis.cohort import cohort_of
from fusetui.analysis.columns import Reader
from fusetui.analysis.fairness import fairness_of
from fusetui.analysis.imbalance import lambda_by_slot, spread_of, stretch_of_steps
from fusetui.analysis.work import executions, requests

VECTORS: dict[str, list[float]] = {
    "equal 4": [1, 1, 1, 1],
    "one idle of 4": [1, 1, 1, 0],
    "one hot of 4": [1, 1, 1, 2],
    "one hot of 8": [1] * 7 + [2],
    "all on one of 4": [1, 0, 0, 0],
    "all on one of 8": [1] + [0] * 7,
    "linear 1..8": [1, 2, 3, 4, 5, 6, 7, 8],
    "half idle 8": [1] * 4 + [0] * 4,
    "straggler 1.5x of 64": [1] * 63 + [1.5],
    "zeros": [0, 0, 0, 0],
}


@pytest.mark.parametrize("name", VECTORS)
def test_imbalance_equals_the_reference_vectors(name: str) -> None:
    corpus = os.environ.get("FUSETUI_CORPUS")
    if not corpus:
        pytest.skip("FUSETUI_CORPUS is not set")
    expected = json.loads((Path(corpus) / "reference/serving/reference_imbalance.json").read_text())[name]
    lam, jain, why = spread_of(VECTORS[name])
    assert lam == (
        None
        if expected["max_over_mean_minus_1"] is None
        else pytest.approx(expected["max_over_mean_minus_1"], abs=1e-6)
    )
    assert jain == (None if expected["jain"] is None else pytest.approx(expected["jain"], abs=1e-6))
    assert (why == "") == (lam is not None)


def test_imbalance_by_hand() -> None:
    assert spread_of([1, 1, 1, 2]) == (pytest.approx(0.6), pytest.approx(25 / 28), "")
    assert spread_of([1e300, 3e300]) == (pytest.approx(0.5), pytest.approx(0.8), "")
    assert spread_of([0, 0]) == (None, None, "all cores idle")
    assert spread_of([7]) == (None, None, "one core only")
    assert spread_of([np.nan, np.nan]) == (None, None, "no core in the window")


def test_lambda_per_slot_is_undefined_when_all_idle() -> None:
    found = lambda_by_slot(np.array([[1.0, 0.0, 2.0], [1.0, 0.0, 0.0]]))
    assert found[0] == 0.0
    assert np.isnan(found[1])
    assert found[2] == 1.0


def execution(request: int | None, core: int, service: int, **more: object) -> dict[str, object]:
    return {"request": request, "device": 0, "core": core, "start_ns": 0, "end_ns": service, **more}


def test_stretch_is_slowest_less_mean_per_step() -> None:
    rows = [
        *(execution(1, core, service) for core, service in enumerate((10, 10, 10, 30))),  # mean 15
        *(execution(2, core, service, group=5, name=f"part{core}") for core, service in enumerate((8, 4))),  # mean 6
        execution(2, 0, 100, name="alone"),
        execution(None, 0, 1),
        execution(None, 1, 99),
        execution(3, 0, 5),
        execution(3, 0, 5),
        execution(3, 1, 20),  # core 0 worked 10 in two parts, mean 15
    ]
    found = stretch_of_steps(executions(Reader().read(batch_of(rows))), across_hosts=False)
    assert sorted(found.tolist()) == [2, 5, 15]


@pytest.mark.parametrize("far", [1, 1 << 45])
def test_steps_span_hosts_only_when_asked(far: int) -> None:
    rows = [
        {"request": far, "host": "a", "start_ns": 0, "end_ns": 10},
        {"request": far, "host": "b", "start_ns": 0, "end_ns": 30},
        {"request": 0, "host": "b", "start_ns": 0, "end_ns": 30},
    ]
    work = executions(Reader().read(batch_of(rows)))
    assert stretch_of_steps(work, across_hosts=False).tolist() == []
    assert stretch_of_steps(work, across_hosts=True).tolist() == [10]


def test_steps_of_values_too_wide_to_pack() -> None:
    wide = (1 << 62) - 1
    rows = [execution(r, core, 10 * (core + 1), group=g) for r in (-wide, wide) for g in (0, 9) for core in (0, 1)]
    assert stretch_of_steps(executions(Reader().read(batch_of(rows))), across_hosts=False).tolist() == [5] * 4


def test_fairness_of_streams_slowed_alike_is_one() -> None:
    found = fairness_of([("a", 10, 100, 0), ("b", 20, 200, 0), ("idle", 0, 0, 0), ("calm", 100, 100, 0)])
    assert (found.jain, found.backlogged, found.worst_ratio) == (1.0, 2, 0.1)


def test_a_starved_stream_is_the_worst() -> None:
    found = fairness_of([("a", 100, 125, 0), ("b", 20, 100, 3)])
    assert found.jain == pytest.approx((0.8 + 0.2) ** 2 / (2 * (0.64 + 0.04)))
    assert (found.worst_stream, found.worst_ratio) == ("b", 0.2)


def test_fairness_needs_two_backlogged_streams() -> None:
    found = fairness_of([("a", 10, 100, 0), ("b", 100, 100, 0)])
    assert (found.jain, found.backlogged, found.why) == (None, 1, "fewer than two streams are backlogged")
    assert fairness_of([("a", 0, 9, 1), ("b", 0, 9, 1)]).why == "no backlogged stream was served"


def test_cohort_splits_latency_without_rest() -> None:
    rows = [
        {"kind": "request", "enqueue_ns": 0, "start_ns": 10 * i, "end_ns": 10 * i + 100, "request": i}
        for i in range(100)
    ]
    found = cohort_of(requests(Reader().read(batch_of(rows))), "request")
    assert found is not None
    # p95 is the 95th of 100: the waits 940, 950, …, 990; up to the median: 0 … 490.
    assert (found.n, found.queue_ns, found.service_ns) == (6, 965.0, 100.0)
    assert (found.median_queue_ns, found.median_service_ns) == (245.0, 100.0)
    assert cohort_of(requests(Reader().read(batch_of(rows[:19]))), "request") is None
