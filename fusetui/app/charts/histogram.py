"""Histogram on a log axis of durations, with marks where the quantiles and the objective lie."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.palette import DATA, WAS, Ink

Floats = npt.NDArray[np.float64]
_MAX_RANGE = 1e6
_MAX_NS = float(1 << 63)  # a duration is an int64; what is beyond is no duration and gets no mark
_FINE_BELOW = 1e3
_BLANK = ord(" ")


@dataclass(frozen=True, slots=True)
class QuantileMark:
    """A vertical mark: where and what it says."""

    at_ns: float
    label: str
    ink: int = Ink.FG


def regrid(edges_ns: Floats, counts: npt.NDArray[np.int64], width: int, low: float, high: float) -> Floats:
    """Counts on a log grid as counts per column [width] between low and high; columns share the bin they lie in."""
    if width <= 0 or len(counts) == 0 or not 0 < low < high:
        return np.zeros(max(0, width))
    floor = np.maximum(np.asarray(edges_ns, np.float64), low / 1e3)
    at = np.log(floor / low) / math.log(high / low) * width
    total = np.concatenate([[0.0], np.cumsum(counts.astype(np.float64))])
    grid = np.interp(np.arange(width + 1), at, total)
    # What lies beyond the axis belongs to its first and last column: no count is lost.
    grid[0], grid[-1] = 0.0, total[-1]
    return np.diff(grid)


def span_of(edges_ns: Floats, counts: npt.NDArray[np.int64], marks: Sequence[QuantileMark]) -> tuple[float, float]:
    """(low, high) ns of the axis: at most six decades that hold all marks; (0, 0) when there is nothing to show."""
    filled = np.flatnonzero(counts)
    if not len(filled):
        return 0.0, 0.0
    high = float(edges_ns[filled[-1] + 1])
    above = filled[edges_ns[filled] > 0]
    low = max(float(edges_ns[above[0]]) if len(above) else 0.0, high / _MAX_RANGE, 1.0)
    for mark in marks:
        if 1 <= mark.at_ns <= _MAX_NS:
            low, high = min(low, mark.at_ns), max(high, mark.at_ns)
    return (low / 1.1, high * 1.1) if math.isfinite(high) else (0.0, 0.0)


def draw_histogram(
    canvas: Canvas,
    edges_ns: Floats,
    counts: npt.NDArray[np.int64],
    marks: Sequence[QuantileMark] = (),
    was: tuple[Floats, npt.NDArray[np.int64]] | None = None,
) -> None:
    """Bars from the bottom, marks as vertical rules labelled on the top line, decades on the bottom line.

    was  (edges, counts) of a baseline: dots at the height its bars would have, were it as many; it widens the axis
    """
    width, height = canvas.width, canvas.height
    low, high = _both(span_of(edges_ns, counts, marks), (0.0, 0.0) if was is None else span_of(*was, ()))
    if width < 4 or height < 1 or not 0 < low < high:
        return
    top_rows = 1 if height >= 4 and marks else 0
    axis_rows = 1 if height >= 3 else 0
    plot = canvas.view(0, top_rows, width, height - top_rows - axis_rows)
    bars = regrid(edges_ns, counts, width, low, high)
    old = np.zeros(width) if was is None else regrid(*was, width, low, high)
    if old.any():
        old *= float(bars.sum()) / float(old.sum())
    top = max(float(bars.max()), float(old.max()))
    _draw_columns(plot, bars, top)
    _draw_was(plot, old, top)
    _draw_marks(canvas, marks, low, high, height - axis_rows)
    if axis_rows:
        _draw_decades(canvas, height - 1, low, high)


def _both(now: tuple[float, float], was: tuple[float, float]) -> tuple[float, float]:
    """One axis for two spans; nothing was, or is not any more: that of the other."""
    if not now[1] or not was[1]:
        return now if now[1] else was
    return max(min(now[0], was[0]), max(now[1], was[1]) / _MAX_RANGE), max(now[1], was[1])


def _draw_was(plot: Canvas, per_column: Floats, top: float) -> None:
    if top <= 0 or plot.height == 0:
        return
    for x in np.flatnonzero(per_column > 0).tolist():
        y = plot.height - 1 - min(int(per_column[x] / top * plot.height), plot.height - 1)
        plot.put(x, y, plot.glyphs.was, WAS)


def _draw_columns(plot: Canvas, per_column: Floats, top: float) -> None:
    if top <= 0 or plot.height == 0:
        return
    eighths = np.ceil(per_column / top * plot.height * 8).astype(np.int64)
    from_bottom = np.arange(plot.height - 1, -1, -1)[:, None] * 8
    step = np.clip(eighths - from_bottom, 0, 8)
    chars = np.frombuffer(plot.glyphs.columns.encode("utf-32-le"), np.uint32)
    seen = step > 0
    plot.codes[seen] = chars[step[seen]]
    plot.inks[seen] = DATA


def _column_of(at_ns: float, low: float, high: float, width: int) -> int:
    return min(width - 1, max(0, int(math.log(at_ns / low) / math.log(high / low) * width)))


def _draw_marks(canvas: Canvas, marks: Sequence[QuantileMark], low: float, high: float, rows: int) -> None:
    """Labels from the right, the most extreme first, so that the tail keeps its label when there is no room."""
    free = canvas.width
    for mark in sorted(marks, key=lambda mark: -mark.at_ns):
        if not 1 <= mark.at_ns <= _MAX_NS:
            continue
        x = _column_of(mark.at_ns, low, high, canvas.width)
        for y in range(1, rows):
            if canvas.codes[y, x] == _BLANK:
                canvas.put(x, y, canvas.glyphs.axis, mark.ink)
            canvas.ink(x, y, 1, mark.ink)
        begin = min(x, free - len(mark.label))
        if begin >= 0:
            canvas.put(begin, 0, mark.label, mark.ink)
            free = begin - 1


def _draw_decades(canvas: Canvas, y: int, low: float, high: float) -> None:
    canvas.put(0, y, canvas.glyphs.box[1] * canvas.width, Ink.GRID)
    taken = -1
    factors = (1, 2, 5) if high / low < _FINE_BELOW else (1,)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)))
    for value in (factor * 10.0**power for power in powers for factor in factors):
        if not low <= value <= high:
            continue
        scale, unit = fmt.duration_unit(value)
        label = f"{fmt.short(value / scale)}{unit}"
        x = _column_of(value, low, high, canvas.width)
        if x > taken and x + len(label) <= canvas.width:
            taken = canvas.put(x, y, label, Ink.DIM)
    if canvas.width - taken > 4:
        canvas.put_right(canvas.width, y, " log", Ink.DIM)
