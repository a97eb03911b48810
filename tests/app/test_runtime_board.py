"""The twin behind the what-if and tail screens: knobs, right values against the simulation, what is not computed."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from fake_feed import FakeFeed
from fake_snapshot import T0, fake_snapshot
from shell_app import make_app
from textual import events
from textual.pilot import Pilot

from fusetui.accelerator.runtime.config import Lookup
from fusetui.accelerator.runtime.simulate import simulate
from fusetui.analysis.attribution.causes import Causes
from fusetui.analysis.snapshot import Snapshot
from fusetui.analysis.twin import Twin, twin_of
from fusetui.app.app import FusetuiApp
from fusetui.app.causes import CauseBoard
from fusetui.app.pane import Pane
from fusetui.app.panes.knobs import KnobsPane
from fusetui.app.panes.tail_drivers import TailDriversPane
from fusetui.app.panes.tail_waterfall import TailWaterfallPane, waterfall
from fusetui.app.panes.whatif_runtime import WhatIfRuntimePane
from fusetui.app.runtime_board import RuntimeBoard
from fusetui.app.runtime_knobs import (
    BUCKETS,
    CORES,
    GATE,
    LIMIT,
    PLACEMENT,
    SIZE,
    SPEED,
    WAIT,
    runtime_changed,
    runtime_knobs,
    runtime_shown,
    runtime_stepped,
    runtime_value,
)

MS = 1_000_000
NOW = T0


@cache
def requests() -> pl.DataFrame:
    """400 requests of 10 ms, one at a time on one core, that come every 9 ms on average: they queue."""
    rng = np.random.default_rng(5)
    came = NOW - 9_000 * MS + np.cumsum(rng.exponential(9.0, 400) * MS).astype(np.int64)
    start, end = np.empty(400, np.int64), np.empty(400, np.int64)
    free = 0
    for i, at in enumerate(came.tolist()):
        start[i] = max(at, free)
        free = end[i] = start[i] + 10 * MS
    return pl.DataFrame(
        {
            "kind": ["request"] * 400, "request": np.arange(400), "enqueue_ns": came, "start_ns": start, "end_ns": end,
            "stream": ["s"] * 400, "device": [0] * 400, "core": [0] * 400, "shape": ["n=1"] * 400,
        }
    )  # fmt: skip


@cache
def twin() -> Twin:
    found = twin_of(requests(), fake_snapshot().header)
    assert isinstance(found, Twin)
    return found


def feed_with_requests(*, replay: bool = True) -> FakeFeed:
    return FakeFeed(fake_snapshot(0), replay=replay, rows=requests())


def answered(board: RuntimeBoard | CauseBoard) -> None:
    deadline_s = time.monotonic() + 60
    while board.worker.busy and time.monotonic() < deadline_s:
        time.sleep(0.01)
    assert not board.worker.busy


def test_the_twin_reproduces_the_requests() -> None:
    assert twin().fit.n == 400
    assert twin().fit.good
    assert twin().config.cores == 1


def test_knobs_change_the_runtime_and_nothing_else() -> None:
    load, config = runtime_changed(twin(), {})
    assert np.array_equal(load.arrival_ns, twin().load.arrival_ns)
    assert config == twin().config
    load, config = runtime_changed(twin(), {SPEED: 2.0, CORES: 4, PLACEMENT: "round_robin"})
    assert int(load.arrival_ns[-1]) == round(int(twin().load.arrival_ns[-1]) / 2)
    assert (config.cores, config.placement.kind, config.per_device) == (4, "round_robin", 1)
    _, config = runtime_changed(twin(), {GATE: "deadline", SIZE: 8, WAIT: 2 * MS})
    gates = config.batching if isinstance(config.batching, tuple) else (config.batching,)
    assert gates[0] == replace(gates[0], kind="deadline", size=8, wait_ns=2 * MS)


@pytest.mark.parametrize(
    ("changes", "captured"),
    [
        ({}, (8, 32, 96, 128)),
        ({LIMIT: 64}, (8, 32, 64)),
        ({LIMIT: 512}, (8, 32, 96, 128, 256, 512)),
        ({LIMIT: 4}, (4,)),
        ({BUCKETS: "every other"}, (32, 128)),
        ({BUCKETS: "powers of 2"}, (8, 16, 32, 64, 128)),
        ({BUCKETS: "any size", LIMIT: 256}, ()),
    ],
)
def test_sizes_that_have_a_plan(changes: dict[str, Any], captured: tuple[int, ...]) -> None:
    seen = replace(twin(), config=replace(twin().config, lookup=Lookup(captured=(8, 32, 96, 128))))
    assert {LIMIT, BUCKETS} <= {knob.name for knob in runtime_knobs(seen)}
    assert runtime_value(seen, LIMIT) == 128
    _, config = runtime_changed(seen, changes)
    assert isinstance(config.lookup, Lookup)
    assert config.lookup.captured == captured
    assert config.lookup.limit == (256 if changes.get(BUCKETS) == "any size" else None)


def test_steps_of_the_knobs() -> None:
    knobs = {knob.name: knob for knob in runtime_knobs(twin())}
    assert runtime_stepped(knobs[CORES], 1, 1) == 2
    assert runtime_stepped(knobs[CORES], 1, -1) == 1
    assert runtime_stepped(knobs[WAIT], 0, 1) == 10_000
    assert runtime_stepped(knobs[WAIT], 0, -1) == 0
    assert runtime_stepped(knobs[SPEED], 1.0, 1) == 1.25
    assert runtime_stepped(knobs[GATE], "deadline", 1) == "none"
    assert runtime_shown(knobs[WAIT], 2 * MS) == "2.00 ms"
    assert runtime_shown(knobs[WAIT], 0) == "none"
    assert runtime_shown(knobs[PLACEMENT], "round_robin") == "round robin"
    assert "unlimited" not in {runtime_stepped(knobs[PLACEMENT], kind, 1) for kind in ("shared", "stealing")}


def test_a_board_answers_with_the_simulation() -> None:
    board, snapshot = RuntimeBoard(feed_with_requests()), fake_snapshot(0)
    assert board.answer is None
    assert board.knobs == ()
    board.look(snapshot)
    answered(board)
    board.look(snapshot)
    assert not board.worker.busy
    answer = board.answer
    assert answer is not None
    assert answer.today == answer.predicted
    board.turn(CORES, 1)
    board.turn(SPEED, 1)
    answered(board)
    answer = board.answer
    assert answer is not None
    assert answer.today is not None
    assert answer.predicted is not None
    load, config = runtime_changed(twin(), {CORES: 2, SPEED: 1.25})
    latency = np.sort(simulate(load, config).latency_ns)
    assert answer.predicted.latency[2] == latency[395]
    assert (answer.predicted.latency[2] or 0) < (answer.today.latency[2] or 0) / 2
    board.reset(CORES)
    board.reset(SPEED)
    answered(board)
    assert board.changes == {}
    assert board.answer is not None
    assert board.answer.predicted == answer.today


def test_why_there_is_no_twin_is_one_line() -> None:
    board = RuntimeBoard(feed_with_requests())
    board.look(fake_snapshot(0, requests=0))
    answered(board)
    assert board.answer is not None
    assert str(board.answer.twin).startswith("no requests in this window: record rows of kind request")
    feed = feed_with_requests()
    feed.frame = requests().head(3)
    board = RuntimeBoard(feed)
    board.look(fake_snapshot(0))
    answered(board)
    assert board.answer is not None
    assert "\n" not in str(board.answer.twin)
    assert board.twin is None


def test_causes_are_looked_for_when_time_stands_still_or_when_asked() -> None:
    feed = feed_with_requests()
    board = CauseBoard(feed)
    playing = feed.snapshot
    assert playing is not None
    board.look(playing)
    assert not board.busy
    assert board.of(playing) is None
    feed.source.transport.pause()  # type: ignore[union-attr]
    paused = feed.snapshot
    assert paused is not None
    board.look(paused)
    assert board.busy
    answered(board)
    found = board.of(paused)
    assert isinstance(found, Causes)
    assert found.p99.rows[0].name == "queueing"
    board.look(paused)
    assert not board.busy
    later: Snapshot = replace(playing, now_ns=playing.now_ns + 5)
    assert board.of(later) is found
    assert not board.stands_for(later)
    board.look(later, asked=True)
    assert board.busy
    answered(board)
    assert board.stands_for(later)


def test_causes_that_nobody_looks_at_are_given_up_and_looked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    board, snapshot = CauseBoard(feed_with_requests()), fake_snapshot(0)
    monkeypatch.setattr("fusetui.app.causes.UNSEEN_S", -1.0)
    board.look(snapshot, asked=True)
    answered(board)
    assert board.of(snapshot) is None
    monkeypatch.setattr("fusetui.app.causes.UNSEEN_S", 60.0)
    board.look(snapshot, held=True)
    answered(board)
    assert isinstance(board.of(snapshot), Causes)


def test_the_waterfall_ends_at_the_tail() -> None:
    found = fake_snapshot(0).tail_time
    assert found is not None
    for by_part in (True, False):
        steps = waterfall(found, by_part=by_part)
        total = steps[0].high + sum(step.by_ns or 0.0 for step in steps)
        assert total == pytest.approx(found.tail.latency_ns, rel=0.02)
        assert steps[-1].high == found.tail.latency_ns
        for before, after in pairwise(steps[1:-1]):
            assert before.low + max(before.by_ns or 0, 0) == pytest.approx(after.low - min(after.by_ns or 0, 0))
    assert [step.label for step in steps][1:-1] == ["compile plan", "runtime queue", "core placement", "completion"]
    assert steps[2].by_ns == pytest.approx(26.9e6 + 1.6e6 + 0.3e6)


# On the screens


async def settle(pilot: Pilot[Any]) -> None:
    await pilot.pause()
    app = pilot.app
    assert isinstance(app, FusetuiApp)
    for _ in range(3000):
        if not (app.runtime.worker.busy or app.causes.busy or ("board" in app.__dict__ and app.board.planner.busy)):
            break
        await pilot.pause(0.01)
    app.tick(now=True)
    await pilot.pause(0.02)


def pane_of(app: FusetuiApp, kind: type[Pane]) -> Pane:
    assert app.base_screen is not None
    return next(pane for pane in app.base_screen.panes if isinstance(pane, kind))


def inside(pane: Pane) -> list[str]:
    return [pane._canvas.line_text(y) for y in range(pane._canvas.height)]


async def test_what_if_the_runtime_on_the_screen(tmp_path: Path) -> None:
    feed = feed_with_requests()
    app = make_app(feed, tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        assert "runtime" not in app.__dict__ or app.runtime.answer is None
        await pilot.press("8")
        await settle(pilot)
        await settle(pilot)
        knobs = pane_of(app, KnobsPane)
        assert isinstance(knobs, KnobsPane)
        assert any(line.startswith("│ ▸ cores        1 ") for line in inside(knobs))
        knobs.selected = CORES
        await pilot.press("right")
        await settle(pilot)
        answer = app.runtime.answer
        assert answer is not None
        assert app.board.changed == {CORES}
        assert any(line.startswith("│ ◆ cores        2 today 1") for line in inside(knobs))
        lines = inside(pane_of(app, WhatIfRuntimePane))
        assert "n 400" in lines[0]
        p99 = next(line for line in lines if "latency p99" in line)
        assert "−" in p99.split("%")[0][-5:]
        assert any("model fit p50" in line for line in lines)
        await pilot.press("R")
        await settle(pilot)
        assert app.board.changed == frozenset()
        assert len(feed.queries) >= 1


async def test_without_requests_the_runtime_has_no_knobs_and_says_why(tmp_path: Path) -> None:
    app = make_app(FakeFeed(fake_snapshot(0, requests=0), replay=True), tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("8")
        await settle(pilot)
        text = "\n".join(inside(pane_of(app, WhatIfRuntimePane)))
        assert "No twin: no requests in this window" in text
        assert not any("▸" in line for line in inside(pane_of(app, KnobsPane)))


async def test_time_and_cause_side_by_side(tmp_path: Path) -> None:
    feed = feed_with_requests()
    app = make_app(feed, tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("2")
        await settle(pilot)
        pane = pane_of(app, TailDriversPane)
        assert feed.queries == []
        assert any("c: what caused it" in line for line in inside(pane))
        assert "41.6 %" in next(line for line in inside(pane) if line.startswith("│ queue "))
        await pilot.press("c")
        await settle(pilot)
        lines = inside(pane)
        assert lines[0].startswith("╭ Tail drivers · time │ model ")
        assert "│ without it ≈ p99" in lines[1]
        queue = next(line for line in lines if line.startswith("│ queueing ▲"))
        assert "│ ≈10.0 ms" in queue
        assert "41.6 %" in queue
        assert any("model fit p50" in line for line in lines)
        fall = inside(pane_of(app, TailWaterfallPane))
        assert fall[1].rstrip("│ ").endswith("12.0 ms")
        assert any("+26.9 ms" in line for line in fall)


async def test_keys_typed_while_the_screen_is_made_are_not_lost(tmp_path: Path) -> None:
    app = make_app(FakeFeed(fake_snapshot(0, requests=0), replay=True), tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        for key, character in (("8", "8"), ("right", None), ("right", None), ("down", None), ("minus", "-")):
            app.post_message(events.Key(key, character))
        await settle(pilot)
        await settle(pilot)
        assert app.board.changes == {"bandwidth": 1.5, "launch": 0.75}
