"""A baseline: what moved with the verdict of an interval, on the same axes, on the overview and for the rules."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from fake_feed import FakeFeed, FakeTransport
from fake_snapshot import fake_snapshot
from shell_app import make_app
from test_shell_screens import screen_text

from fusetui.analysis.expression.rows import Rows
from fusetui.analysis.snapshot import Snapshot
from fusetui.app.baseline import BaselineBoard
from fusetui.app.deltas import CHANGED, NO_INTERVAL, UNCHANGED, Delta, deltas_of
from fusetui.app.panes.baseline import signed
from fusetui.app.panes.beside import aligned
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import build_batch
from fusetui.telemetry.source import BatchIndex

SECOND = 1_000_000_000
END = fake_snapshot(1).now_ns


def requests(n: int, times: float = 1.0, seed: int = 0, planned: float = 0.9) -> pa.RecordBatch:
    """n requests over 50 s up to END with lognormal latencies around 10 ms."""
    chance = np.random.default_rng(seed)
    end = np.linspace(END - 50 * SECOND, END, n).astype(np.int64)
    latency = (chance.lognormal(np.log(10e6), 0.4, n) * times).astype(np.int64)
    ways = np.where(chance.random(n) < planned, "planned", "fallback")
    rows = {"kind": ["request", "execution"] * n, "name": "r", "stream": "s", "request": np.repeat(np.arange(n), 2)}
    times_of = {"enqueue_ns": end - latency, "start_ns": end - latency // 2, "end_ns": end}
    mapping = [word for way in ways.tolist() for word in (None, way)]
    return build_batch({**rows, "mapping": mapping, **{key: np.repeat(value, 2) for key, value in times_of.items()}})


class Kept:
    """A trace in memory."""

    complete = True
    notes = ()

    def __init__(self, *batches: pa.RecordBatch) -> None:
        self.batches = batches
        self.header = Header()
        self.closed = False

    def index(self) -> BatchIndex:
        n = np.array([len(batch) for batch in self.batches])
        return BatchIndex(n, np.zeros(len(n), np.int64), np.full(len(n), END))

    def read(self, number: int) -> pa.RecordBatch:
        return self.batches[number]

    def refresh(self) -> bool:
        return False

    def close(self) -> None:
        self.closed = True


def moved(before: pa.RecordBatch, after: pa.RecordBatch) -> dict[str, Delta]:
    old, new = (Rows([batch], Header()).scope() for batch in (before, after))
    return {one.label: one for one in deltas_of(old, new, old.snapshot, new.snapshot)}


def test_a_change_has_its_interval_around_the_truth() -> None:
    found = moved(requests(2000), requests(2000, 1.5, seed=1))
    for name in ("p50 latency", "p95 latency", "p99 latency"):
        one = found[name]
        assert (one.verdict, one.worse) == (CHANGED, True)
        assert one.low is not None
        assert one.high is not None
        assert one.low < 0.5 < one.high
    back = moved(requests(2000, 1.5), requests(2000, seed=1))["p95 latency"]
    assert (back.verdict, back.worse) == (CHANGED, False)


@pytest.mark.parametrize("seed", range(1, 6))
def test_the_same_again_is_no_change(seed: int) -> None:
    found = moved(requests(2000), requests(2000, seed=seed))
    assert {one.verdict for one in found.values()} <= {UNCHANGED, NO_INTERVAL}


def test_too_few_say_how_many_it_needs() -> None:
    found = moved(requests(2000), requests(150, 1.5, seed=1))
    assert found["p99 latency"].verdict == "needs n ≥ 300"
    assert found["p99 latency"].low is None
    assert found["p50 latency"].verdict == CHANGED


def test_fewer_planned_is_worse() -> None:
    one = moved(requests(2000), requests(2000, seed=1, planned=0.6))["planned"]
    assert (one.verdict, one.worse) == (CHANGED, True)
    assert one.change == pytest.approx(-1 / 3, abs=0.05)


def test_a_rate_has_no_verdict() -> None:
    one = moved(requests(2000), requests(1000))["requests"]
    assert (one.unit, one.verdict) == ("rate", NO_INTERVAL)
    assert one.change == pytest.approx(-0.5, abs=0.01)


@pytest.mark.parametrize(("change", "text"), [(0.384, "+38 %"), (-0.05, "−5 %"), (11.0, "×12.0"), (None, "—")])
def test_changes_are_written_in_six_cells(change: float | None, text: str) -> None:
    assert signed(change) == text
    assert len(text) <= 6


def test_a_replay_lies_beside_its_baseline_since_the_beginning() -> None:
    shown = fake_snapshot(1)
    transport = FakeTransport().state()
    at_start = replace(
        shown,
        transport=replace(transport, start_ns=shown.window_start_ns),
        rows_by_slot=np.ones(len(shown.rows_by_slot)),
    )
    before = replace(at_start, transport=None)
    ramp = np.arange(len(before.slot_start_ns), dtype=np.float64)
    same = aligned(at_start, before, ramp, 7.0)
    np.testing.assert_allclose(same, ramp)
    later = replace(at_start, transport=replace(transport, start_ns=shown.window_start_ns - 5 * shown.slot_ns))
    np.testing.assert_allclose(aligned(later, before, ramp, 7.0)[:10], ramp[5:15])
    over = replace(at_start, transport=replace(transport, start_ns=shown.window_start_ns - 500 * shown.slot_ns))
    assert set(aligned(over, before, ramp, 7.0).tolist()) == {7.0}
    assert set(aligned(replace(at_start, transport=None), before, ramp, 7.0).tolist()) == {7.0}


def answered(board: BaselineBoard, snapshot: Snapshot) -> None:
    board.look(snapshot)
    for _ in range(500):
        if not board.worker.busy:
            return
        time.sleep(0.02)
    pytest.fail("no answer")


def board_of(before: Callable[[], Any], after: pa.RecordBatch) -> tuple[BaselineBoard, FakeFeed]:
    feed = FakeFeed(replace(fake_snapshot(1), window_start_ns=END - 60 * SECOND, latency_of="request"))
    feed.batches = [after]
    return BaselineBoard(feed, before, "before.arrows"), feed


def test_it_is_compared_under_the_filter_in_force() -> None:
    trace = Kept(requests(2000))
    board, feed = board_of(lambda: trace, requests(2000, 1.5, seed=1))
    shown = feed.snapshot
    assert shown is not None
    answered(board, shown)
    assert trace.closed
    before = board.before(shown)
    assert before is not None
    assert before.latency.n == 2000
    filtered = replace(shown, filter_text="stream = nobody")
    assert board.before(filtered) is None
    answered(board, filtered)
    assert board.answer is not None
    assert board.answer.problem == "nothing in the baseline passes the filter"


def test_a_baseline_that_cannot_be_read_says_so() -> None:
    def broken() -> Any:
        raise TelemetryError("before.arrows", "damaged")

    board, feed = board_of(broken, requests(100))
    assert feed.snapshot is not None
    answered(board, feed.snapshot)
    assert board.answer is not None
    assert board.answer.problem == "no baseline: before.arrows: damaged"


@pytest.mark.parametrize("size", [(120, 40), (80, 24)])
async def test_the_overview_shows_what_moved_and_the_rules_get_it(tmp_path: Path, size: tuple[int, int]) -> None:
    board, feed = board_of(lambda: Kept(requests(2000)), requests(2000, 1.5, seed=1))
    app = make_app(feed, tmp_path)
    app.session.baseline = board
    async with app.run_test(size=size) as pilot:
        for _ in range(200):
            await pilot.pause(0.02)
            asked = app.triage._asked
            if not board.worker.busy and board.answer and asked and asked.baseline is not None:
                break
        app.tick(now=True)
        await pilot.pause()
        text = screen_text(app)
        assert "Against the baseline · before" in text
        (line,) = [line for line in text.split("\n") if "p95 latency" in line]
        assert "✗ changed" in line
        assert "+4" in line or "+5" in line
        assert "was " in text
        assert asked is not None
        assert asked.baseline is board.before(feed.snapshot)
