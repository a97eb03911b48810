"""The ingest thread: mailbox, window, filter, jumps, failures."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from tracerows import MS, FakeTransport, ListSource, S, batch_of, random_batch

from fusetui.analysis.filter import FilterError
from fusetui.analysis.ingest import Ingest
from fusetui.analysis.rows import RowQuery
from fusetui.analysis.snapshot import Snapshot
from fusetui.telemetry.errors import TelemetryError

WAIT_S = 20.0


@pytest.fixture
def source() -> ListSource:
    return ListSource()


@pytest.fixture
def ingest(source: ListSource) -> Iterator[Ingest]:
    made = Ingest(source, window_ns=10 * S, memory_bytes=32 << 20, tick_s=0.02)
    yield made
    made.stop()


def rows_at(*seconds: float) -> pa.RecordBatch:
    return batch_of([{"start_ns": round(at * S), "end_ns": round(at * S) + 1000, "stream": "a"} for at in seconds])


def settled(ingest: Ingest) -> Snapshot:
    """A snapshot of everything given so far."""
    now = ingest.snapshot.version if ingest.snapshot else 0
    found = ingest.wait_for(now + 3, WAIT_S)
    assert found is not None
    return found


def test_rows_arrive_in_the_mailbox(source: ListSource, ingest: Ingest) -> None:
    source.give(rows_at(1, 2), rows_at(3))
    ingest.start()
    found = settled(ingest)
    assert (found.executions, found.raw_rows, found.now_ns) == (3, 3, 3 * S + 1000)
    assert ingest.rows(RowQuery(order="time"))["start_ns"].to_list() == [3 * S, 2 * S, S]
    assert sum(len(batch) for batch in ingest.raw()) == 3


def test_versions_grow_and_nothing_is_computed_twice(source: ListSource, ingest: Ingest) -> None:
    source.give(rows_at(1))
    ingest.start()
    first = settled(ingest)
    second = settled(ingest)
    assert second.version > first.version
    assert second.taken_s > first.taken_s
    assert second.streams is first.streams


def test_window_and_filter_look_again_at_the_raw_rows(source: ListSource, ingest: Ingest) -> None:
    source.give(rows_at(1, 5, 9), batch_of([{"start_ns": 9 * S, "end_ns": 9 * S + 5, "stream": "b"}]))
    ingest.start()
    assert settled(ingest).executions == 4
    ingest.set_window(2 * S)
    narrow = settled(ingest)
    assert (narrow.executions, ingest.window_ns, narrow.slot_ns) == (2, 2 * S, 20 * MS)
    ingest.set_window(10 * S)
    ingest.set_filter("stream = a")
    filtered = settled(ingest)
    assert (filtered.executions, filtered.filter_text) == (3, "stream = a")
    assert len(ingest.rows(RowQuery())) == 3
    source.give(rows_at(9.5), batch_of([{"start_ns": 0, "end_ns": 9 * S, "stream": "b"}]))
    assert settled(ingest).executions == 4
    ingest.set_filter("")
    assert settled(ingest).executions == 6
    with pytest.raises(FilterError):
        ingest.set_filter("stream <")
    assert settled(ingest).executions == 6


def test_a_jump_forgets_everything_before(source: ListSource, ingest: Ingest) -> None:
    source.give(rows_at(50))
    ingest.start()
    assert settled(ingest).executions == 1
    source.generation += 1
    source.give(rows_at(1, 2))
    found = settled(ingest)
    assert (found.executions, found.now_ns, found.generation, found.raw_rows) == (2, 2 * S + 1000, 1, 2)


def test_a_failing_source_is_said_and_the_thread_ends(source: ListSource, ingest: Ingest) -> None:
    source.give(rows_at(1))
    ingest.start()
    settled(ingest)
    source.give(TelemetryError("socket", "column end_ns of batch 3 is text", "send int64"))
    found = ingest.wait_for(10**9, 0.2) or ingest.snapshot
    for _ in range(100):
        if ingest.failed:
            break
        ingest.wait_for(10**9, 0.05)
    found = ingest.snapshot
    assert found is not None
    assert ingest.failed == "socket: column end_ns of batch 3 is text; send int64"
    assert (found.health.state, found.health.last_error, found.executions) == ("failed", ingest.failed, 1)
    assert not any(thread.name == "ingest" and thread is ingest._thread for thread in threading.enumerate())


class Panic(BaseException):
    """As native libraries raise: not an Exception."""


def test_a_panic_before_the_first_snapshot_is_said_too(source: ListSource, ingest: Ingest) -> None:
    source.give(Panic("index out of bounds\x1b[2J"))
    ingest.start()
    found = ingest.wait_for(1, WAIT_S)
    assert found is not None
    assert found.health.state == "failed"
    assert ingest.failed == "index out of bounds·[2J"


def test_every_batch_goes_to_the_recorder(source: ListSource, ingest: Ingest) -> None:
    class Kept:
        def __init__(self) -> None:
            self.batches: list[pa.RecordBatch] = []

        def write(self, batch: pa.RecordBatch) -> None:
            self.batches.append(batch)

    kept = Kept()
    ingest.set_filter("stream = b")
    ingest.tee(kept)
    source.give(rows_at(1), rows_at(2, 3))
    ingest.start()
    assert settled(ingest).executions == 0
    assert [len(batch) for batch in kept.batches] == [1, 2]
    ingest.tee(None)
    source.give(rows_at(4))
    settled(ingest)
    assert len(kept.batches) == 2


def test_small_batches_with_their_own_words_are_put_together(source: ListSource, ingest: Ingest) -> None:
    source.give(
        *[batch_of([{"name": f"k{i}", "start_ns": i, "end_ns": i + 1, "stream": f"s{i % 5}"}]) for i in range(300)]
    )
    units = [
        batch_of([{"kind": "counter", "name": "c", "value": 1.0, "unit": f"u{i}", "start_ns": i, "end_ns": i}])
        for i in range(200)
    ]
    source.give(*units)
    ingest.start()
    found = settled(ingest)
    assert (found.executions, found.counters, len(found.streams)) == (300, 200, 5)
    assert [row.executions for row in found.streams] == [60] * 5


def test_a_replay_shows_its_whole_span(source: ListSource) -> None:
    source.transport = FakeTransport(100 * S, 700 * S, 3)
    source.present = 700 * S
    source.give(rows_at(100, 400, 700 - 1e-6))
    ingest = Ingest(source, tick_s=0.02)
    ingest.start()
    try:
        found = settled(ingest)
        assert (found.executions, found.window_start_ns, len(found.slot_start_ns)) == (3, 100 * S, 118)
        assert source.transport.windows == [ingest.window_ns]
        assert ingest.window_ns >= 600 * S
    finally:
        ingest.stop()


def test_a_big_replay_shows_about_fifty_thousand_rows() -> None:
    ingest = Ingest(ListSource(FakeTransport(0, 1000 * S, 10_000_000)))
    assert ingest.window_ns == 5 * S


def test_a_growing_replay_is_fitted_again() -> None:
    source = ListSource(FakeTransport(0, 10 * S, 1))
    assert source.transport is not None
    source.transport.growing = True
    source.present = 10 * S
    source.give(rows_at(9))
    ingest = Ingest(source, tick_s=0.02)
    ingest.start()
    try:
        first = settled(ingest)
        assert first.executions == 1
        source.transport.end_ns = source.present = 1000 * S
        source.give(rows_at(999))
        source.transport.growing = False
        found = settled(ingest)
        assert (found.executions, found.window_start_ns) == (2, 0)
        assert source.transport.windows == [ingest.window_ns]
    finally:
        ingest.stop()


def test_stop_is_quick_and_idempotent(source: ListSource, ingest: Ingest) -> None:
    import time

    ingest.start()
    settled(ingest)
    began = time.monotonic()
    ingest.stop()
    ingest.stop()
    assert time.monotonic() - began < 2.0
    assert not ingest._thread.is_alive()
    assert ingest.failed is None


def test_rows_may_be_asked_while_batches_come(source: ListSource, ingest: Ingest) -> None:
    ingest.start()
    rng = np.random.default_rng(1)
    seen = 0
    for _ in range(30):
        source.give(*[random_batch(rng, 50, S) for _ in range(5)])
        seen = len(ingest.rows(RowQuery(limit=10_000)))
    settled(ingest)
    assert seen <= len(ingest.rows(RowQuery(limit=10_000))) == 7500
