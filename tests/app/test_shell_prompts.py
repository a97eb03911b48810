"""What keys ask for on the bottom line: a place, a label, a filter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fake_feed import END, SECOND, START, FakeFeed, feed_of
from fake_snapshot import T0
from shell_app import make_app
from textual.pilot import Pilot

from fusetui.app.app import FusetuiApp
from fusetui.app.bookmarks import Bookmark
from fusetui.app.screens.prompt import Prompt

SIZE = (120, 40)


async def settle(pilot: Pilot[Any]) -> None:
    """Let keys, timers and screens come to rest."""
    await pilot.pause()
    await pilot.pause(0.02)


def screen_text(app: FusetuiApp) -> str:
    """What is on the screen."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)


def calls(feed: FakeFeed) -> list[tuple[Any, ...]]:
    assert feed.source.transport is not None
    return feed.source.transport.calls


async def test_g_goes_to_a_time_an_offset_or_a_share(tmp_path: Path) -> None:
    feed = feed_of("playing")
    app = make_app(feed, tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        for typed, place in (
            ("-10s", T0 - 10 * SECOND),
            ("25%", START + (END - START) // 4),
            ("03:10:12.5", T0 - 28_700_000_000),
        ):
            await pilot.press("g")
            await settle(pilot)
            await pilot.press(*typed, "enter")
            await settle(pilot)
            assert calls(feed)[-1] == ("seek", place)
            assert not isinstance(app.screen, Prompt)


async def test_g_explains_what_is_no_time_and_stays(tmp_path: Path) -> None:
    feed = feed_of("playing")
    app = make_app(feed, tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await pilot.press("g")
        await settle(pilot)
        await pilot.press(*"[/x", "enter")
        await settle(pilot)
        assert isinstance(app.screen, Prompt)
        assert "is not a time" in screen_text(app)
        await pilot.press("escape")
        await settle(pilot)
        assert calls(feed) == []
        assert not isinstance(app.screen, Prompt)


async def test_b_marks_and_n_comes_back(tmp_path: Path) -> None:
    feed = feed_of("playing")
    app = make_app(feed, tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("3")
        await settle(pilot)
        await pilot.press("b")
        await settle(pilot)
        await pilot.press(*"spike", "enter")
        await settle(pilot)
        base = feed.base
        assert base is not None
        mark = Bookmark(base.window_start_ns, base.now_ns, "spike", "", "queue")
        assert app.session.bookmarks.all == (mark,)
        await pilot.press("1")
        await settle(pilot)
        await pilot.press("n")
        await settle(pilot)
        assert calls(feed)[-1] == ("seek", mark.t1_ns)
        assert app.current_mode == "queue"
        assert "⚑1" in screen_text(app)
        assert app.session.transport is not None
        app.session.transport.seek_ns(mark.t1_ns + SECOND)
        await pilot.press("N")
        assert calls(feed)[-1] == ("seek", mark.t1_ns)


async def test_a_filter_that_is_wrong_shows_the_caret_and_keeps_the_old_one(tmp_path: Path) -> None:
    feed = feed_of("live")
    app = make_app(feed, tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await pilot.press("slash")
        await settle(pilot)
        await pilot.press(*"core", "enter")
        await settle(pilot)
        assert feed.filter_text == "core"
        await pilot.press("slash")
        await settle(pilot)
        await pilot.press(*["backspace"] * 4, *"bad", "enter")
        await settle(pilot)
        shown_lines = [line.strip() for line in screen_text(app).split("\n")]
        assert shown_lines[-3:-1] == ["bad", "^"]
        assert feed.filter_text == "core"
        await pilot.press("escape", "escape")
        await settle(pilot)
        assert feed.filter_text == ""


async def test_ctrl_q_leaves_from_a_prompt_too(tmp_path: Path) -> None:
    app = make_app(feed_of("live"), tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await pilot.press("slash")
        await settle(pilot)
        await pilot.press("ctrl+q")
        await pilot.pause()
        assert app._exit
