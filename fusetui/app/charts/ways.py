"""Which of several ways was taken most, row by time: told by glyph and by colour, never by colour alone."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from fusetui.app.canvas import Canvas
from fusetui.app.charts.resample import Floats, columns
from fusetui.app.palette import Ink

WAY_GLYPHS: Final = "░▓█╌"
"""Of planned, adapted, fallback and unmapped: the further from the plan, the more there is to see."""
WAY_INKS: Final = (Ink.STREAM_1 + 2, Ink.STREAM_1 + 1, Ink.STREAM_1 + 6, int(Ink.DIM))


def dominant(counts: npt.ArrayLike, width: int) -> npt.NDArray[np.int64]:
    """[R, S, W] counts as the way [R, width] most were of, the later of equals; -1 where there are none."""
    by_column: Floats = columns(np.moveaxis(np.asarray(counts, np.float64), 1, 2), width, "sum")
    known = np.nan_to_num(by_column, nan=0.0)
    ways = known.shape[1]
    if not ways:
        return np.full((len(known), width), -1)
    most = ways - 1 - np.argmax(known[:, ::-1], axis=1)
    return np.where(known.sum(axis=1) > 0, most, -1)


def draw_ways(canvas: Canvas, counts: npt.ArrayLike) -> None:
    """Rows [R, S, W], one line each from the top of the canvas; where nothing ran it stays blank."""
    data = np.asarray(counts, np.float64)[: canvas.height]
    if not data.shape[0] or not canvas.width:
        return
    way = dominant(data, canvas.width)
    rows = len(way)
    glyphs = np.frombuffer((" " + canvas.glyphs.text(WAY_GLYPHS)).encode("utf-32-le"), np.uint32)
    canvas.codes[:rows] = glyphs[way + 1]
    canvas.inks[:rows] = np.array([int(Ink.FG), *WAY_INKS], np.uint8)[way + 1]


def draw_way_legend(canvas: Canvas, x: int, y: int, names: tuple[str, ...]) -> int:
    """`░ planned  ▓ adapted …` at (x, y); returns the cell after it."""
    for glyph, ink, name in zip(WAY_GLYPHS, WAY_INKS, names, strict=False):
        if x + len(name) + 4 > canvas.width:
            break
        x = canvas.put(x, y, glyph * 2, ink)
        x = canvas.put(x, y, f" {name}  ", Ink.DIM)
    return x
