"""Queue waits of simulated queues against the textbook: the whole way from rows to numbers."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fusetui.analysis.frame import Context, snapshot_of
from fusetui.analysis.slots import Grid
from fusetui.analysis.snapshot import Snapshot
from fusetui.analysis.window import Window
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import build_batch
from fusetui.telemetry.source import SourceHealth

N = 1_000_000
UNIT_NS = 1_000_000


def points(name: str) -> list[dict[str, Any]]:
    corpus = os.environ.get("FUSETUI_CORPUS")
    if not corpus:
        pytest.skip("FUSETUI_CORPUS is not set")
    loaded = json.loads((Path(corpus) / "reference/serving/reference_queueing.json").read_text())
    return list(loaded["points"][name])


def simulated(rate: float, service: np.ndarray, rng: np.random.Generator) -> Snapshot:
    """A single server in order of arrival, by Lindley's recursion."""
    arrival = np.cumsum(rng.exponential(1 / rate, N))
    step = np.concatenate([[0.0], np.cumsum(service[:-1] - np.diff(arrival))])
    wait = step - np.minimum.accumulate(step)
    enqueue = np.rint(arrival * UNIT_NS).astype(np.int64)
    start = np.maximum.accumulate(enqueue + np.rint(wait * UNIT_NS).astype(np.int64))
    end = start + np.rint(service * UNIT_NS).astype(np.int64)
    window = Window(Grid.of_span(0, int(end.max())))
    for part in np.array_split(np.arange(N), 20):
        times = {"enqueue_ns": enqueue[part], "start_ns": start[part], "end_ns": end[part]}
        window.add(build_batch({"kind": "execution", "name": "job", "stream": "q", **times}), int(end.max()))
    context = Context(1, 0.0, Header(), SourceHealth("test", "live"), None, 0, "", 0.0)
    return snapshot_of(window, int(end.max()), context)


@pytest.mark.parametrize("rho", [0.5, 0.8])
def test_waits_of_mm1_are_those_of_theory(rho: float) -> None:
    rng = np.random.default_rng(7)
    point = next(p for p in points("mm1") if p["rho"] == rho)
    found = simulated(rho, rng.exponential(1.0, N), rng)
    assert found.queue_wait.n == N
    assert found.queue_wait.mean_ns == pytest.approx(point["wq_mean"] * UNIT_NS, rel=0.04)
    assert found.queue_wait.p95_ns == pytest.approx(point["wq_p95"] * UNIT_NS, rel=0.05)
    assert found.queue_wait.p99_ns == pytest.approx(point["wq_p99"] * UNIT_NS, rel=0.06)
    # Little's law: work waiting = arrival rate x mean wait; utilisation = busy share.
    assert found.depth.mean == pytest.approx(point["lq"], rel=0.04)
    assert found.busy_ns is not None
    assert found.span_ns is not None
    assert found.busy_ns / found.span_ns == pytest.approx(rho, rel=0.01)


def test_waits_of_md1_are_those_of_theory() -> None:
    rng = np.random.default_rng(8)
    point = next(p for p in points("md1") if p["rho"] == 0.8)
    found = simulated(0.8, np.ones(N), rng)
    assert found.queue_wait.mean_ns == pytest.approx(point["wq_mean"] * UNIT_NS, rel=0.04)
    assert found.queue_wait.p99_ns == pytest.approx(point["wq_p99"] * UNIT_NS, rel=0.06)
