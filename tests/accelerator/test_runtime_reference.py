"""The simulator against the reference answers; needs the reference corpus (FUSETUI_CORPUS), which is not shipped.

Points of the queueing reference at a utilisation up to 0.8 that are quick run always; the rest with FUSETUI_LONG=1.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import pytest
from queueing_points import check, load_of, requests_for

from fusetui.accelerator.runtime.config import Batching, Config, Lookup, Placement
from fusetui.accelerator.runtime.counterfactual import Driver, attribute, counterfactuals, nearest_rank
from fusetui.accelerator.runtime.load import Load
from fusetui.accelerator.runtime.outcome import FALLBACK, GATE, MISPLACED, PLANNED, QUEUE, UNFUSED, Outcome
from fusetui.accelerator.runtime.paths import Path, PlanTable
from fusetui.accelerator.runtime.simulate import simulate

CORPUS = os.environ.get("FUSETUI_CORPUS")
LONG = bool(os.environ.get("FUSETUI_LONG"))
pytestmark = pytest.mark.skipif(not CORPUS, reason="FUSETUI_CORPUS is not set")
SERVING = FilePath(CORPUS or ".") / "reference/serving"
TRACES = FilePath(CORPUS or ".") / "traces/serving"

FUSED = Path.affine(4e6, 6e3, output_ns=2e5)
UNFUSED_PATH = FUSED.scaled(1.3)
SETUP = Config(
    (PlanTable("unfused", UNFUSED_PATH, UNFUSED_PATH.scaled(3), best=FUSED),), cores=4,
    batching=Batching("deadline", 8, 25_000_000, merge=False), lookup=Lookup(limit=4096),
    placement=Placement("hashed", weights=(0.30, 0.27, 0.23, 0.20)),
)  # fmt: skip


def balanced(config: Config) -> Config:
    unlimited = config.placement.kind == "unlimited"
    return config if unlimited else replace(config, placement=Placement("least_loaded"))


DRIVERS = (
    Driver("contention", lambda c: replace(c, placement=Placement("unlimited"))),
    Driver("imbalance", balanced),
    Driver("batch_policy", lambda c: replace(c, batching=Batching())),
    Driver("unfused", lambda c: replace(c, tables=(PlanTable("fused", FUSED, FUSED.scaled(3)),))),
    Driver("fallback", lambda c: replace(c, lookup=Lookup())),
)


@pytest.fixture(scope="module")
def reference() -> dict[str, Any]:
    answers: dict[str, Any] = json.loads((SERVING / "reference_attribution.json").read_text())
    return answers


@pytest.fixture(scope="module")
def azure(reference: dict[str, Any]) -> Load:
    lines = (TRACES / "Azure__AzurePublicDataset__AzureLLMInferenceTrace_conv.csv").read_text().split("\n")
    rows = [line.strip().split(",") for line in lines[1 : reference["n"] + 1]]
    at = np.array([row[0].replace(" ", "T") for row in rows], "datetime64[ns]").astype(np.int64)
    return Load.of(at - at[0], [int(r[1]) for r in rows], [int(r[2]) for r in rows]).scaled(reference["speed"])


@pytest.fixture(scope="module")
def runs(azure: Load) -> list[Outcome]:
    return counterfactuals(azure, SETUP, DRIVERS)


def test_all_counterfactuals_of_the_real_trace(reference: dict[str, Any], runs: list[Outcome]) -> None:
    assert [d.name for d in DRIVERS] == reference["names"]
    assert len(reference["counterfactuals"]) == len(runs) == 32
    for key, want in reference["counterfactuals"].items():
        run = runs[sum(1 << i for i, on in enumerate(key) if on == "1")]
        waits = run.parts[:, QUEUE] + run.parts[:, MISPLACED]
        got = {"p50": nearest_rank(run.latency_ns, 0.50), "p95": nearest_rank(run.latency_ns, 0.95),
               "p99": nearest_rank(run.latency_ns, 0.99), "mean": run.latency_ns.mean(),
               "queue_p99": nearest_rank(waits, 0.99)}  # fmt: skip
        for quantity, ns in got.items():
            assert ns / 1e9 == pytest.approx(want[quantity], abs=1e-6, rel=0), (key, quantity)
        assert (run.parts.sum(axis=1) == run.latency_ns).all()


@pytest.mark.parametrize(("q", "scale", "name"), [(0.99, "ns", "shapley_p99_s"), (0.95, "ns", "shapley_p95_s"),
                                                  (0.99, "log", "shapley_p99_log")])  # fmt: skip
def test_shapley_shares_of_the_real_trace(
    reference: dict[str, Any], runs: list[Outcome], q: float, scale: Any, name: str
) -> None:
    result = attribute(reference["names"], [nearest_rank(run.latency_ns, q) for run in runs], scale)
    unit = 1e9 if scale == "ns" else 1.0
    shares = {n: float(share) / unit for n, share in zip(result.drivers, result.shares, strict=True)}
    assert shares == pytest.approx(reference[name], abs=1e-6, rel=0)
    assert sum(result.shares) == result.total
    if name == "shapley_p99_s":
        removed = {n: float(v) / unit for n, v in zip(result.drivers, result.removed_alone, strict=True)}
        assert removed == pytest.approx(reference["one_at_a_time_removal_p99_s"], abs=1e-6, rel=0)
        assert result.interactions[0][:2] == ("contention", "unfused")


def test_where_the_tail_of_the_real_trace_spent_its_time(reference: dict[str, Any], runs: list[Outcome]) -> None:
    run = runs[-1]
    tail = run.latency_ns >= nearest_rank(run.latency_ns, 0.99)
    mean = run.parts[tail].mean(axis=0) / 1e9
    got = {
        "gate wait": mean[GATE], "core queue wait": mean[QUEUE] + mean[MISPLACED], "fused hit service": mean[PLANNED],
        "unfused extra": mean[UNFUSED], "fallback extra": mean[FALLBACK],
    }  # fmt: skip
    assert got == pytest.approx(reference["tail_mean_component_s"], abs=1e-6, rel=0)


def points() -> list[Any]:
    """Those that take long are marked so."""
    if not CORPUS:
        return []
    found = json.loads((SERVING / "reference_queueing.json").read_text())["points"]
    chosen = []
    for kind, listed in found.items():
        for i, point in enumerate(listed):
            quick = kind == "batch_fill_poisson" or (kind in ("mm1", "md1") and load_of(kind, point) == 0.5)
            long = pytest.mark.skipif(not (LONG or quick), reason="FUSETUI_LONG is not set")
            chosen.append(pytest.param(kind, point, 100 + i, marks=long, id=f"{kind}-{i}"))
    return chosen


@pytest.mark.parametrize(("kind", "point", "seed"), points())
def test_queueing_points(kind: str, point: dict[str, Any], seed: int) -> None:
    for c in check(kind, point, requests_for(kind, point), seed):
        assert c.within, f"{c.at} {c.quantity}: {c.got} for {c.want}, {c.error:+.2%} of ±{c.tolerance:.1%}"


def test_a_real_trace_with_even_gaps_is_another_load(azure: Load, reference: dict[str, Any]) -> None:
    even = np.rint(np.linspace(0, azure.arrival_ns[-1], len(azure))).astype(np.int64)
    run = simulate(replace(azure, arrival_ns=even), SETUP)
    want = reference["p99_if_arrivals_respaced_uniformly"]
    assert nearest_rank(run.latency_ns, 0.99) / 1e9 == pytest.approx(want, abs=1e-6, rel=0)
