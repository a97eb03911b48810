"""Columns of fixed width: text left, numbers right, clipped; the least important go first when it is narrow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.palette import Ink


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    cells     its width; `grow` columns share what is left over
    priority  the columns with the largest number are left out first when the canvas is too narrow
    """

    title: str
    cells: int
    right: bool = False
    priority: int = 0
    grow: bool = False


def layout(columns: Sequence[Column], width: int, gap: int = 2) -> list[tuple[int, int, int]]:
    """(index, x, cells) of the columns that fit in `width`."""
    kept = list(range(len(columns)))
    while len(kept) > 1 and sum(columns[i].cells for i in kept) + gap * (len(kept) - 1) > width:
        kept.remove(max(kept, key=lambda i: (columns[i].priority, i)))
    spare = width - sum(columns[i].cells for i in kept) - gap * (len(kept) - 1)
    growing = [i for i in kept if columns[i].grow]
    placed, x = [], 0
    for i in kept:
        extra = spare // len(growing) if i in growing and spare > 0 else 0
        cells = min(columns[i].cells + extra, max(0, width - x))
        placed.append((i, x, cells))
        x += cells + gap
    return placed


def draw_header(
    canvas: Canvas, y: int, columns: Sequence[Column], places: Sequence[tuple[int, int, int]], sorted_by: int = -1
) -> None:
    """Column titles on line `y`, the one sorted by in the accent."""
    for i, x, cells in places:
        ink = Ink.ACCENT if i == sorted_by else Ink.DIM
        canvas.put(x, y, fmt.fit(columns[i].title, cells, right=columns[i].right), ink)


def draw_row(
    canvas: Canvas,
    y: int,
    columns: Sequence[Column],
    places: Sequence[tuple[int, int, int]],
    texts: Sequence[str],
    inks: Sequence[int] = (),
) -> None:
    """One row of texts (by column index) on line `y`."""
    for i, x, cells in places:
        canvas.put(x, y, fmt.fit(texts[i], cells, right=columns[i].right), inks[i] if inks else Ink.FG)
