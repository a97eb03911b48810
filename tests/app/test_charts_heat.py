"""Heat maps: the right step for a value, blanks for gaps, groups of rows."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fusetui.app.canvas import Canvas
from fusetui.app.charts.heat import bounds, draw_heat, draw_legend, group_rows, levels
from fusetui.app.glyphs import SETS
from fusetui.app.palette import Ink

NAN = np.nan


def test_eight_even_steps() -> None:
    values = np.arange(8) / 8 + 0.01
    np.testing.assert_array_equal(levels(values, 0, 1), range(8))
    np.testing.assert_array_equal(levels([-1, 0, 1, 2, NAN, np.inf], 0, 1), [0, 0, 7, 7, -1, -1])
    np.testing.assert_array_equal(levels([1, 10, 100], 1, 100, log=True), [0, 4, 7])
    np.testing.assert_array_equal(levels([5, 5], 5, 5), [0, 0])


def test_bounds_turn_log_over_two_decades() -> None:
    assert bounds([1.0, 99.0]) == (0.0, 99.0, False)
    assert bounds([1.0, 200.0]) == (1.0, 200.0, True)
    assert bounds([0.0, NAN]) == (0.0, 1.0, False)
    assert bounds([]) == (0.0, 1.0, False)


def test_cells_carry_glyph_and_colour() -> None:
    canvas = Canvas(4, 2)
    draw_heat(canvas, [[0.0, 0.3, NAN, 1.0], [1.0, 1.0, 1.0, 0.6]], 0, 1)
    assert [canvas.line_text(y) for y in range(2)] == ["░▒ █", "███▓"]
    assert canvas.inks[0].tolist() == [Ink.HEAT_1, Ink.HEAT_1 + 2, Ink.FG, Ink.HEAT_1 + 7]


def test_rows_are_grouped_when_there_are_too_many() -> None:
    values = np.array([[1.0, NAN], [3.0, NAN], [5.0, 2.0], [7.0, 4.0]])
    grouped, spans = group_rows(values, 2, "mean")
    assert spans == [(0, 1), (2, 3)]
    np.testing.assert_array_equal(grouped, [[2, NAN], [6, 3]])
    np.testing.assert_array_equal(group_rows(values, 2, "max")[0], [[3, NAN], [7, 4]])
    assert group_rows(values, 9)[1] == [(0, 0), (1, 1), (2, 2), (3, 3)]
    assert group_rows(np.zeros((64, 1)), 12, "max")[1][0] == (0, 7)
    assert group_rows(np.zeros((5, 1)), 0)[1] == []


def test_the_legend_shows_the_whole_ramp() -> None:
    canvas = Canvas(30, 1)
    end = draw_legend(canvas, 0, 0, "0", "9 ms")
    assert canvas.line_text(0).rstrip() == "0 ░░▒▒▓▓██ 9 ms"
    assert end == len("0 ░░▒▒▓▓██ 9 ms")


@given(
    hnp.arrays(np.float64, st.tuples(st.integers(0, 20), st.integers(0, 40)), elements=st.floats()),
    st.integers(0, 300),
    st.integers(0, 40),
    st.sampled_from(sorted(SETS)),
    st.sampled_from(["max", "mean"]),
)
def test_any_values_at_any_size(values: np.ndarray, width: int, height: int, name: str, how: str) -> None:
    canvas = Canvas(width, height, SETS[name])
    with np.errstate(over="ignore", invalid="ignore"):
        low, high, log = bounds(values)
        grouped, spans = group_rows(values, height, how)
        draw_heat(canvas, grouped, low, high, log=log, how=how)
    assert len(spans) <= height
    allowed = set(SETS[name].shades + " ")
    assert all(set(canvas.line_text(y)) <= allowed for y in range(height))
