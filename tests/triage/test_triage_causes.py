"""The tail as measured and as modelled: what a finding says of each; a model that the rows do not bear out is told."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from triage_rows import MS, S, poisson, serve, snapshot, work

from fusetui.accelerator.runtime.counterfactual import attribute
from fusetui.analysis.attribution.causes import CauseRow, Causes, CausesAt
from fusetui.triage.finding import Finding
from fusetui.triage.judge import triage


def _causes(driver: str, share_ns: int, all_ns: int, without_ns: int) -> Causes:
    shapley = attribute([driver], [without_ns, all_ns])
    at = CausesAt(0.99, all_ns, without_ns, (CauseRow(driver, share_ns, without_ns),), shapley, driver, ())
    return Causes("model fit p99 -2 % (n = 1,000)", "ns", 1000, 4, at, at)


def _burst(fell: bool) -> list[pa.RecordBatch]:
    """Two in three run padded, all the time. In the burst half are of a size without a plan, ten times the work."""
    arrival = np.concatenate([poisson(40, 40, 1), poisson(20, 8, 2, from_s=20)])
    arrival.sort()
    burst = (arrival >= 20 * S) & (arrival < 28 * S)
    rng = np.random.default_rng(3)
    odd = burst & (rng.random(len(arrival)) < 0.4)
    padded = ~odd & (rng.random(len(arrival)) < 0.66)
    mapping = np.where(odd & fell, "fallback", np.where(padded, "adapted", "planned"))
    shape = np.where(odd, "b=1 t=200", "b=1 t=100")
    took = np.where(odd, 40 * MS, 5 * MS).astype(np.int64)
    return work(serve(arrival, took), mapping=mapping, shape=shape, plan="p")


def _of(batches: list[pa.RecordBatch], id: str, causes: Causes | None) -> Finding | None:
    return next((f for f in triage(snapshot(batches), causes).findings if f.id == id), None)


def test_the_time_in_slow_slots_tells_the_path_not_how_often_each_was_taken() -> None:
    causes = _causes("fallback", 600 * MS, 1150 * MS, 190 * MS)
    found = _of(_burst(fell=True), "fallback/tail", causes)
    assert found is not None
    assert "work on the generic path" in found.sentence
    assert "by the model 190 ms without it" in found.sentence
    assert "the tail waits in the queue behind it" in found.sentence
    assert found.slice.filter == 'mapping = "fallback"'
    assert found.fix == "add a plan for b=1 t=200 (100 % of that time)"
    facts = {fact.text: fact.value for fact in found.evidence}
    assert facts["share of executions that ran adapted"] > facts["share of executions that fell back"] > 0  # type: ignore[operator]
    assert facts["share of busy time without a plan of its size, slow slots"] > 0.5  # type: ignore[operator]
    assert facts["the same, calm slots"] == 0.0  # padded to what was asked for: nothing added
    assert _of(_burst(fell=True), "contradiction/cause", causes) is None


def test_a_model_that_the_rows_do_not_bear_out_is_a_contradiction() -> None:
    causes = _causes("fallback", 600 * MS, 1150 * MS, 190 * MS)
    found = _of(_burst(fell=False), "contradiction/cause", causes)
    assert found is not None
    assert found.topic == "contradiction"
    assert found.contradicts == ("fallback/tail",)
    assert "blames fallback for 52" in found.sentence
    assert "they show queueing" in found.sentence
    assert _of(_burst(fell=False), "contradiction/cause", None) is None
    queueing = _causes("queueing", 600 * MS, 1150 * MS, 190 * MS)
    assert _of(_burst(fell=False), "contradiction/cause", queueing) is None
