"""Host-bound: idle devices of profiled programs, first calls, and what is not the host's doing."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from triage_rows import MS, S, Served, serve, snapshot, work

from fusetui.analysis.attribution.idle import idle_of
from fusetui.analysis.columns import Reader, concat
from fusetui.analysis.work import requests
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
    assert (found.longest_ns, found.longest_at_ns, found.half, found.half_ns) == (20 * MS, 20 * MS, 1, 20 * MS)
    assert idle_of(*(np.zeros(0, np.int64),) * 3) is None


def test_copies_are_no_kernels_and_gaps_between_requests_are_nobodys() -> None:
    """Kernels 0-4 and 10-12 ms, a copy 4-8 ms; requests in progress 0-7 ms and 9-20 ms."""
    start, end = np.array([0, 4, 10]) * MS, np.array([4, 8, 12]) * MS
    copies = np.array([False, True, False])
    found = idle_of(np.zeros(3, np.int64), start, end, copies)
    assert found is not None
    assert (found.span_ns, found.idle_ns, found.copied_ns) == (12 * MS, 2 * MS, 4 * MS)
    none, came, done = np.zeros(2, np.int64), np.array([0, 9]) * MS, np.array([7, 20]) * MS
    asked = requests(concat([Reader().read(batch) for batch in work(Served(came, came, done, none))]))
    found = idle_of(np.zeros(3, np.int64), start, end, copies, asked)
    assert found is not None
    assert (found.span_ns, found.idle_ns, found.copied_ns) == (10 * MS, MS, 3 * MS)
    assert (found.gaps, found.longest_ns, found.longest_at_ns) == (1, MS, 8 * MS)


def test_a_device_that_copies_most_of_the_time() -> None:
    start = np.arange(0, 2 * S, 10 * MS)
    ran = Served(start, start, start + 9 * MS, np.zeros(200, np.int64))
    names = np.where(np.arange(200) % 20, "Memcpy HtoD", "gemm")
    found = _found(work(ran, requests=False, request=None, launch_ns=np.full(200, 9_000), name=names), "host/copies")
    assert found is not None
    assert "for 85.5 % of 2.00 s, kernels ran for 4.50 %" in found.sentence
    assert _found(_program(start, 9 * MS, 9_000), "host/copies") is None


def test_a_device_that_waits_for_every_launch() -> None:
    found = _found(_program(np.arange(0, 20 * MS, MS // 10), MS // 50, 20_000), "host/idle")
    assert found is not None
    assert (found.bottleneck, found.severity) == ("host", "warn")
    assert "79.9 % of 19.9 ms, half of that in 100 gaps of 80.0 µs or more: as if the host could not" in found.sentence
    assert "graph" in found.fix


def test_pauses_between_short_gaps_are_no_launches() -> None:
    """Of an operation profile with host times: its median gap is under a microsecond, its idle time lies in pauses."""
    start = np.repeat(np.arange(10) * S, 20) + np.tile(np.arange(20) * (MS + 600), 10)
    found = _found(_program(start, MS, 20_000), "host/idle")
    assert found is not None
    assert "half of that in 5 gaps of 980 ms or more, longer than launches take" in found.sentence
    assert "graph" not in found.fix
    assert (found.slice.from_ns, found.slice.to_ns) == (20 * MS + 19 * 600, S)


def test_a_profile_of_nothing_but_device_work_may_be_idle_too() -> None:
    start = np.arange(0, 20 * MS, MS // 10)
    ran = Served(start, start, start + MS // 50, np.zeros(200, np.int64))
    found = _found(work(ran, requests=False, request=None, enqueue_ns=None), "host/idle")
    assert found is not None
    assert found.confidence == "possible"
    assert _found(work(ran, requests=False, request=None), "host/idle") is None
    assert _found(work(ran, requests=False, request=None, enqueue_ns=None, device=None), "host/idle") is None


def test_a_few_launches_are_the_start_of_a_program() -> None:
    assert _found(_program(np.arange(0, 190 * MS, 10 * MS), 2 * MS, 20_000), "host/idle") is None


def test_steps_that_are_requests_do_not_hide_an_idle_device() -> None:
    """A step a second, each with a kernel of 100 ms; without its steps in progress the device is nobody's."""
    came = np.arange(0, 40 * S, S)
    runs = Served(came, came, came + 100 * MS, np.zeros(40, np.int64))
    steps = Served(came, came, came + 990 * MS, np.zeros(40, np.int64))
    rows = [work(runs, launch_ns=np.full(40, 9_000))[0], work(steps)[1]]
    found = _found(rows, "host/idle")
    assert found is not None
    assert "idle for 89.7 % of 38.7 s in which requests were in progress, half of that in" in found.sentence
    short = Served(came, came, came + 110 * MS, np.zeros(40, np.int64))
    assert _found([rows[0], work(short)[1]], "host/idle") is None


def test_nodes_of_a_graph_made_no_call_of_their_own() -> None:
    """Ten graph launches of 60 µs among 200 calls of 5 µs, 100 nodes each: 10 slow calls, not 1,000."""
    start = np.arange(1200) * MS
    ran = Served(start, start, start + MS // 2, np.zeros(1200, np.int64))
    node = np.concatenate([np.tile(np.arange(100), 10), np.zeros(200, np.int64)])
    launch = np.concatenate([np.full(1000, 60_000), np.full(200, 5_000)])
    batches = work(ran, requests=False, request=None, launch_ns=launch, node=node)
    assert snapshot(batches).launch.runtime_outliers == 10
    assert _found(batches, "host/calls") is None
    launch[1000:1010] = 70_000
    found = _found(work(ran, requests=False, request=None, launch_ns=launch, node=node), "host/calls")
    assert found is not None
    assert found.sentence.startswith("20 of 210 launch calls took over 50 µs")


def test_waits_for_launches_of_streams_beside_a_busy_device_are_a_note() -> None:
    start = np.arange(0, 2 * S, 10 * MS)
    bare = Served(start, start, start + 4 * MS, np.zeros(200, np.int64))
    alone = work(bare, requests=False, request=None, launch_ns=np.full(200, 5 * MS), stream="a", core=0)
    full = Served(start, start, start + 10 * MS, np.zeros(200, np.int64))
    other = work(full, requests=False, request=None, stream="b", core=1)
    severity = []
    for batches in (alone, [*alone, *other]):
        found = _found(batches, "launch/exposed")
        severity.append(None if found is None else found.severity)
    assert severity == ["warn", "info"]


def test_a_device_that_waits_once() -> None:
    start = np.concatenate([np.arange(0, S, 10 * MS), 4 * S + np.arange(0, S, 10 * MS)])
    found = _found(_program(start, 9 * MS, 20_000), "host/idle")
    assert found is not None
    assert "93.8 % of that in one gap of 3.00 s, longer than launches take" in found.sentence
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


def test_a_pause_inside_a_step_is_not_only_launch_overhead() -> None:
    """Thirty steps of 100 ms, in each one kernel of 10 ms whose launch call begins with the step and takes 80 ms."""
    came = np.arange(30) * 100 * MS
    runs = Served(came + 80 * MS, came + 81 * MS, came + 91 * MS, np.zeros(30, np.int64))
    steps = Served(came, came, came + 99 * MS, np.zeros(30, np.int64))
    rows = [work(runs, launch_ns=np.full(30, 80 * MS))[0], work(steps)[1]]
    found = _found(rows, "host/idle")
    assert found is not None
    assert "in which requests were in progress" in found.sentence
