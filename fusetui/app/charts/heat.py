"""Heat map: rows by time in eight steps, told by glyph and by colour."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from fusetui.app.canvas import Canvas
from fusetui.app.charts.axis import Scale
from fusetui.app.charts.resample import Floats, columns, finite
from fusetui.app.palette import STEPS, Ink

Levels = npt.NDArray[np.int64]


def levels(values: npt.ArrayLike, low: float, high: float, *, log: bool = False) -> Levels:
    """Step 0..7 of each value between low and high; -1 where there is no value (NaN)."""
    data = finite(values)
    known = np.isfinite(data)
    if not high > low:
        return np.where(known, 0, -1)
    share = Scale(low, high, log and low > 0).share(np.where(known, data, low))
    step = np.minimum(np.floor(share * STEPS), STEPS - 1).astype(np.int64)
    return np.where(known, step, -1)


def bounds(values: npt.ArrayLike) -> tuple[float, float, bool]:
    """(low, high, log) that suit some values: log over positive ones when they span more than two decades."""
    data = finite(values)
    seen = data[np.isfinite(data)]
    if not len(seen):
        return 0.0, 1.0, False
    high = float(seen.max())
    above = seen[seen > 0]
    if len(above) and high / float(above.min()) > 100:
        return float(above.min()), high, True
    return 0.0, high if high > 0 else 1.0, False


def group_rows(values: Floats, lines: int, how: Literal["max", "mean"] = "max") -> tuple[Floats, list[tuple[int, int]]]:
    """[R, S] rows in at most `lines` groups of neighbours: (grouped [G, S], (first, last) of each group).

    A group is a power of two of rows where that wastes little room.
    """
    rows = values.shape[0]
    if lines <= 0 or rows == 0:
        return values[:0], []
    per = -(-rows // lines)
    power = 1 << (per - 1).bit_length()
    if rows / power >= 0.6 * lines:
        per = power
    starts = np.arange(0, rows, per)
    spans = [(int(s), int(min(s + per, rows) - 1)) for s in starts]
    if per == 1:
        return values, spans
    values = finite(values)
    known = np.isfinite(values)
    number = np.add.reduceat(known, starts, axis=0)
    if how == "max":
        grouped = np.maximum.reduceat(np.where(known, values, -np.inf), starts, axis=0)
    else:
        grouped = np.add.reduceat(np.where(known, values, 0.0), starts, axis=0) / np.maximum(number, 1)
    return np.where(number > 0, grouped, np.nan), spans


def draw_heat(
    canvas: Canvas,
    values: npt.ArrayLike,
    low: float,
    high: float,
    *,
    log: bool = False,
    how: Literal["max", "mean"] = "max",
) -> None:
    """Rows [R, S], one line each from the top of the canvas; slots without data stay blank."""
    data = np.asarray(values, np.float64)
    rows = min(data.shape[0], canvas.height)
    if rows == 0 or canvas.width == 0:
        return
    step = levels(columns(data[:rows], canvas.width, how), low, high, log=log)
    shades = np.frombuffer((" " + canvas.glyphs.shades).encode("utf-32-le"), np.uint32)
    canvas.codes[:rows] = shades[step + 1]
    canvas.inks[:rows] = np.where(step < 0, int(Ink.FG), Ink.HEAT_1 + step)


def draw_legend(canvas: Canvas, x: int, y: int, low: str, high: str) -> int:
    """`low ░░▒▒▓▓██ high` at (x, y); returns the cell after it."""
    x = canvas.put(x, y, f"{low} ", Ink.DIM)
    canvas.paint(x, y, canvas.glyphs.shades, Ink.HEAT_1 + np.arange(STEPS))
    return canvas.put(x + STEPS, y, f" {high}", Ink.DIM)
