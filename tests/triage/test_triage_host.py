"""Host-bound: idle devices of profiled programs, first calls, and what is not the host's doing."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from triage_rows import MS, S, Served, serve, snapshot, work

from fusetui.analysis.attribution.idle import idle_of
from fusetui.triage.finding import Finding
from fusetui.triage.judge import triage


def _found(batches: list[pa.RecordBatch], id: str) -> Finding | None:
    return next((f for f in triage(snapshot(batches)).findings if f.id == id), None)


def _program(start: np.ndarray, took: int, launch: int) -> list[pa.RecordBatch]:
    """Executions of a profiled program: each starts as its launch call returns."""
    n = len(start)
    ran = Served(start, start, start + took, np.zeros(n, np.int64))
    return work(ran, requests=False, request=None, launch_ns=np.full(n, launch))


def test_idle_time_of_the_device_that_is_busy_most() -> None:
    start = np.array([0, 10, 12, 40, 5]) * MS
    end = np.array([4, 20, 15, 45, 6]) * MS
    found = idle_of(np.array([0, 0, 0, 0, 1]), start, end)
    assert found is not None
    assert (found.span_ns, found.idle_ns, found.gaps) == (45 * MS, 26 * MS, 2)
    assert (found.longest_ns, found.longest_at_ns, found.few_ns, found.median_ns) == (20 * MS, 20 * MS, 26 * MS, 6 * MS)
    assert idle_of(*(np.zeros(0, np.int64),) * 3) is None


def test_a_device_that_waits_for_every_launch() -> None:
    found = _found(_program(np.arange(0, 2 * S, 10 * MS), 2 * MS, 20_000), "host/idle")
    assert found is not None
    assert (found.bottleneck, found.severity) == ("host", "warn")
    assert "79.9 % of 1.99 s: 199 gaps of 8.00 ms" in found.sentence
    assert "graph" in found.fix


def test_a_device_that_waits_once() -> None:
    start = np.concatenate([np.arange(0, S, 10 * MS), 4 * S + np.arange(0, S, 10 * MS)])
    found = _found(_program(start, 9 * MS, 20_000), "host/idle")
    assert found is not None
    assert "in 5 gaps, the longest 3.00 s" in found.sentence
    assert (found.slice.from_ns, found.slice.to_ns) == (S - MS, 4 * S)
    assert "graph" not in found.fix


def test_a_busy_device_is_not_idle() -> None:
    assert _found(_program(np.arange(0, 2 * S, 10 * MS), 9 * MS, 20_000), "host/idle") is None


def test_an_idle_server_waits_for_nobody() -> None:
    assert _found(work(serve(np.arange(0, 20 * S, 50 * MS), np.full(400, 2 * MS))), "host/idle") is None


def test_one_long_launch_call_is_no_launch_overhead() -> None:
    start = np.concatenate([np.arange(0, S, 10 * MS), 4 * S + np.arange(0, S, 10 * MS)])
    launch = np.full(200, 20_000)
    launch[100] = 2 * S
    ran = Served(start, start, start + 9 * MS, np.zeros(200, np.int64))
    found = _found(work(ran, requests=False, request=None, launch_ns=launch), "launch/exposed")
    assert found is not None
    assert found.severity == "info"
    assert found.sentence.startswith("one launch call took 2.00 s, of 2.00 s")
    launch[:] = 5 * MS
    many = _found(work(ran, requests=False, request=None, launch_ns=launch), "launch/exposed")
    assert many is None  # 1 ms of each gap: a tenth
    ran = Served(start, start, start + 4 * MS, np.zeros(200, np.int64))
    many = _found(work(ran, requests=False, request=None, launch_ns=launch), "launch/exposed")
    assert many is not None
    assert many.severity == "warn"


@pytest.mark.parametrize("slow", [True, False])
def test_executions_slower_than_their_like_are_no_time_without_one(slow: bool) -> None:
    """The slowest requests: their work took ten times as long, or nothing of theirs ran for that long."""
    came = np.arange(0, 40 * S, 50 * MS)
    odd = np.arange(len(came)) % 25 == 24
    took = np.where(odd, 40 * MS, 4 * MS)
    end = came + took
    runs = Served(came, came, end if slow else came + 4 * MS, np.zeros(len(came), np.int64))
    asked = Served(came, came, end, np.zeros(len(came), np.int64))
    found = _found([work(runs, shape="t=1")[0], work(asked, shape="t=1")[1]], "host/phantom")
    assert (found is None) is slow


def test_a_thread_that_moves_between_cores_is_no_imbalance() -> None:
    came = np.arange(0, 20 * S, 10 * MS)
    lane = (np.random.default_rng(1).random(len(came)) < 0.1).astype(np.int64)
    turns = Served(came, came, came + 8 * MS, lane)
    assert _found(work(turns), "imbalance/uneven") is None
    beside = Served(np.repeat(came, 2), np.repeat(came, 2), np.repeat(came, 2) + np.tile([8 * MS, 2 * MS], len(came)),
                    np.tile([0, 1], len(came)))  # fmt: skip
    assert _found(work(beside), "imbalance/uneven") is not None
