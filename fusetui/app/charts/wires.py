"""Right-angled lines that join where they meet."""

from __future__ import annotations

from typing import Final

from fusetui.app.canvas import Canvas

_LEFT, _RIGHT, _UP, _DOWN = 1, 2, 4, 8
_JUNCTIONS: Final = {
    _LEFT | _RIGHT | _UP: "┴",
    _LEFT | _RIGHT | _DOWN: "┬",
    _LEFT | _UP | _DOWN: "┤",
    _RIGHT | _UP | _DOWN: "├",
    _LEFT | _RIGHT | _UP | _DOWN: "┼",
}


class Wires:
    """Lines collected cell by cell, then drawn at once."""

    def __init__(self) -> None:
        self._cells: dict[tuple[int, int], int] = {}

    def across(self, start: int, end: int, y: int) -> None:
        """A horizontal line from cell `start` to cell `end` (start <= end), both included."""
        for x in range(start, end + 1):
            self._add(x, y, (_LEFT if x > start else 0) | (_RIGHT if x < end else 0))

    def down(self, x: int, start: int, end: int) -> None:
        """A vertical line between two lines of cells, both included, in either order."""
        low, high = min(start, end), max(start, end)
        for y in range(low, high + 1):
            self._add(x, y, (_UP if y > low else 0) | (_DOWN if y < high else 0))

    def draw(self, canvas: Canvas, ink: int) -> None:
        """Put them on the canvas, over what is there."""
        for (x, y), bits in self._cells.items():
            canvas.put(x, y, _char(bits, canvas.glyphs.box), ink)

    def _add(self, x: int, y: int, bits: int) -> None:
        self._cells[x, y] = self._cells.get((x, y), 0) | bits


def _char(bits: int, box: str) -> str:
    top_left, across, top_right, down, bottom_left, bottom_right = list(box)
    corners = {
        _RIGHT | _DOWN: top_left,
        _LEFT | _DOWN: top_right,
        _RIGHT | _UP: bottom_left,
        _LEFT | _UP: bottom_right,
    }
    if bits in corners:
        return corners[bits]
    if bits in _JUNCTIONS:
        return _JUNCTIONS[bits]
    return down if bits in (_UP, _DOWN, _UP | _DOWN) else across
