"""Request logs that tell of arrivals and ends alone: an overload is found in them, also in real ones."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from triage_rows import MS, S, Served, poisson, snapshot, work

from fusetui.commands.progress import finish_reading
from fusetui.importers.open import open_capture
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
