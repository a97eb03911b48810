"""Line charts: the right dots, gaps that stay gaps, round ticks, labels that do not collide."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fusetui.app.canvas import Canvas
from fusetui.app.charts.axis import Scale, draw_time_axis, draw_value_axis, fit_scale, nice_ceiling
from fusetui.app.charts.line import Limit, Series, draw_lines, rasterise, spread
from fusetui.app.charts.resample import columns, curve
from fusetui.app.glyphs import ASCII, BLOCK, SETS
from fusetui.app.palette import Ink

NAN = np.nan
VALUES = hnp.arrays(np.float64, st.integers(0, 80), elements=st.floats(allow_nan=True, allow_infinity=True))


def lines_of(canvas: Canvas) -> list[str]:
    return [canvas.line_text(y) for y in range(canvas.height)]


def test_columns_take_the_largest_the_mean_or_the_sum() -> None:
    values = [1.0, 5.0, NAN, 2.0, NAN, NAN]
    np.testing.assert_array_equal(columns(values, 3), [5, 2, NAN])
    np.testing.assert_array_equal(columns(values, 3, "mean"), [3, 2, NAN])
    np.testing.assert_array_equal(columns(values, 3, "sum"), [6, 2, NAN])
    np.testing.assert_array_equal(columns([1.0, NAN], 4), [1, 1, NAN, NAN])
    np.testing.assert_array_equal(columns([4.0, 2.0], 4, "sum"), [2, 2, 1, 1])
    np.testing.assert_array_equal(columns([np.inf, 1.0], 2), [NAN, 1])


def test_a_curve_never_bridges_a_gap() -> None:
    line = curve([1.0, 1.0, NAN, 3.0, 3.0], 50)
    assert np.isnan(line[20:30]).all()
    np.testing.assert_array_equal(line[:20], 1.0)
    np.testing.assert_array_equal(line[30:], 3.0)
    rising = curve([0.0, 1.0], 8)
    assert (np.diff(rising) >= 0).all()
    assert rising[0] == 0
    assert rising[-1] == 1


def test_dots_of_a_flat_line_and_of_a_step() -> None:
    np.testing.assert_array_equal(rasterise(np.array([0.0, 0.0]), 4), [[0, 0], [0, 0], [0, 0], [1, 1]])
    np.testing.assert_array_equal(rasterise(np.array([1.0, NAN]), 4), [[1, 0], [0, 0], [0, 0], [0, 0]])
    step = rasterise(np.array([0.0, 1.0]), 5)
    assert step.any(axis=1).all(), "a step is connected from bottom to top"
    thick = rasterise(np.array([0.5, 0.5]), 9, thick=True)
    assert thick.sum() == 4


def test_braille_block_and_ascii_dots_stand_where_the_values_are() -> None:
    flat = Series(np.zeros(4), "", Ink.FG)
    for glyphs, low, high in (
        (SETS["braille"], "⣀⣀", "⠉⠉"),
        (BLOCK, "▄▄", "▀▀"),
        (ASCII, "..", "''"),
    ):
        bottom = Canvas(2, 2, glyphs)
        draw_lines(bottom, [flat], scale=Scale(0, 1))
        assert lines_of(bottom) == ["  ", low]
        top = Canvas(2, 2, glyphs)
        draw_lines(top, [Series(np.ones(4), "", Ink.FG)], scale=Scale(0, 1))
        assert lines_of(top) == [high, "  "]


def test_a_rising_line_rises_dot_by_dot() -> None:
    canvas = Canvas(4, 2)
    draw_lines(canvas, [Series(np.arange(8.0), "", Ink.FG)], scale=Scale(0, 7))
    assert lines_of(canvas) == ["  ⡠⠊", "⡠⠊  "]


def test_the_first_series_is_on_top() -> None:
    canvas = Canvas(3, 1)
    draw_lines(canvas, [Series(np.ones(3), "", Ink.STRONG), Series(np.zeros(3), "", Ink.DIM)], scale=Scale(0, 1))
    assert set(canvas.inks[0].tolist()) == {int(Ink.STRONG)}
    assert lines_of(canvas) == ["⣉⣉⣉"]


@pytest.mark.parametrize(
    ("value", "ceiling"),
    [(0.9, 1), (1, 1), (1.2, 1.5), (58.1, 60), (99, 100), (101, 150), (0, 1), (NAN, 1), (3e-7, 3e-7)],
)
def test_ceilings_are_round(value: float, ceiling: float) -> None:
    assert nice_ceiling(value) == pytest.approx(ceiling)


def test_a_scale_is_linear_from_zero_or_log_over_two_decades() -> None:
    assert fit_scale(np.array([3.0, 58.0, NAN])) == Scale(0, 60)
    log = fit_scale(np.array([0.3, 58.0]))
    assert (log.low, log.high, log.log) == (0.1, 100.0, True)
    assert log.middle() == pytest.approx(10**0.5)
    np.testing.assert_allclose(log.share([0.1, 1, 100, 0]), [0, 1 / 3, 1, 0])
    assert fit_scale(np.array([30.0]), limit=50).high == 50
    assert fit_scale(np.array([3.0]), limit=50).high == 3
    assert fit_scale(np.empty(0)) == Scale(0, 1)


def test_the_value_axis_has_three_ticks_in_units() -> None:
    canvas = Canvas(8, 5)
    draw_value_axis(canvas, Scale(0, 60e6), 1e6, 3)
    assert [line[:4].rstrip() for line in lines_of(canvas)] == ["60┤", "  │", "30┤", "  │", " 0┤"]
    log = Canvas(12, 5)
    draw_value_axis(log, Scale(1, 100, log=True), 1, 4)
    assert lines_of(log)[0].startswith("100┤log")


def test_time_ticks_are_round_utc() -> None:
    canvas = Canvas(50, 1)
    start = 1_700_017_831_200_000_000
    draw_time_axis(canvas, 0, start, start + 10_000_000_000)
    text = canvas.line_text(0)
    assert text.index("03:10:35") == int(3.8 / 10 * 50)
    assert text.index(":40") == int(8.8 / 10 * 50)
    minutes = Canvas(60, 1)
    draw_time_axis(minutes, 0, start, start + 600 * 10**9)
    assert "03:12" in minutes.line_text(0)
    trace = Canvas(40, 1)
    draw_time_axis(trace, 0, 0, 12_300_000, "trace")
    assert trace.line_text(0).split() == ["+0ms", "+5ms", "+10ms"]
    assert trace.line_text(0).index("+10ms") == int(10 / 12.3 * 40)
    fine = Canvas(60, 1)
    draw_time_axis(fine, 0, start + 186_000_000, start + 241_000_000)
    assert fine.line_text(0).split() == ["03:10:31.40", ".42"]
    days = Canvas(60, 1)
    draw_time_axis(days, 0, start, start + 40 * 86_400 * 10**9)
    assert days.line_text(0).split()[0] == "11-19"


def test_the_limit_is_dashed_and_labelled() -> None:
    canvas = Canvas(60, 9)
    draw_lines(canvas, [Series(np.full(10, 90.0), "p99 90", Ink.FG)], limit=Limit(50.0, "SLO 50"))
    text = lines_of(canvas)
    assert "╌" * 40 in text[4]
    assert text[4].rstrip().endswith("SLO 50")
    assert text[1].rstrip().endswith("p99 90")


def test_marks_stand_at_their_time_unless_there_are_too_many() -> None:
    canvas = Canvas(20, 3)
    nothing = [Series(np.empty(0), "", Ink.FG)]
    draw_lines(canvas, nothing, time=(0, 100, "trace"), marks=[50, -1, 100])
    assert lines_of(canvas) == [" " * 10 + "┊" + " " * 9] * 3
    crowd = Canvas(20, 3)
    draw_lines(crowd, nothing, time=(0, 100, "trace"), marks=list(range(100)))
    assert lines_of(crowd) == [" " * 20] * 3


def test_labels_are_pushed_apart_and_stay_inside() -> None:
    assert spread([3, 3, 3], 6) == [3, 4, 5]
    assert spread([5, 5, 5], 6) == [3, 4, 5]
    assert spread([0, 4], 6) == [0, 4]
    assert spread([1, 1, 1], 2) == [0, 1]


@given(st.lists(st.floats(0, 40), max_size=8), st.integers(1, 30))
def test_spread_labels_are_distinct_and_ordered(rows: list[float], height: int) -> None:
    placed = spread(sorted(rows), height)
    assert placed == sorted(set(placed))
    assert all(0 <= row < height for row in placed)


@given(VALUES, st.integers(0, 300), st.integers(0, 60), st.sampled_from(sorted(SETS)), st.booleans())
def test_any_values_at_any_size(values: np.ndarray, width: int, height: int, name: str, thick: bool) -> None:
    canvas = Canvas(width, height, SETS[name])
    series = [Series(values, "p99  58.1", Ink.STRONG, thick=thick), Series(values[::-1], "p50", Ink.DIM)]
    draw_lines(canvas, series, unit=1e6, limit=Limit(5e7, "SLO 50"), time=(-(2**63), 2**63 - 1, "epoch"))
    if name == "ascii":
        assert all(line.isascii() for line in lines_of(canvas))
    assert all(len(line) == width for line in lines_of(canvas))
