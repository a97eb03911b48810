"""Bars, sparklines, histograms, tables and facts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fusetui.app.canvas import Canvas
from fusetui.app.charts.bars import Bar, bar_text, draw_bars
from fusetui.app.charts.facts import Fact, draw_facts
from fusetui.app.charts.histogram import QuantileMark, draw_histogram, regrid, span_of
from fusetui.app.charts.spark import draw_spark, spark_text
from fusetui.app.charts.table import Column, draw_header, draw_row, layout
from fusetui.app.glyphs import BRAILLE, SETS
from fusetui.app.palette import Ink

NAN = math.nan


def lines_of(canvas: Canvas) -> list[str]:
    return [canvas.line_text(y) for y in range(canvas.height)]


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0, "    "),
        (0.5, "██  "),
        (1, "████"),
        (2, "████"),
        (5 / 32, "▋   "),
        (1e-9, "▏   "),
        (NAN, "    "),
        (-1, "    "),
    ],
)
def test_bars_are_proportional_to_an_eighth(share: float, text: str) -> None:
    assert bar_text(share, 4, BRAILLE.rows) == text


def test_bars_keep_their_columns() -> None:
    canvas = Canvas(24, 2)
    draw_bars(canvas, [Bar("queueing", 1.0, "41 %"), Bar("x", 0.5, "7 %")], label_cells=8, text_cells=5)
    assert lines_of(canvas) == ["queueing █████████ 41 % ", "x        ████▌     7 %  "]


def test_sparks_start_above_nothing() -> None:
    assert spark_text([0, 1, 2, NAN, 8], 5, BRAILLE.columns) == "▁▁▂ █"
    assert spark_text([NAN, NAN], 3, BRAILLE.columns) == "   "
    assert spark_text([0.0, 0.0], 2, BRAILLE.columns) == "▁▁"
    assert spark_text([1, 2], 2, BRAILLE.columns, high=4) == "▂▄"
    canvas = Canvas(4, 1)
    draw_spark(canvas, 1, 0, 3, [1, 2, 4], Ink.DIM)
    assert canvas.line_text(0) == " ▂▄▇"


def test_a_histogram_loses_no_count() -> None:
    edges = np.array([0.0, 1.0, 10.0, 100.0, 1000.0])
    counts = np.array([7, 10, 20, 30])
    per_column = regrid(edges, counts, 30, 10.0, 100.0)
    assert per_column.sum() == pytest.approx(67)
    assert per_column[0] == pytest.approx(17 + 20 / 30)
    np.testing.assert_allclose(per_column[1:-1], 20 / 30)
    assert regrid(edges, counts, 0, 1, 10).shape == (0,)


def test_histogram_marks_stand_at_their_values() -> None:
    edges = 10.0 ** np.arange(3, 8)
    counts = np.array([5, 10, 5, 1])
    marks = [QuantileMark(1e5, "p50", Ink.DIM), QuantileMark(5e6, "p99", Ink.STRONG)]
    low, high = span_of(edges, counts, marks)
    canvas = Canvas(60, 8)
    draw_histogram(canvas, edges, counts, marks)
    at = int(math.log(5e6 / low) / math.log(high / low) * 60)
    assert canvas.line_text(0).index("p99") == at
    assert canvas.line_text(1)[at] == "│"
    assert canvas.inks[1, at] == Ink.STRONG
    assert "100µs" in canvas.line_text(7)
    fullest = int(math.log(3e4 / low) / math.log(high / low) * 60)
    assert canvas.line_text(1)[fullest] == "█"


def test_tables_drop_the_least_important_column_first() -> None:
    columns = (Column("name", 6, grow=True), Column("p99", 7, right=True), Column("shape", 9, priority=2))
    assert layout(columns, 30) == [(0, 0, 10), (1, 12, 7), (2, 21, 9)]
    assert layout(columns, 20) == [(0, 0, 11), (1, 13, 7)]
    assert layout(columns, 3) == [(0, 0, 3)]
    canvas = Canvas(20, 2)
    places = layout(columns, 20)
    draw_header(canvas, 0, columns, places, sorted_by=1)
    draw_row(canvas, 1, columns, places, ("aten::matmul_kernel", "9.99 ms", "x"))
    assert lines_of(canvas) == ["name             p99", "aten::matm…  9.99 ms"]
    assert canvas.inks[0, 18] == Ink.ACCENT


def test_facts_flow_into_columns() -> None:
    facts = [Fact("rows", "1.20M"), Fact("lag", "100 ms"), Fact("dropped", "0"), Fact("bad", "3", Ink.WARN)]
    canvas = Canvas(40, 3)
    assert draw_facts(canvas, facts, value_cells=6) == 2
    assert lines_of(canvas)[:2] == [
        "rows     1.20M       dropped      0     ",
        "lag     100 ms       bad          3     ",
    ]
    narrow = Canvas(16, 2)
    assert draw_facts(narrow, facts, value_cells=6) == 2


@given(
    hnp.arrays(np.int64, st.integers(0, 60), elements=st.integers(0, 2**40)),
    st.integers(0, 300),
    st.integers(0, 40),
    st.sampled_from(sorted(SETS)),
    st.lists(st.floats(), max_size=4),
)
def test_any_histogram_at_any_size(counts: np.ndarray, width: int, height: int, name: str, at: list[float]) -> None:
    edges = np.concatenate([[0.0], 2.0 ** np.arange(len(counts))])
    canvas = Canvas(width, height, SETS[name])
    draw_histogram(canvas, edges, counts, [QuantileMark(ns, "p99 9.99 ms") for ns in at])
    assert all(len(line) == width for line in lines_of(canvas))


@given(
    st.lists(st.tuples(st.text(max_size=12), st.floats()), max_size=6),
    st.integers(0, 300),
    st.integers(0, 20),
    st.sampled_from(sorted(SETS)),
)
def test_any_bars_sparks_and_facts_at_any_size(
    rows: list[tuple[str, float]], width: int, height: int, name: str
) -> None:
    canvas = Canvas(width, height, SETS[name])
    draw_bars(canvas, [Bar(label, share, "12 %") for label, share in rows], 10, 6)
    draw_spark(canvas, 0, 0, width, [share for _, share in rows])
    draw_facts(canvas, [Fact(label, f"{share:.3g}") for label, share in rows])
    if name == "ascii":
        assert all(line.isascii() for line in lines_of(canvas))
