"""A line of vertical bars: the shape of a series in one row."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fusetui.app.canvas import Canvas
from fusetui.app.charts.resample import Reduce, columns
from fusetui.app.palette import Ink


def spark_text(values: npt.ArrayLike, width: int, glyphs: str, high: float | None = None, how: Reduce = "max") -> str:
    """`width` characters from `glyphs` (blank first, then rising): blank is no data, the lowest bar is 0 or little.

    high  the value of a full bar; the largest one when None
    """
    data = columns(values, width, how)
    known = np.isfinite(data)
    if not known.any():
        return " " * max(0, width)
    top = float(np.max(data[known])) if high is None else high
    share = np.where(known, np.clip(data, 0.0, top), 0.0) / top if top > 0 else np.zeros(len(data))
    step = np.clip(np.ceil(share * (len(glyphs) - 1)), 1, len(glyphs) - 1).astype(np.int64)
    return "".join(glyphs[i] for i in np.where(known, step, 0))


def draw_spark(
    canvas: Canvas,
    x: int,
    y: int,
    width: int,
    values: npt.ArrayLike,
    ink: int = Ink.DIM,
    *,
    high: float | None = None,
    how: Reduce = "max",
) -> None:
    """A sparkline of `width` cells at (x, y); the tallest bar leaves a gap to the line above."""
    canvas.paint(x, y, spark_text(values, width, canvas.glyphs.columns[:-1], high, how), ink)
