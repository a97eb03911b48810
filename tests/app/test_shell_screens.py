"""Whole screens: every state, every size, hostile strings, and what they look like."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from fake_feed import feed_of, hostile_feed
from fake_plan import fake_planned
from fake_triage import fake_triage
from shell_app import make_app
from textual.geometry import Region
from textual.pilot import Pilot
from textual.widget import Widget

from fusetui.app.app import FusetuiApp
from fusetui.app.glyphs import ASCII, BLOCK, BRAILLE, Glyphs
from fusetui.app.line import Line
from fusetui.app.pacing import SelfCost
from fusetui.app.pane import Pane
from fusetui.app.screens.base import TelemetryScreen
from fusetui.telemetry.text import safe_text

STATES = ("live", "paused", "ended", "nothing", "no data", "one device", "64 devices")
SCREENS = ("overview", "tail", "queue", "cores", "fusion", "mapping", "triage", "whatif")
STORED = Path(__file__).parent / "screens"


@pytest.fixture(autouse=True)
def fixed_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model's numbers change with the model, these screens must not."""
    monkeypatch.setattr("fusetui.app.planner.make_planned", fake_planned)
    monkeypatch.setattr("fusetui.analysis.recover.captured_from", lambda *_: "no input shapes in this capture")
    monkeypatch.setattr("fusetui.analysis.twin.twin_of", lambda *_: "too few requests ended: choose a longer window")


async def settle(pilot: Pilot[Any]) -> None:
    """Let keys, timers, plans and screens come to rest."""
    await pilot.pause()
    await pilot.pause(0.02)
    app = pilot.app
    assert isinstance(app, FusetuiApp)
    while (app.board.asked and app.board.planner.busy) or app.runtime.worker.busy or app.causes.busy or app.triage.busy:
        await pilot.pause(0.02)
    await pilot.pause()


def screen_text(app: FusetuiApp) -> str:
    """What is on the screen."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)


def shown_regions(screen: TelemetryScreen) -> list[tuple[Widget, Region]]:
    """The lines and panes that can be seen, with where they are."""
    seen = [widget for widget in screen.query("*").results(Widget) if isinstance(widget, (Line, Pane))]
    return [(widget, widget.region) for widget in seen if widget.is_on_screen and widget.region.area]


def assert_tidy(app: FusetuiApp) -> None:
    """Everything seen lies on the screen and nothing on anything else."""
    screen = app.base_screen
    assert screen is not None
    whole = Region(0, 0, *app.size)
    places = shown_regions(screen)
    assert places or not whole.area
    for number, (widget, region) in enumerate(places):
        assert whole.contains_region(region), (widget, region, app.size)
        for other, place in places[number + 1 :]:
            assert not region.overlaps(place), (widget, region, other, place)


@pytest.mark.parametrize("state", STATES)
async def test_every_screen_in_every_state(tmp_path: Path, state: str) -> None:
    app = make_app(feed_of(state), tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        for name in SCREENS:
            await app.action_show(name)
            await settle(pilot)
            assert_tidy(app)
            lines = screen_text(app).split("\n")
            assert "bert-burst.arrows" in lines[0]
            assert ("PAUSED" in lines[0]) == (state == "paused")
            assert ("PAUSED" in lines[-2]) == (state == "paused")
            assert ("ended" in lines[0]) == (state == "ended")
            assert ("waiting for data" in lines[0]) == (state == "nothing")
            if state == "no data":
                assert "no executions and no requests in this window" in lines[1]


SIZES = (
    (1, 1), (2, 1), (5, 2), (10, 2), (12, 2), (39, 12), (40, 11), (40, 12), (41, 13), (60, 20), (80, 24), (99, 30),
    (100, 24), (100, 40), (120, 40), (159, 50), (160, 24), (160, 60), (200, 12), (300, 100),
)  # fmt: skip


@pytest.mark.parametrize("state", ["playing", "64 devices"])
async def test_every_screen_at_every_size(tmp_path: Path, state: str) -> None:
    app = make_app(feed_of(state), tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        for number, size in enumerate(SIZES if state == "playing" else SIZES[1::3]):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            await app.action_show(SCREENS[(number + number // 8) % 8])
            await pilot.pause()
            assert app.size == size
            assert_tidy(app)
            if size == (39, 12):
                assert screen_text(app).split("\n")[0] == "needs 40x12, this is 39x12"


async def test_a_drag_of_the_window_moves_panes_only_where_the_arrangement_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved: list[object] = []
    original = TelemetryScreen.rearrange

    def rearrange(screen: TelemetryScreen) -> None:
        before = screen._arrangement
        original(screen)
        if screen._arrangement != before:
            moved.append(screen._arrangement)

    monkeypatch.setattr(TelemetryScreen, "rearrange", rearrange)
    app = make_app(feed_of("nothing"), tmp_path)
    async with app.run_test(size=(90, 40)) as pilot:
        await settle(pilot)
        panes = list(app.screen.query(Pane))
        moved.clear()
        for step in range(1, 41):
            await pilot.resize_terminal(90 + step, 40)
        await settle(pilot)
        assert len(moved) == 1
        assert list(app.screen.query(Pane)) == panes
        assert_tidy(app)


async def test_panes_that_cannot_be_seen_are_not_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Pane] = []
    original = Pane.compose_canvas

    def compose(pane: Pane, canvas: Any) -> None:
        drawn.append(pane)
        original(pane, canvas)

    app = make_app(feed_of("live"), tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await app.action_show("queue")
        await settle(pilot)
        monkeypatch.setattr(Pane, "compose_canvas", compose)
        app.tick(now=True)
        assert drawn
        assert {pane.screen for pane in drawn} == {app.screen}
        assert all(pane.display for pane in drawn)


HOSTILE = (
    "\x1b]0;pwned\x07\x1b[2J", "\x9b31mred", "a\u202eb\u200bc", "[/]", "[@click=app.quit]x[/]", "{0}%s$x",
    "nul\x00del\x7fso\x0e", "e" + "\u0301" * 30, "漢字かな" * 40, "\ud800", "k" * 10_000, "tab\tcr\rbs\x08",
)  # fmt: skip


async def test_hostile_strings_in_every_field_of_every_screen(tmp_path: Path) -> None:
    feed = hostile_feed(HOSTILE[0])
    app = make_app(feed, tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        for number, text in enumerate(HOSTILE):
            hostile = hostile_feed(text)
            feed.base, feed.frame = hostile.base, hostile.frame
            app.source_title = safe_text(text)
            await app.action_show(SCREENS[number % 8])
            await settle(pilot)
            app.tick(now=True)
            await pilot.pause()
            assert_tidy(app)
            assert_printable(screen_text(app))
            await pilot.click(offset=(20 + 3 * number, 5 + number))
            assert not app._exit


@pytest.mark.parametrize("text", [HOSTILE[3], HOSTILE[4], HOSTILE[10]], ids=["tag", "link", "long"])
async def test_hostile_strings_in_the_drill_down(tmp_path: Path, text: str) -> None:
    app = make_app(hostile_feed(text), tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        for _ in range(2):
            await pilot.press("enter")
            await settle(pilot)
            await app.workers.wait_for_complete()
            await settle(pilot)
            assert_printable(screen_text(app))
            await pilot.click(offset=(20, 5))
        assert not app._exit


def assert_printable(text: str) -> None:
    """Nothing in it that a terminal would obey or that would turn text round."""
    bad = {char for char in text if not char.isprintable() and char != "\n"} | (set(text) & set("\u202e\u200b\u009b"))
    assert not bad, bad


GOLDEN_SIZES = ((40, 12), (80, 24), (120, 40), (200, 60))


@pytest.mark.parametrize("glyphs", [BRAILLE, BLOCK, ASCII], ids=lambda glyphs: glyphs.name)
async def test_screens_look_as_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, glyphs: Glyphs) -> None:
    """FUSETUI_UPDATE=1 stores what they look like now: then look at the difference."""
    monkeypatch.setattr(SelfCost, "update", lambda *_: None)
    monkeypatch.setattr("fusetui.triage.judge.triage", fake_triage)
    app = make_app(feed_of("playing"), tmp_path, glyphs=glyphs)
    app.board.changes["bandwidth"] = 2.0
    async with app.run_test(size=GOLDEN_SIZES[0]) as pilot:
        for size in GOLDEN_SIZES:
            await pilot.resize_terminal(*size)
            for name in SCREENS if size == (120, 40) else SCREENS[:1] if glyphs is not BRAILLE else SCREENS:
                await app.action_show(name)
                await settle(pilot)
                app.tick(now=True)
                await settle(pilot)
                text = screen_text(app) + "\n"
                assert glyphs is not ASCII or text.isascii()
                compare(text, STORED / f"{name}-{size[0]}x{size[1]}-{glyphs.name}.txt")


def compare(text: str, path: Path) -> None:
    """Fail with the first line that differs from the stored screen."""
    if os.environ.get("FUSETUI_UPDATE"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return
    stored = path.read_text(encoding="utf-8")
    for number, (now, then) in enumerate(zip(text.split("\n"), stored.split("\n"), strict=False), 1):
        assert now == then, f"{path.name} line {number}"
    assert text == stored
