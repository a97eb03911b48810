"""Horizontal bars with a label at the left and a text at the right."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.palette import DATA, Ink


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: label, share of the full length (0..1, NaN: none) and what stands behind it."""

    label: str
    share: float
    text: str
    ink: int = DATA
    text_ink: int = Ink.FG


def bar_text(share: float, width: int, glyphs: str) -> str:
    """A bar of `width` cells, to an eighth of a cell (9 steps in `glyphs`); what is not 0 is always seen."""
    if width <= 0 or not math.isfinite(share) or share <= 0:
        return " " * max(0, width)
    eighths = min(width * 8, max(1, round(min(share, 1.0) * width * 8)))
    whole, rest = divmod(eighths, 8)
    return (glyphs[8] * whole + (glyphs[rest] if rest else "")).ljust(width)[:width]


def draw_meter(canvas: Canvas, x: int, y: int, width: int, share: float, ink: int = DATA) -> None:
    """A thin bar on its track: lines of them do not run into each other. Nothing when the share is not known."""
    if width <= 0 or not math.isfinite(share):
        return
    filled = round(min(1.0, max(0.0, share)) * width)
    canvas.put(x, y, canvas.glyphs.meter[0] * filled, ink)
    canvas.put(x + filled, y, canvas.glyphs.meter[1] * (width - filled), Ink.GRID)


def draw_bars(canvas: Canvas, bars: Sequence[Bar], label_cells: int, text_cells: int) -> None:
    """Bars from the top of the canvas, one a line; label and text columns keep their width whatever they hold."""
    label_cells = min(label_cells, max(0, canvas.width - 8))
    if canvas.width < label_cells + text_cells + 6:
        text_cells = max(0, canvas.width - label_cells - 6)
    length = max(0, canvas.width - label_cells - text_cells - 2)
    for y, bar in enumerate(bars[: canvas.height]):
        canvas.put(0, y, fmt.fit(bar.label, label_cells), Ink.FG)
        canvas.put(label_cells + 1, y, bar_text(bar.share, length, canvas.glyphs.rows), bar.ink)
        canvas.put(label_cells + length + 2, y, fmt.fit(bar.text, text_cells), bar.text_ink)
