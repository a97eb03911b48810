"""Cells: clipping, wide characters, runs of ink, and the 7-bit set."""

from __future__ import annotations

import sys

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len, get_character_cell_size

from fusetui.app.canvas import _NARROW, Canvas
from fusetui.app.glyphs import ASCII, BRAILLE, SETS
from fusetui.app.palette import DEFAULT, SELECTED, Ink


def test_text_is_cut_at_the_edges() -> None:
    canvas = Canvas(5, 2)
    assert canvas.put(3, 0, "abcdef") == 5
    assert canvas.put(5, 0, "x") == 5
    assert canvas.put(0, 2, "x") == 0
    assert canvas.put(-1, 0, "x") == -1
    assert canvas.line_text(0) == "   ab"
    assert canvas.put_right(5, 1, "xyz") == 2
    assert canvas.put_right(2, 1, "too long") == 2
    assert canvas.line_text(1) == "  xyz"


def test_wide_characters_take_two_cells_and_are_never_halved() -> None:
    canvas = Canvas(5, 1)
    assert canvas.put(0, 0, "注意力") == 5
    assert canvas.line_text(0) == "注意 "
    strip = canvas.strip(0, DEFAULT.styles)
    assert strip.cell_length == 5
    assert cell_len(strip.text) == 5


def test_writing_over_half_a_wide_character_blanks_the_rest_of_it() -> None:
    canvas = Canvas(6, 1)
    canvas.put(0, 0, "注意力")
    canvas.put(1, 0, "ab")
    assert canvas.line_text(0) == " ab 力"
    canvas.paint(5, 0, "█", 1)
    assert canvas.line_text(0) == " ab  █"


def test_characters_taken_for_one_cell_wide_are() -> None:
    for code in range(0x20, sys.maxunicode):
        char = chr(code)
        if _NARROW.match(char):
            assert get_character_cell_size(char) == 1, hex(code)


def test_a_line_is_runs_of_equal_ink() -> None:
    canvas = Canvas(6, 1)
    canvas.put(0, 0, "ab", Ink.DIM)
    canvas.put(2, 0, "cd", Ink.WARN)
    canvas.view(4, 0, 2, 1).select(0)
    segments = list(canvas.strip(0, DEFAULT.styles))
    assert [segment.text for segment in segments] == ["ab", "cd", "  "]
    assert segments[0].style == DEFAULT.styles[Ink.DIM]
    assert segments[2].style == DEFAULT.styles[Ink.FG + SELECTED]
    assert segments[2].style is not None
    assert segments[2].style.reverse


def test_a_view_draws_on_its_canvas_and_nowhere_else() -> None:
    canvas = Canvas(6, 3)
    part = canvas.view(2, 1, 3, 1)
    part.put(0, 0, "abcdef")
    part.put(0, 1, "below")
    assert [canvas.line_text(y) for y in range(3)] == ["      ", "  abc ", "      "]
    assert canvas.view(9, 9, 4, 4).width == 0


def test_the_ascii_set_is_seven_bit_whatever_comes() -> None:
    canvas = Canvas(40, 1, ASCII)
    canvas.put(0, 0, "µs ≥ — λ … ✗ ▲ 注意 ⣿ é")
    text = canvas.line_text(0)
    assert text.isascii()
    assert text.startswith("us > - L . x ! ?? ? ?")


def test_every_glyph_is_one_cell_and_the_sets_agree_in_size() -> None:
    for glyphs in SETS.values():
        every = glyphs.box + glyphs.columns + glyphs.rows + glyphs.shades + glyphs.dot_chars
        every += glyphs.axis + glyphs.tick + glyphs.rule + glyphs.play + glyphs.first + glyphs.step
        assert all(get_character_cell_size(char) == 1 for char in every)
        assert len(glyphs.columns) == len(glyphs.rows) == 9
        assert len(glyphs.shades) == 8
        assert len(glyphs.box) == 6
        across, down = glyphs.dots
        assert len(glyphs.dot_chars) == 2 ** (across * down)
    assert all(char.isascii() for char in ASCII.box + ASCII.columns + ASCII.rows + ASCII.shades + ASCII.dot_chars)
    assert len(set(BRAILLE.dot_chars)) == 256


@given(st.text(max_size=60), st.integers(0, 30), st.integers(-3, 30), st.sampled_from(sorted(SETS)))
def test_no_text_makes_a_line_longer_or_shorter(text: str, width: int, x: int, name: str) -> None:
    canvas = Canvas(width, 1, SETS[name])
    canvas.put(x, 0, text)
    strip = canvas.strip(0, DEFAULT.styles)
    assert strip.cell_length == width
    assert cell_len(strip.text) == width
    assert not any(char < " " or "\x7f" <= char < "\xa0" for char in strip.text)
