"""Traces fed in the background: in memory or spilled, whole or cut short by an error."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from telemetry_samples import HEADER, numbered, requests

from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.spool import SpooledTrace

BATCHES = [numbered(i * 10, 10) for i in range(6)]


@pytest.mark.parametrize("memory_bytes", [0, 5000, 1 << 30])
def test_what_goes_in_comes_out_in_any_order(memory_bytes: int) -> None:
    trace = SpooledTrace(BATCHES, HEADER, memory_bytes=memory_bytes)
    assert trace.wait_complete(10)
    index = trace.index()
    assert index.rows.tolist() == [10] * 6
    assert index.first_ns.tolist() == [i * 10_000 + 500 for i in range(6)]
    assert index.last_ns.tolist() == [i * 10_000 + 9_500 for i in range(6)]
    for number in (5, 0, 3, 3):
        assert trace.read(number).to_pylist() == BATCHES[number].to_pylist()
    with pytest.raises(TelemetryError, match="there are 6 batches"):
        trace.read(6)
    assert trace.header == HEADER
    trace.close()


def test_what_is_over_the_budget_leaves_nothing_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = pa.total_allocated_bytes()
    trace = SpooledTrace((numbered(i * 20_000, 20_000) for i in range(20)), HEADER, memory_bytes=0)
    assert trace.wait_complete(20)
    assert pa.total_allocated_bytes() - before < 8 << 20
    assert list(tmp_path.iterdir()) == []
    assert requests([trace.read(19)]) == list(range(380_000, 400_000))
    trace.close()
    with pytest.raises(TelemetryError):
        trace.read(19)


def test_it_grows_while_the_iterator_runs() -> None:
    gate = threading.Semaphore(0)

    def slowly() -> Iterator[pa.RecordBatch]:
        for batch in BATCHES:
            gate.acquire()
            yield batch

    trace = SpooledTrace(slowly, HEADER)
    assert not trace.wait(0.05)
    assert not trace.complete
    assert not trace.refresh()
    gate.release()
    assert trace.wait(10)
    assert trace.refresh()
    assert not trace.refresh()
    assert trace.index().rows.tolist() == [10]
    gate.release(5)
    assert trace.wait_complete(10)
    assert len(trace.index().rows) == 6


def failing(after: int, error: Exception) -> Iterator[pa.RecordBatch]:
    yield from BATCHES[:after]
    raise error


def test_an_error_after_some_batches_keeps_them_and_says_so() -> None:
    trace = SpooledTrace(failing(2, TelemetryError("cap.json", "ends early")), HEADER, notes=["first note"])
    assert trace.wait_complete(10)
    assert len(trace.index().rows) == 2
    assert list(trace.notes) == ["first note", "only in part: cap.json: ends early"]
    assert trace.error is None


@pytest.mark.parametrize(
    ("error", "line"),
    [(TelemetryError("cap.json", "is not JSON"), "cap.json: is not JSON"), (OSError("gone"), "import: gone")],
)
def test_an_error_before_any_batch_is_raised(error: Exception, line: str) -> None:
    trace = SpooledTrace(failing(0, error), HEADER)
    with pytest.raises(TelemetryError) as caught:
        trace.wait(10)
    assert str(caught.value) == line
    assert trace.complete


def test_close_stops_an_iterator_that_never_ends() -> None:
    closed = threading.Event()

    def forever() -> Iterator[pa.RecordBatch]:
        try:
            while True:
                yield BATCHES[0]
        finally:
            closed.set()

    trace = SpooledTrace(forever, HEADER, memory_bytes=0)
    assert trace.wait(10)
    trace.close()
    assert closed.wait(10)
    assert "fusetui-spool" not in [t.name for t in threading.enumerate() if t.is_alive() and t is trace._thread]


def test_empty_batches_are_left_out_and_live_notes_are_asked() -> None:
    lines = ["one"]
    trace = SpooledTrace([BATCHES[0].slice(0, 0), BATCHES[1]], HEADER, notes=lambda: lines)
    assert trace.wait_complete(10)
    lines.append("two")
    trace.note("three")
    assert list(trace.notes) == ["one", "two", "three"]
    assert len(trace.index().rows) == 1
