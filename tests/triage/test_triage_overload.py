"""Request logs that tell of arrivals and ends alone: an overload is found in them, also in real ones."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from triage_rows import MS, S, Served, poisson, snapshot, work

from fusetui.analysis.snapshot import Snapshot
from fusetui.commands.progress import finish_reading
from fusetui.importers.open import open_capture
from fusetui.telemetry.schema import build_batch
from fusetui.triage.finding import Finding
from fusetui.triage.judge import triage

CORPUS = os.environ.get("FUSETUI_CORPUS")


def _log(came: np.ndarray, end: np.ndarray) -> list[pa.RecordBatch]:
    """Requests that seem to start as they come, as logs of clients have them."""
    return [work(Served(came, came, end, np.zeros(len(came), np.int64)), device=None, core=None, stream=None)[1]]


def _overload(batches: list[pa.RecordBatch]) -> Finding | None:
    return next((f for f in triage(snapshot(batches)).findings if f.id == "queueing/overload"), None)


def test_more_come_than_end() -> None:
    burst = 40 * S + np.arange(0, 10 * S, 25 * MS)
    came = np.sort(np.concatenate([poisson(5, 60, 1), burst]))
    end = came.copy()
    for i in range(len(came)):
        end[i] = max(came[i], end[i - 1] if i else 0) + 100 * MS
    found = _overload(_log(came, end))
    assert found is not None
    assert (found.bottleneck, found.severity, found.confidence) == ("queueing", "warn", "likely")
    assert found.slice.from_ns / S == pytest.approx(41, abs=2)
    facts = {fact.text: fact.value for fact in found.evidence}
    assert facts["ended meanwhile, a second"] == pytest.approx(10, rel=0.05)
    assert facts["came while it grew, a second"] == pytest.approx(45, rel=0.1)
    assert found.since_ns == found.slice.from_ns


def test_a_log_at_a_steady_load_has_none() -> None:
    came = poisson(20, 60, 3)
    end = came + np.random.default_rng(3).gamma(4.0, 1.25e9, len(came)).astype(np.int64)
    assert _overload(_log(came, end)) is None


def test_open_requests_alone_speak_where_half_are_open() -> None:
    """Sixty came at once and ten are done: the median is a bound too, so nothing can be four times it."""
    came = np.arange(60) * MS
    rows = {"kind": "request", "name": "r", "enqueue_ns": came, "start_ns": came, "request": np.arange(60)}
    done = Served(came[50:], came[50:], 10 * S + came[50:], np.zeros(10, np.int64))
    batches = [build_batch(rows), *work(done, offset=50, stream=None, device=None, core=None)[1:]]
    found = next((f for f in triage(snapshot(batches)).findings if f.id == "queueing/open"), None)
    assert found is not None
    assert found.sentence.startswith("50 are not done, the oldest after 10.1 s")


def _at_60_s(*logs: str) -> tuple[Snapshot, list[Finding]]:
    """What a replay of real logs of one run shows a minute in."""
    folder = Path(CORPUS or "") / "traces/serving"
    trace = open_capture([folder / f"liao4s__BurstGPT_test__{log}" for log in logs], memory_bytes=1 << 28)
    finish_reading(trace)
    batches = [trace.read(i) for i in range(len(trace.index().rows))]
    until = int(trace.index().first_ns.min()) + 60 * S
    trace.close()
    event = [pc.coalesce(batch["end_ns"], batch["start_ns"], batch["enqueue_ns"]) for batch in batches]
    seen = snapshot([batch.filter(pc.less_equal(at, until)) for batch, at in zip(batches, event, strict=True)])
    return seen, list(triage(seen).findings)


@pytest.mark.skipif(CORPUS is None, reason="FUSETUI_CORPUS is not set")
def test_a_minute_into_a_real_overload_those_who_wait_bound_the_tail() -> None:
    """Of 500 that came 182 are done, with a p95 of 16.5 s; in the end theirs and the others' is 107 s."""
    both = ("detail_log_scale1000_prompt500.json", "vllm_log_scale1000_prompt500.csv")
    for logs in (both[:1], both):
        seen, found = _at_60_s(*logs)
        assert (seen.requests, seen.latency.open_n) == (182, 318)
        assert "p95" in seen.latency.at_least
        assert seen.latency.p95_ns is not None
        assert seen.latency.p95_ns >= 21.99 * S
        assert [one.id for one in found if one.severity != "info"] == ["queueing/open"]


@pytest.mark.skipif(CORPUS is None, reason="FUSETUI_CORPUS is not set")
def test_the_schedulers_log_beside_a_real_overload_is_read() -> None:
    folder = Path(CORPUS or "") / "traces/serving"
    both = ("detail_log_scale1000_prompt500.json", "vllm_log_scale1000_prompt500.csv")
    trace = open_capture([folder / f"liao4s__BurstGPT_test__{log}" for log in both], memory_bytes=1 << 28)
    finish_reading(trace)
    found = _overload([trace.read(i) for i in range(len(trace.index().rows))])
    trace.close()
    assert found is not None
    assert "196 waiting beside 172 that run" in found.sentence
    assert "scheduler's log" not in found.next_action


@pytest.mark.skipif(CORPUS is None, reason="FUSETUI_CORPUS is not set")
@pytest.mark.parametrize(("scale", "peak"), [(100, 150), (300, 296), (1000, 372), (2000, 446)])
def test_real_overloads(scale: int, peak: int) -> None:
    path = f"traces/serving/liao4s__BurstGPT_test__detail_log_scale{scale}_prompt500.json"
    trace = open_capture([Path(CORPUS or "") / path], memory_bytes=1 << 28)
    finish_reading(trace)
    found = _overload([trace.read(i) for i in range(len(trace.index().rows))])
    trace.close()
    assert found is not None
    assert found.severity == "warn"
    assert next(fact.value for fact in found.evidence if fact.text == "in progress at the peak") == peak
