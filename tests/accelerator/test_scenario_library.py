"""Each shipped scenario shows what it says, by the engine's own numbers; nothing is hard-coded to make it so."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from fusetui.accelerator.runtime.outcome import GENERIC, LAUNCH, MAPPING_WORDS, PADDING, Outcome
from fusetui.accelerator.scenario.build import Run
from fusetui.accelerator.scenario.parse import load_scenario
from fusetui.accelerator.scenario.spec import Scenario
from fusetui.commands.simulate_table import figures

S = 1_000_000_000


@cache
def ran(scenario: Scenario) -> Outcome:
    return next(Run(scenario).rounds()).outcome


def outcome(name: str) -> Outcome:
    return ran(load_scenario(name))


def quantile(found: Outcome, q: float, from_s: float = 0, to_s: float = 1e9, stream: int | None = None) -> float:
    """Latency in ms of the requests that came then."""
    at = found.load.arrival_ns / S
    chosen = (at >= from_s) & (at < to_s)
    if stream is not None:
        chosen &= found.load.stream == stream
    return float(np.quantile(found.latency_ns[chosen], q)) / 1e6


def busy(found: Outcome, from_s: float, to_s: float) -> np.ndarray:
    jobs = found.jobs
    inside = (jobs.start_ns >= from_s * S) & (jobs.end_ns < to_s * S)
    return np.bincount(jobs.core[inside], (jobs.end_ns - jobs.start_ns)[inside], found.config.cores)


def mapped(found: Outcome, word: str, from_s: float, to_s: float) -> float:
    """Share of the jobs that began then."""
    begun = (found.jobs.start_ns >= from_s * S) & (found.jobs.start_ns < to_s * S)
    return float((np.array(MAPPING_WORDS)[found.jobs.mapping[begun]] == word).mean())


def test_steady_is_healthy() -> None:
    found = outcome("steady")
    assert mapped(found, "planned", 0, 60) == 1.0
    work = busy(found, 0, 60)
    assert 0.4 < work.mean() / (60 * S) < 0.7
    assert work.max() / work.mean() - 1 < 0.05
    assert quantile(found, 0.99) < 5 * quantile(found, 0.5)


def test_the_same_mean_rate_in_bursts_has_a_far_worse_tail() -> None:
    calm, bursts = outcome("steady"), outcome("burst")
    assert len(bursts.load) == pytest.approx(len(calm.load), rel=0.1)
    assert quantile(bursts, 0.99) > 5 * quantile(calm, 0.99)


def test_one_slow_core_makes_the_tail_and_leaves_the_median() -> None:
    found = outcome("straggler")
    before, during = busy(found, 5, 20), busy(found, 22, 40)
    assert before.max() / before.mean() - 1 < 0.1
    assert during.argmax() == 6
    assert during.max() / during.mean() - 1 > 0.5
    assert quantile(found, 0.99, 22, 40) > 1.5 * quantile(found, 0.99, 0, 20)
    assert quantile(found, 0.5, 22, 40) < 1.2 * quantile(found, 0.5, 0, 20)
    assert quantile(found, 0.99, 45, 60) < 1.2 * quantile(found, 0.99, 0, 20), "it recovers"


def test_drifting_shapes_leave_the_plans() -> None:
    found = outcome("shape-drift")
    assert mapped(found, "planned", 0, 19) == 1.0
    assert mapped(found, "adapted", 21, 39) == 1.0
    assert 0.2 < mapped(found, "fallback", 42, 60) < 0.4
    assert quantile(found, 0.95, 0, 19) < quantile(found, 0.95, 21, 39) < quantile(found, 0.95, 42, 60)


def test_crossing_the_largest_captured_batch_is_absorbing() -> None:
    """The same rate before and after a two second burst: before it never falls back, after it always does."""
    found = outcome("metastable-fallback")
    steps = found.jobs.table == 1
    at, fell = found.jobs.start_ns[steps] / S, found.jobs.mapping[steps] == GENERIC
    assert fell[(at > 1) & (at < 15)].mean() < 0.02
    assert fell[(at > 18) & (at < 55)].mean() > 0.9
    assert quantile(found, 0.5, 30, 55) > 1.8 * quantile(found, 0.5, 2, 13)
    scenario = load_scenario("metastable-fallback")
    stream = replace(scenario.streams[0], arrivals=replace(scenario.streams[0].arrivals, from_s=(0.0,), per_s=(100.0,)))  # type: ignore[arg-type]
    quiet = ran(replace(scenario, streams=(stream,)))
    steps = quiet.jobs.table == 1
    assert (quiet.jobs.mapping[steps] == GENERIC).mean() < 0.02, "without the burst it stays"


def test_padding_to_a_far_bucket_is_worse_than_no_plan() -> None:
    scenario = load_scenario("bucket-worse-than-eager")
    padded = ran(scenario)
    eager = ran(replace(scenario, lookup=replace(scenario.lookup, pad_limit=2.0)))
    late = padded.load.tokens == 3208
    assert (np.array(MAPPING_WORDS)[padded.jobs.mapping[padded.job[late]]] == "adapted").all()
    assert (np.array(MAPPING_WORDS)[eager.jobs.mapping[eager.job[late]]] == "fallback").all()
    service = [float((o.end_ns - o.start_ns)[late].mean()) for o in (padded, eager)]
    assert service[0] > 1.8 * service[1]
    assert padded.parts[late, PADDING].mean() > 0.4 * service[0]
    assert quantile(padded, 0.99, 20) > 1.5 * quantile(eager, 0.99, 20)


def test_a_long_prefill_holds_up_decode() -> None:
    found = outcome("head-of-line-prefill")
    assert quantile(found, 0.5, 20, 60, 0) < 1.5 * quantile(found, 0.5, 0, 20, 0)
    assert quantile(found, 0.99, 20, 60, 0) > 5 * quantile(found, 0.99, 0, 20, 0)


def test_aggressive_fusion_cuts_launches_and_worsens_the_tail() -> None:
    """Case study: launch overhead none > balanced > aggressive; bursts and p95 aggressive > balanced."""
    scenario = load_scenario("case-study")
    none, balanced, aggressive = (
        figures(Run(scenario.with_policy(policy))) for policy in ("none", "balanced", "aggressive")
    )
    assert none["launch_ns"] > balanced["launch_ns"] > aggressive["launch_ns"]
    gain = (none["launch_ns"] - balanced["launch_ns"]) / (none["launch_ns"] - aggressive["launch_ns"])
    assert gain > 0.8, "balanced keeps most of the launch gain"
    assert aggressive["burst"] > 1.05 * balanced["burst"]
    assert aggressive["p50_ns"] < balanced["p50_ns"]
    assert aggressive["p95_ns"] > 1.05 * balanced["p95_ns"]
    assert aggressive["p99_ns"] > 1.05 * balanced["p99_ns"]


def test_the_default_scenario_tells_its_story_within_a_minute() -> None:
    found = outcome("serving")
    assert quantile(found, 0.99, 12, 20, 1) > 1.3 * quantile(found, 0.99, 0, 12, 1), "the burst reaches decode"
    slow = busy(found, 28, 38)
    assert slow.argmax() == 5
    assert slow.max() / slow.mean() - 1 > 0.4
    assert mapped(found, "planned", 0, 40) - mapped(found, "planned", 46, 60) > 0.15
    assert mapped(found, "fallback", 46, 60) > 0.01
    assert mapped(found, "fallback", 0, 40) == 0.0


def test_rounds_carry_queues_over_and_draw_anew() -> None:
    scenario = load_scenario("steady")
    first, second = (turn for turn, _ in zip(Run(scenario).rounds(), range(2), strict=False))
    assert second.from_ns == first.to_ns == 60 * S
    assert (second.outcome.load.arrival_ns >= second.from_ns).all()
    assert len(second.outcome.load) != len(first.outcome.load)
    for core in range(4):
        until = first.outcome.jobs.end_ns[first.outcome.jobs.core == core].max()
        begins = second.outcome.jobs.start_ns[second.outcome.jobs.core == core].min()
        assert begins >= until
    assert (first.outcome.jobs.parts[:, LAUNCH] > 0).all()


def test_the_seed_decides() -> None:
    scenario = load_scenario("steady")
    again = ran(replace(scenario, title="the same"))
    assert np.array_equal(outcome("steady").end_ns, again.end_ns)
    other = ran(replace(scenario, seed=12))
    assert len(other.load) != len(again.load)
