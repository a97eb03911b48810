"""Line chart: several series over time, a limit line, a value axis, labels at the right end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.charts.axis import Scale, draw_time_axis, draw_value_axis, fit_scale
from fusetui.app.charts.resample import curve, finite
from fusetui.app.palette import Ink

DOT_EVERY = 2
_CELLS_PER_MARK = 4
"""Denser marks would hide the lines, so none is drawn then."""

Dots = npt.NDArray[np.bool_]
Patterns = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Series:
    """One line. values [S] (NaN: gap); label: what stands at its right end.

    thick   drawn two dots high; dotted: every other dot left out
    """

    values: npt.NDArray[np.float64]
    label: str
    ink: int
    thick: bool = False
    dotted: bool = False


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit drawn as a dashed line."""

    value: float
    label: str
    ink: int = Ink.WARN


def draw_lines(
    canvas: Canvas,
    series: Sequence[Series],
    *,
    unit: float = 1.0,
    limit: Limit | None = None,
    time: tuple[int, int, str] | None = None,
    scale: Scale | None = None,
    marks: Sequence[int] = (),
) -> None:
    """Draw `series` (the first one on top) with the value axis at the left and the labels at the right.

    unit  what the axis divides by (1e6: a ns series in ms); time: (start_ns, end_ns, clock) of the whole width
    marks  times in ns that get a thin vertical line behind the data
    """
    width, height = canvas.width, canvas.height
    if width < 1 or height < 1:
        return
    known = [one.values for one in series if len(one.values)]
    scale = scale or fit_scale(np.concatenate(known) if known else np.empty(0), limit.value if limit else None)
    axis = _axis_width(scale, unit) if width >= 24 else 0
    labels = _labels_width(series, limit) if width >= 44 else 0
    clock_row = 1 if time is not None and height >= 5 else 0
    plot = canvas.view(axis, 0, width - axis - labels, height - clock_row)
    if time is not None:
        _draw_marks(plot, marks, time[0], time[1])
    if limit is not None:
        _draw_limit(plot, scale, limit)
    patterns = np.zeros((plot.height, plot.width), np.int64)
    for one in reversed(series):
        draw_series(plot, scale, one, patterns)
    if axis:
        draw_value_axis(canvas.view(0, 0, axis + 3, plot.height), scale, unit, axis)
    if labels:
        _draw_labels(canvas.view(width - labels, 0, labels, plot.height), scale, series, limit)
    if clock_row and time is not None:
        draw_time_axis(canvas.view(axis, height - 1, plot.width, 1), 0, *time)


def _axis_width(scale: Scale, unit: float) -> int:
    return max(len(fmt.short(v / unit)) for v in (scale.low, scale.middle(), scale.high)) + 1


def _labels_width(series: Sequence[Series], limit: Limit | None) -> int:
    texts = [one.label for one in series] + ([limit.label] if limit else [])
    return max((len(text) for text in texts), default=0) + 1 if any(texts) else 0


def draw_series(plot: Canvas, scale: Scale, one: Series, patterns: Patterns) -> None:
    """Add a line to the dots drawn so far, `patterns` [height, width]; the cells it touches take its ink."""
    across, down = plot.glyphs.dots
    dots = rasterise(scale.share(curve(one.values, plot.width * across)), plot.height * down, one.thick)
    if one.dotted:
        dots[:, np.arange(dots.shape[1]) % DOT_EVERY > 0] = False
    shape = (plot.height, down, plot.width, across)
    cells = dots.reshape(shape).transpose(0, 2, 1, 3).reshape(plot.height, plot.width, down * across)
    fresh = cells @ (1 << np.arange(down * across))
    patterns |= fresh
    hit = fresh > 0
    chars = np.frombuffer(plot.glyphs.dot_chars.encode("utf-32-le"), np.uint32)
    plot.codes[hit] = chars[patterns[hit]]
    plot.inks[hit] = one.ink


def rasterise(heights: npt.NDArray[np.float64], rows: int, thick: bool = False) -> Dots:
    """A line through heights [X] in 0..1 (NaN: gap) as dots [rows, X]: connected where both neighbours are there."""
    if rows <= 0 or len(heights) == 0:
        return np.zeros((max(0, rows), len(heights)), bool)
    y = np.rint((1 - heights) * (rows - 1))
    known = ~np.isnan(y)
    row = np.where(known, y, 0).astype(np.int64)
    # The rows between two neighbours are filled half from each side, so that a steep line has no holes.
    jump = np.where(known[1:] & known[:-1], np.diff(row), 0)
    between = np.maximum(np.abs(jump) - 1, 0)
    ahead = np.append(np.sign(jump) * ((between + 1) // 2), 0)
    behind = np.append(0, -np.sign(jump) * (between // 2))
    first = np.where(known, row + np.minimum(0, np.minimum(ahead, behind)), rows)
    last = np.where(known, row + np.maximum(0, np.maximum(ahead, behind)), -1)
    if thick and rows > 4:
        grow = known & (first == last)
        last = np.where(grow & (last < rows - 1), last + 1, last)
        first = np.where(grow & (first == rows - 1), first - 1, first)
    line = np.arange(rows)[:, None]
    dots: Dots = (line >= first) & (line <= last)
    return dots


def _row_of(scale: Scale, value: float, height: int) -> int:
    return round(float(1 - scale.share([value])[0]) * (height - 1))


def _draw_marks(plot: Canvas, marks: Sequence[int], start_ns: int, end_ns: int) -> None:
    span = end_ns - start_ns
    columns = {(at - start_ns) * plot.width // span for at in marks if start_ns <= at < end_ns}
    if len(columns) > plot.width // _CELLS_PER_MARK:
        return
    for x in columns:
        for y in range(plot.height):
            plot.put(x, y, plot.glyphs.mark, Ink.GRID)


def _draw_limit(plot: Canvas, scale: Scale, limit: Limit) -> None:
    if not scale.low <= limit.value <= scale.high or plot.height < 2:
        return
    y = _row_of(scale, limit.value, plot.height)
    plot.put(0, y, plot.glyphs.rule * plot.width, limit.ink)


def _draw_labels(area: Canvas, scale: Scale, series: Sequence[Series], limit: Limit | None) -> None:
    """Each label at the height its line ends, pushed apart where they would collide."""
    wanted: list[tuple[float, str, int]] = []
    for one in series:
        values = finite(one.values)
        known = values[~np.isnan(values)]
        if one.label:
            row = _row_of(scale, float(known[-1]), area.height) if len(known) else 0
            wanted.append((row, one.label, one.ink))
    if limit is not None:
        # A limit above the range still has its place: the top line, where the eye looks for it.
        wanted.append((_row_of(scale, limit.value, area.height) - 0.25, limit.label, limit.ink))
    wanted.sort(key=lambda item: item[0])
    for y, (_, text, ink) in zip(spread([w[0] for w in wanted], area.height), wanted, strict=False):
        area.put(1, y, text, ink)


def spread(rows: Sequence[float], height: int) -> list[int]:
    """Distinct lines near ascending `rows`, in order, within `height`; what does not fit is left out at the end."""
    placed: list[int] = []
    for row in list(rows)[:height]:
        placed.append(max(round(row), placed[-1] + 1 if placed else 0))
    ceiling = height - 1
    for i in range(len(placed) - 1, -1, -1):
        placed[i] = min(placed[i], ceiling)
        ceiling = placed[i] - 1
    return placed
