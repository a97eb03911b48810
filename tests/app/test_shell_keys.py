"""Every key does what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fake_feed import SECOND, FakeFeed, feed_of
from fake_snapshot import T0
from shell_app import make_app
from textual.pilot import Pilot

from fusetui.app.actions import ACTIONS, bindings, hints, shown
from fusetui.app.app import FusetuiApp
from fusetui.app.keymap import apply_keymap
from fusetui.app.palette import Ink
from fusetui.app.pane import Pane
from fusetui.app.panes.queue_streams import QueueStreamsPane
from fusetui.app.screens.execution import ExecutionScreen
from fusetui.app.screens.help import HelpScreen
from fusetui.app.screens.rows import RowsScreen
from fusetui.app.session import NOT_HERE
from fusetui.app.titlebar import TitleBar

SIZE = (120, 40)


async def settle(pilot: Pilot[Any]) -> None:
    """Let keys, timers and screens come to rest."""
    await pilot.pause()
    await pilot.pause(0.02)


def screen_text(app: FusetuiApp) -> str:
    """What is on the screen."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)


def focus_first(app: FusetuiApp) -> None:
    """The focus to the first pane, away from the findings."""
    screen = app.base_screen
    assert screen is not None
    screen.set_focus(screen.panes[0])


def calls(feed: FakeFeed) -> list[tuple[Any, ...]]:
    assert feed.source.transport is not None
    return feed.source.transport.calls


async def test_the_digits_show_the_screens(tmp_path: Path) -> None:
    app = make_app(feed_of("live"), tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        for key, name, word in (
            ("2", "tail", "distribution"),
            ("3", "queue", "Queue depth"),
            ("4", "cores", "λ"),
            ("1", "overview", "Launch"),
        ):
            await pilot.press(key)
            await settle(pilot)
            assert app.current_mode == name
            assert word in screen_text(app)


async def test_space_pauses_a_replay_and_says_so_in_the_title_and_the_scrubber(tmp_path: Path) -> None:
    feed = feed_of("playing")
    app = make_app(feed, tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        assert "PAUSED" not in screen_text(app)
        await pilot.press("space")
        await settle(pilot)
        assert calls(feed) == [("toggle",)]
        lines = screen_text(app).split("\n")
        assert "PAUSED" in lines[0]
        assert "PAUSED" in lines[-2]
        title = app.screen.query_one(TitleBar)._canvas
        at = title.line_text(0).index("PAUSED")
        assert (title.inks[0, at : at + 6] == Ink.ACCENT).all()


async def test_space_holds_a_live_view_while_the_source_goes_on(tmp_path: Path) -> None:
    feed = feed_of("live")
    app = make_app(feed, tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await pilot.press("space")
        held = app.session.held
        assert held is not None
        feed.base = feed_of("one device").base
        await settle(pilot)
        assert app.session.snapshot is held
        assert "PAUSED (source goes on)" in screen_text(app).split("\n")[0]
        assert "stale" not in screen_text(app)
        await pilot.press("space")
        assert app.session.held is None


async def test_replay_keys_reach_the_transport(tmp_path: Path) -> None:
    feed = feed_of("playing")
    app = make_app(feed, tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await pilot.press("less_than_sign", "greater_than_sign", "greater_than_sign", "l", "comma", "full_stop", "l")
        column = 10 * SECOND // 60
        expected = [("speed", 0.5), ("speed", 1.0), ("speed", 2.0), ("loop", True), ("step", -column), ("step", column)]
        assert calls(feed) == [*expected, ("loop", False)]


async def test_the_speed_ladder_ends_at_a_tenth_and_at_a_thousand(tmp_path: Path) -> None:
    app = make_app(feed_of("playing"), tmp_path)
    for _ in range(20):
        app.session.speed(1)
    assert app.session.transport is not None
    assert app.session.transport.state().speed == 1000
    for _ in range(20):
        app.session.speed(-1)
    assert app.session.transport.state().speed == 0.1


async def test_window_keys_change_the_window(tmp_path: Path) -> None:
    feed = feed_of("live")
    app = make_app(feed, tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await pilot.press("left_square_bracket")
        assert feed.window_ns == 5 * SECOND
        await pilot.press("right_square_bracket", "right_square_bracket")
        assert feed.window_ns == 20 * SECOND


async def test_a_live_source_says_that_it_cannot_be_moved_in(tmp_path: Path) -> None:
    app = make_app(feed_of("live"), tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await pilot.press("comma")
        await settle(pilot)
        assert [notice.message for notice in app._notifications] == [NOT_HERE]


async def test_z_zooms_the_focused_pane_and_esc_takes_it_back(tmp_path: Path) -> None:
    app = make_app(feed_of("live"), tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        focus_first(app)
        await pilot.press("tab", "z")
        await settle(pilot)
        shown_panes = [pane for pane in app.screen.query("#body Pane").results(Pane) if pane.display]
        assert [type(pane) for pane in shown_panes] == [QueueStreamsPane]
        assert shown_panes[0].size.width == 120
        await pilot.press("escape")
        await settle(pilot)
        assert len([pane for pane in app.screen.query("#body Pane") if pane.display]) == 6


async def test_y_copies_the_pane_as_text(tmp_path: Path) -> None:
    app = make_app(feed_of("live"), tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        focus_first(app)
        await pilot.press("y")
        assert app.clipboard.startswith("Tail latency")
        assert "p99" in app.clipboard


async def test_question_mark_explains_the_focused_pane_and_h_lists_the_keys(tmp_path: Path) -> None:
    app = make_app(feed_of("live"), tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await pilot.press("question_mark")
        await settle(pilot)
        assert isinstance(app.screen, HelpScreen)
        assert "Blind to" in screen_text(app)
        await pilot.press("escape")
        await settle(pilot)
        await pilot.press("h")
        await settle(pilot)
        assert isinstance(app.screen, HelpScreen)
        for action in ACTIONS:
            assert action.help in app.screen.body_text


async def test_enter_opens_the_rows_and_enter_again_the_timeline(tmp_path: Path) -> None:
    feed = feed_of("live")
    app = make_app(feed, tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        focus_first(app)
        await pilot.press("enter")
        await settle(pilot)
        assert isinstance(app.screen, RowsScreen)
        await app.workers.wait_for_complete()
        await settle(pilot)
        assert "gemm_3" in screen_text(app)
        await pilot.press("down", "down", "enter")
        await settle(pilot)
        assert isinstance(app.screen, ExecutionScreen)
        assert app.screen.row["name"] == "gemm_2"
        await app.workers.wait_for_complete()
        assert feed.queries[-1].from_ns == T0 + 2000 - 400
        assert feed.queries[-1].to_ns == T0 + 2000 + 5600 - 2 + 1
        assert {row["request"] for row in app.screen.timeline.related} == {7}
        await pilot.click("Footer", offset=(2, 0))
        await settle(pilot)
        assert isinstance(app.screen, RowsScreen)
        await pilot.press("enter")
        await settle(pilot)
        await pilot.press("escape", "escape")
        await settle(pilot)
        assert app.screen is app.base_screen


async def test_t_and_g_change_theme_and_glyphs(tmp_path: Path) -> None:
    app = make_app(feed_of("live"), tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        seen = []
        for _ in app.look.themes:
            await pilot.press("t")
            await settle(pilot)
            seen.append(app.theme)
        assert sorted(seen) == sorted(app.look.themes)
        await pilot.press("G", "G")
        await settle(pilot)
        assert app.glyphs.name == "ascii"
        app.clear_notifications()
        await settle(pilot)
        assert screen_text(app).isascii()


async def test_tab_goes_round_the_panes_and_the_strip_opens_screens(tmp_path: Path) -> None:
    app = make_app(feed_of("live"), tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        focus_first(app)
        await pilot.press("shift+tab")
        assert app.base_screen is not None
        assert app.focused is app.base_screen.strip
        await pilot.press("right", "enter")
        await settle(pilot)
        assert app.current_mode == "queue"


async def test_a_click_in_the_scrubber_goes_there(tmp_path: Path) -> None:
    feed = feed_of("playing")
    app = make_app(feed, tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await pilot.click("Scrubber", offset=(60, 0))
        await settle(pilot)
        name, fraction = calls(feed)[-1]
        assert name == "fraction"
        assert 0.4 < fraction < 0.6


async def test_a_click_in_the_footer_does_what_the_key_does(tmp_path: Path) -> None:
    app = make_app(feed_of("live"), tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        footer = screen_text(app).split("\n")[-1]
        await pilot.click("Footer", offset=(footer.index("Queue"), 0))
        await settle(pilot)
        assert app.current_mode == "queue"


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
async def test_quit_leaves_with_status_0(tmp_path: Path, key: str) -> None:
    app = make_app(feed_of("live"), tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press(key)
    assert app.return_code == 0


async def test_swapped_keys_do_each_others_work(tmp_path: Path) -> None:
    actions, problems = apply_keymap({"pane.zoom": "y", "pane.copy": "z", "app.quit": "x"}, ACTIONS)
    assert problems == []
    app = make_app(feed_of("live"), tmp_path, actions=actions)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        focus_first(app)
        await pilot.press("y")
        await settle(pilot)
        assert app.base_screen is not None
        assert app.base_screen.zoomed is not None
        assert app.clipboard == ""
        await pilot.press("z")
        assert app.clipboard.startswith("Tail latency")
        assert "x quit" in screen_text(app)
        await pilot.press("q")
        await settle(pilot)
        assert not app._exit
        await pilot.press("x")
    assert app.return_code == 0


async def test_the_palette_finds_every_action(tmp_path: Path) -> None:
    app = make_app(feed_of("live"), tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        found = {command.title for command in app.get_system_commands(app.screen)}
        assert found == {action.help for action in ACTIONS if action.id != "app.commands"}
        await pilot.press("ctrl+p")
        await settle(pilot)
        assert type(app.screen).__name__ == "CommandPalette"


def test_no_key_is_bound_twice_and_every_action_exists() -> None:
    keys = [key for action in ACTIONS for key in action.keys]
    assert len(keys) == len(set(keys))
    assert len({action.id for action in ACTIONS}) == len(ACTIONS)
    for action in ACTIONS:
        assert callable(getattr(FusetuiApp, f"action_{action.call.partition('(')[0]}", None)), action.call
    assert len(bindings(ACTIONS)) == len(ACTIONS)


def test_footer_joins_pairs_and_leaves_out_what_does_not_work_here() -> None:
    live = {hint: keys for keys, hint, _ in hints(ACTIONS, frozenset({"always", "pane"}))}
    replay = {hint: keys for keys, hint, _ in hints(ACTIONS, frozenset({"always", "pane", "replay"}))}
    assert replay["step"] == ",."
    assert replay["speed"] == "<>"
    assert "step" not in live
    assert live["pause"] == shown("space")
