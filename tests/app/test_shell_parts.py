"""The shell's parts without a screen: pacing, layout, themes, keymap, bookmarks."""

from __future__ import annotations

import stat
from pathlib import Path

import numpy as np
import pytest
from fake_feed import feed_of
from hypothesis import given
from hypothesis import strategies as st
from textual.color import Color

from fusetui import data as data_module
from fusetui.app.actions import ACTIONS
from fusetui.app.bookmarks import Bookmark, Bookmarks
from fusetui.app.glyphs import ASCII, BLOCK, BRAILLE
from fusetui.app.keymap import apply_keymap, load_keymap
from fusetui.app.layout import arrange
from fusetui.app.pacing import Pacer, SelfCost
from fusetui.app.run import choose_glyphs, choose_theme
from fusetui.app.session import Session
from fusetui.app.themes import FALLBACKS, load_themes

# Pacing


def test_a_terminal_that_keeps_up_gets_every_frame() -> None:
    pacer = Pacer(4.0)
    assert sum(pacer.due(1, tick * 0.25) for tick in range(40)) == 40
    assert pacer.skipped == 0


def test_three_skips_in_a_row_halve_the_rate_and_ten_quiet_seconds_restore_it() -> None:
    pacer = Pacer(4.0)
    assert not any(pacer.due(2, tick * 0.25) for tick in range(3))
    assert (pacer.skipped, pacer.hz) == (3, 2.0)
    painted = sum(pacer.due(0, 0.75 + tick * 0.25) for tick in range(36))
    assert painted == 18
    assert pacer.due(0, 10.75)
    assert pacer.hz == 4.0


def test_the_rate_never_falls_to_nothing() -> None:
    pacer = Pacer(2.0)
    for tick in range(1000):
        pacer.due(30, tick * 0.5)
    assert pacer.hz == 0.5


def test_own_cost_is_a_share_of_a_core_and_bytes_a_second() -> None:
    cost = SelfCost()
    cost.update(10.0, 1.0, 1000)
    cost.update(11.0, 1.5, 9000)
    assert cost.cpu is None
    cost.update(14.0, 1.2, 41_000)
    assert cost.cpu == pytest.approx(0.05)
    assert cost.bytes_per_s == pytest.approx(10_000)


# Layout


@given(st.integers(0, 400), st.integers(0, 150), st.integers(1, 12), st.booleans())
def test_every_arrangement_fills_whole_rows_with_the_first_panes(
    width: int, height: int, count: int, lead: bool
) -> None:
    grid = arrange(width, height, count, lead=lead)
    assert grid.fits == (width >= 40 and height >= 12)
    if grid.fits:
        assert 1 <= len(grid.spans) <= count
        assert sum(grid.spans) == grid.rows * grid.columns
        assert all(1 <= span <= grid.columns for span in grid.spans)
        assert grid.rows * 5 <= height - 4 - grid.strip_lines


@pytest.mark.parametrize(
    ("size", "columns", "shown", "strip"),
    [((80, 24), 1, 3, 1), ((120, 40), 2, 6, 4), ((200, 60), 3, 9, 4), ((40, 12), 1, 1, 1), ((99, 60), 1, 6, 1)],
)
def test_wide_screens_have_three_columns_normal_two_narrow_one(
    size: tuple[int, int], columns: int, shown: int, strip: int
) -> None:
    grid = arrange(*size, 9)
    assert (grid.columns, len(grid.spans), grid.strip_lines) == (columns, shown, strip)


# Themes


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    channels = [value / 255 for value in Color.parse(colour).rgb]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """WCAG 2 contrast ratio, 1 to 21."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_the_five_themes_are_there_and_whole() -> None:
    themes = load_themes()
    assert set(themes.usable) >= {"dark", "light", "high-contrast", "colour-blind", "ansi16"}
    for theme in themes.usable.values():
        assert set(FALLBACKS) <= set(theme.variables)


@pytest.mark.parametrize("name", ["dark", "light", "high-contrast", "colour-blind"])
def test_text_can_be_read_on_every_ground_of_a_theme(name: str) -> None:
    theme = load_themes().usable[name]
    assert theme.foreground
    assert theme.background
    for ground in (theme.background, theme.surface, theme.panel):
        assert ground
        assert contrast(theme.foreground, ground) >= 4.5
        for ink in ("ok", "warn", "breach", "accent"):
            assert contrast(theme.variables[f"fusetui-{ink}"], ground) >= 4.5, (ink, ground)
        assert contrast(theme.variables["fusetui-dim"], ground) >= 3
    for number in range(1, 9):
        assert contrast(theme.variables[f"fusetui-stream-{number}"], theme.background) >= 3, number
    if name == "high-contrast":
        assert contrast(theme.variables["fusetui-dim"], theme.background) >= 7


@pytest.mark.parametrize("name", ["dark", "light", "high-contrast", "colour-blind"])
def test_heat_goes_in_even_steps_away_from_the_ground(name: str) -> None:
    theme = load_themes().usable[name]
    ramp = [theme.variables[f"fusetui-heat-{step}"] for step in range(1, 9)]
    lightness = np.array([116 * luminance(colour) ** (1 / 3) - 16 for colour in ramp])
    steps = np.diff(lightness) * (1 if theme.dark else -1)
    assert (steps > 0).all()
    assert steps.max() / steps.min() < 2


def test_the_sixteen_colour_theme_uses_nothing_but_ansi_colours() -> None:
    theme = load_themes().usable["ansi16"]
    ours = [value for key, value in theme.variables.items() if key.startswith("fusetui-")]
    assert all(value.startswith("ansi_") for value in [theme.primary, theme.accent or "", *ours])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("primary = '#zzz'", "primary is not a colour"),
        ("primary = 'red'\ncolour = 'blue'", "unknown key colour"),
        ("primary = 'red'\n[variables]\nfoo = 'red'", "unknown variable foo"),
        ("accent = 'red'", "primary is missing"),
        ("primary = 'red'\ndark = 'no'", "true or false"),
        ("primary = [", "not TOML"),
        ("primary = 'red'\nname = 3", "name is not a text"),
    ],
)
def test_a_bad_theme_is_named_and_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, problem: str
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    folder = tmp_path / "fusetui" / "themes"
    folder.mkdir(parents=True)
    (folder / "mine.toml").write_text(text)
    themes = load_themes()
    assert "mine" not in themes.usable
    assert len(themes.problems) == 1
    assert themes.problems[0].startswith("mine.toml: ")
    assert problem in themes.problems[0]


def test_a_users_theme_is_completed_from_its_own_colours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    folder = tmp_path / "fusetui" / "themes"
    folder.mkdir(parents=True)
    (folder / "mine.toml").write_text("primary = '#123456'\nerror = '#ff0000'\ndark = false\n")
    theme = load_themes().usable["mine"]
    assert theme.variables["fusetui-breach"] == "#ff0000"
    assert theme.variables["fusetui-accent"] == "#123456"
    assert theme.variables["fusetui-heat-1"] == load_themes().usable["light"].variables["fusetui-heat-1"]


def test_without_a_checkout_themes_come_from_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_module, "__file__", str(tmp_path / "site" / "fusetui" / "data.py"))
    assert data_module.data_dir("themes").parts[-3:] == ("fusetui", "_data", "themes")


def test_glyphs_and_theme_suit_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fusetui.app.terminal.draws_unicode", lambda: True)
    assert choose_glyphs(None, {}) is BRAILLE
    assert choose_glyphs(None, {"TERM": "linux"}) is BLOCK
    assert choose_glyphs("ascii", {}) is ASCII
    monkeypatch.setattr("fusetui.app.terminal.draws_unicode", lambda: False)
    assert choose_glyphs(None, {}) is ASCII
    themes = load_themes()
    assert choose_theme(None, themes, {"TERM": "xterm-256color"}) == ("dark", ())
    assert choose_theme(None, themes, {"TERM": "linux"}) == ("ansi16", ())
    name, complaint = choose_theme("\x1b[2J", themes, {})
    assert name == "dark"
    assert "\x1b" not in complaint[0]


# Keymap


def test_a_key_can_be_changed_and_swapped() -> None:
    actions, problems = apply_keymap({"view.pause": "e", "pane.zoom": "y", "pane.copy": ["z", "ctrl+y"]}, ACTIONS)
    keys = {action.id: action.keys for action in actions}
    assert problems == []
    assert keys["view.pause"] == ("e",)
    assert (keys["pane.zoom"], keys["pane.copy"]) == (("y",), ("z", "ctrl+y"))


def test_signs_get_their_textual_names() -> None:
    actions, problems = apply_keymap({"view.pause": "!", "view.go": ","}, ACTIONS)
    keys = {action.id: action.keys for action in actions}
    assert keys["view.pause"] == ("exclamation_mark",)
    assert problems == ["keys.toml: view.go keeps its keys, , is view.back"]


@pytest.mark.parametrize(
    ("wanted", "problem"),
    [
        ({"view.pause": "q"}, "view.pause keeps its keys, q is app.quit"),
        ({"view.pause": "h"}, "view.pause keeps its keys, h is app.help"),
        ({"app.quit": []}, "app.quit needs a key"),
        ({"app.help": ""}, "app.help needs a key"),
        ({"view.pause": "z"}, "view.pause keeps its keys, z is pane.zoom"),
        ({"view.pause": 7}, "view.pause is not a key or a list of keys"),
        ({"view.nothing": "x"}, "no action view.nothing"),
        ({"view.pause": "j"}, "view.pause keeps its keys, j is pane.down"),
    ],
)
def test_a_keymap_that_would_lock_someone_out_is_refused(wanted: dict[str, object], problem: str) -> None:
    actions, problems = apply_keymap(wanted, ACTIONS)
    assert problems == [f"keys.toml: {problem}"]
    assert actions == ACTIONS


@given(
    st.dictionaries(
        st.sampled_from([action.id for action in ACTIONS]),
        st.one_of(st.sampled_from(list("qhzy,/ ?")), st.lists(st.sampled_from(["q", "h", "x", "f1", ""]), max_size=3)),
    )
)
def test_whatever_the_keymap_no_key_has_two_meanings_and_quit_and_help_stay(wanted: dict[str, object]) -> None:
    actions, _ = apply_keymap(wanted, ACTIONS)
    keys = [key for action in actions for key in action.keys]
    assert len(keys) == len(set(keys))
    assert all(action.keys for action in actions if action.id in ("app.quit", "app.help"))


def test_a_keymap_file_may_use_tables_and_a_broken_one_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    assert load_keymap(path, ACTIONS) == (ACTIONS, [])
    path.write_text('[view]\npause = "e"\n')
    actions, problems = load_keymap(path, ACTIONS)
    assert problems == []
    assert next(action.keys for action in actions if action.id == "view.pause") == ("e",)
    path.write_text("[view")
    actions, problems = load_keymap(path, ACTIONS)
    assert actions == ACTIONS
    assert problems[0].startswith("keys.toml: not TOML")


# Bookmarks


def test_bookmarks_come_back_in_time_order_and_only_the_owner_reads_them(tmp_path: Path) -> None:
    marks = Bookmarks("../trace: x.arrows", tmp_path)
    late, early = Bookmark(50, 60, "late", "core == 3", "queue"), Bookmark(10, 20, "früh \x1b[2J")
    marks.add(late)
    marks.add(early)
    again = Bookmarks("../trace: x.arrows", tmp_path)
    assert [mark.t0_ns for mark in again.all] == [10, 50]
    assert again.all[1] == late
    assert "\x1b" not in again.all[0].label
    assert again.path.parent == tmp_path
    assert stat.S_IMODE(again.path.stat().st_mode) == 0o600


def test_a_broken_line_is_counted_left_alone_and_swallows_nothing(tmp_path: Path) -> None:
    path = tmp_path / "k.jsonl"
    whole = '{"t0_ns": 1, "t1_ns": 2, "label": "a"}'
    torn = '{"t0_ns": 5, "t1'
    path.write_text(f'{whole}\n[]\n\xff\n{{"t0_ns": 1e400}}\n{torn}', encoding="latin-1")
    marks = Bookmarks("k", tmp_path)
    assert [mark.label for mark in marks.all] == ["a"]
    assert marks.broken == 4
    marks.add(Bookmark(7, 8, "b"))
    assert [mark.label for mark in Bookmarks("k", tmp_path).all] == ["a", "b"]
    assert torn in path.read_text(encoding="latin-1")


def test_a_bookmark_file_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "victim"
    target.write_text("")
    (tmp_path / "k.jsonl").symlink_to(target)
    session = Session(feed_of("live"), Bookmarks("k", tmp_path))
    assert session.add_bookmark("x", "tail").startswith("bookmark kept for this session only")
    assert target.read_text() == ""
    assert len(session.bookmarks.all) == 1


def test_beside_finds_neighbours(tmp_path: Path) -> None:
    marks = Bookmarks("k", tmp_path)
    for end in (10, 20, 30):
        marks.add(Bookmark(0, end))
    assert [mark.t1_ns for mark in (marks.beside(20, 1), marks.beside(20, -1), marks.beside(5, 1)) if mark] == [
        30,
        10,
        10,
    ]
    assert marks.beside(30, 1) is None
