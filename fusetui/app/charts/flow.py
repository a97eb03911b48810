"""A graph from left to right: boxes in columns by how far they are from the start, and the edges between columns.

Nothing overlaps at any size: boxes lose lines, then their frames; columns that do not fit are named at the bottom.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len

from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.charts.wires import Wires
from fusetui.app.palette import SELECTED, Ink

_WIDEST: Final = 24
_NARROWEST: Final = 12
_USUAL: Final = 18
_LANES: Final = 3
_MIN_BOX: Final = 3


@dataclass(frozen=True, slots=True)
class Box:
    """One box. label, note: at the left and the right of its top edge; lines: inside; ink: of the frame."""

    label: str
    note: str
    lines: tuple[str, ...]
    ink: int


@dataclass(frozen=True, slots=True)
class Place:
    """Where a box lies: cells, and the line its edges meet it at."""

    x: int
    y: int
    width: int
    height: int

    @property
    def port(self) -> int:
        return self.y + self.height // 2


def levels(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """The column of each box: one right of its furthest predecessor. Edges go from lower to higher indices."""
    level = [0] * count
    for source, target in sorted(edges, key=lambda edge: edge[1]):
        level[target] = max(level[target], level[source] + 1)
    return level


@dataclass(frozen=True, slots=True)
class Flow:
    """Where everything lies. level: the column of each box; places: of those in view; left, right: boxes out of sight,
    above and below among them."""

    level: tuple[int, ...]
    places: dict[int, Place]
    left: tuple[int, ...]
    right: tuple[int, ...]


def lay_out(
    boxes: Sequence[Box], edges: Sequence[tuple[int, int]], width: int, height: int, chosen: int | None
) -> Flow:
    """Places for boxes (in an order in which edges go forward) in width x height cells; `chosen` is always in view."""
    level = levels(len(boxes), edges)
    columns = [[i for i, at in enumerate(level) if at == c] for c in range(max(level) + 1)]
    gutters = [_gutter(level, edges, c) for c in range(len(columns) - 1)]
    cap = _cap(boxes, columns, gutters, width)
    widths = [min(width, _column_width(boxes, column, cap)) for column in columns]
    first, last = _window(widths, gutters, width, level[chosen] if chosen is not None else 0)
    crowded = any(len(column) > height for column in columns[first : last + 1])
    clipped = first > 0 or last < len(columns) - 1 or crowded
    room = height - 1 if clipped and height > 1 else height
    places: dict[int, Place] = {}
    x = 0
    for c in range(first, last + 1):
        places |= _stack(columns[c], boxes, x, widths[c], room, chosen)
        x += widths[c] + (gutters[c] if c < len(gutters) else 0)
    left = tuple(i for column in columns[:first] for i in column)
    right = tuple(i for column in columns[first:] for i in column if i not in places)
    return Flow(tuple(level), places, left, right)


def draw_flow(canvas: Canvas, boxes: Sequence[Box], edges: Sequence[tuple[int, int]], chosen: int | None) -> None:
    """Draw the boxes and the edges between neighbouring columns, the chosen box under the cursor."""
    if not boxes or canvas.width < 1 or canvas.height < 1:
        return
    flow = lay_out(boxes, edges, canvas.width, canvas.height, chosen)
    _draw_edges(canvas, flow, edges)
    for i, place in flow.places.items():
        far = sorted({s for s, t in edges if t == i and flow.level[i] - flow.level[s] > 1})
        _draw_box(canvas, boxes[i], place, [boxes[s].label for s in far], i == chosen)
    if (flow.left or flow.right) and canvas.height > 1:
        _draw_hidden(canvas, [boxes[i].label for i in flow.left], [boxes[i].label for i in flow.right])


def _gutter(level: Sequence[int], edges: Sequence[tuple[int, int]], column: int) -> int:
    sources = {s for s, t in edges if level[s] == column and level[t] == column + 1}
    return 2 + max(1, min(_LANES, len(sources)))


def _column_width(boxes: Sequence[Box], column: Sequence[int], cap: int) -> int:
    def wanted(box: Box) -> int:
        body = max((cell_len(line) for line in box.lines), default=0) + 4
        return max(body, cell_len(box.label) + cell_len(box.note) + 7)

    return max(min(cap, wanted(boxes[i])) for i in column)


def _cap(boxes: Sequence[Box], columns: Sequence[Sequence[int]], gutters: Sequence[int], width: int) -> int:
    """The widest that boxes may be for all columns to fit; a readable width when they cannot."""
    for cap in range(_WIDEST, _NARROWEST - 1, -1):
        if sum(_column_width(boxes, column, cap) for column in columns) + sum(gutters) <= width:
            return cap
    return _USUAL


def _window(widths: Sequence[int], gutters: Sequence[int], width: int, wanted: int) -> tuple[int, int]:
    """The first and last column shown: as many as fit, from the left, the wanted one among them."""
    first = 0
    while True:
        last, used = first, widths[first]
        while last + 1 < len(widths) and used + gutters[last] + widths[last + 1] <= width:
            used += gutters[last] + widths[last + 1]
            last += 1
        if wanted <= last:
            return first, last
        first += 1


def _stack(
    column: Sequence[int], boxes: Sequence[Box], x: int, width: int, room: int, chosen: int | None
) -> dict[int, Place]:
    """The boxes of a column, one above the other: framed where there are three lines for each, else one line each."""
    count = len(column)
    if room < _MIN_BOX * count:
        top = max(0, min(column.index(chosen) - room // 2, count - room)) if chosen in column else 0
        return {i: Place(x, y, width, 1) for y, i in enumerate(column[top : top + room])}
    heights = [_MIN_BOX] * count
    wanted = [max(_MIN_BOX, len(boxes[i].lines) + 2) for i in column]
    spare = room - sum(heights)
    while spare > 0 and (growing := [n for n in range(count) if heights[n] < wanted[n]]):
        smallest = min(growing, key=lambda n: heights[n])
        heights[smallest] += 1
        spare -= 1
    gap = min(1, spare // count)
    y = (spare - gap * (count - 1)) // 2
    places = {}
    for i, height in zip(column, heights, strict=True):
        places[i] = Place(x, y, width, height)
        y += height + gap
    return places


def _draw_edges(canvas: Canvas, flow: Flow, edges: Sequence[tuple[int, int]]) -> None:
    """Edges to the next column, each source on a lane of its own where there are enough."""
    wires, level, places = Wires(), flow.level, flow.places
    heads: set[tuple[int, int]] = set()
    lanes: dict[int, dict[int, int]] = {}
    for source, target in edges:
        if level[target] - level[source] != 1 or source not in places or target not in places:
            continue
        start, end = places[source], places[target]
        # A line that meets the next box anywhere goes straight on.
        inlet = start.port if end.y < start.port < end.y + end.height - 1 else end.port
        column = lanes.setdefault(level[source], {})
        lane = column.setdefault(source, min(len(column), _LANES - 1))
        turn = start.x + start.width + 1 + lane
        # From edge to edge: the boxes are drawn over the ends.
        wires.across(start.x + start.width - 1, turn, start.port)
        wires.down(turn, start.port, inlet)
        wires.across(turn, end.x, inlet)
        heads.add((end.x - 1, inlet))
    wires.draw(canvas, Ink.DIM)
    for x, y in heads:
        canvas.put(x, y, canvas.glyphs.step, Ink.DIM)


def _draw_box(canvas: Canvas, box: Box, place: Place, far: Sequence[str], chosen: bool) -> None:
    area = canvas.view(place.x, place.y, place.width, place.height)
    label_ink = (Ink.ACCENT + SELECTED) if chosen else Ink.STRONG
    if place.height < _MIN_BOX:
        x = area.put(0, 0, f" {box.label} ", label_ink)
        area.put(x, 0, fmt.fit(" ".join(box.lines), area.width - x), Ink.FG)
        return
    ink = Ink.ACCENT if chosen else box.ink
    top_left, across, top_right, down, bottom_left, bottom_right = list(area.glyphs.box)
    area.put(0, 0, top_left + across * (area.width - 2) + top_right, ink)
    area.put(0, area.height - 1, bottom_left + across * (area.width - 2) + bottom_right, ink)
    for y in range(1, area.height - 1):
        area.put(0, y, down, ink)
        area.put(area.width - 1, y, down, ink)
    x = area.put(1, 0, f" {box.label} ", label_ink)
    if box.note and x + cell_len(box.note) + 3 <= area.width:
        area.put_right(area.width - 1, 0, f" {box.note} ", Ink.FG)
    _draw_lines(area.view(2, 1, area.width - 4, area.height - 2), box.lines)
    if far:
        area.put(1, area.height - 1, fmt.clip(f" ◂ {' '.join(far)} ", area.width - 2), Ink.DIM)


def _draw_lines(area: Canvas, lines: Sequence[str]) -> None:
    kept = len(lines) if len(lines) <= area.height else area.height - 1
    for y, line in enumerate(lines[:kept]):
        area.put(0, y, fmt.clip(line, area.width), Ink.FG)
    if kept < len(lines):
        rest = f"+{len(lines) - kept} more" if kept else f"{lines[0]} +{len(lines) - 1}"
        area.put(0, kept, fmt.clip(rest, area.width), Ink.DIM if kept else Ink.FG)


def _draw_hidden(canvas: Canvas, left: Sequence[str], right: Sequence[str]) -> None:
    """Which boxes are out of sight, on the last line."""
    y, half = canvas.height - 1, canvas.width // 2 - 1
    canvas.put(0, y, " " * canvas.width)
    if left:
        canvas.put(0, y, fmt.clip(f"◂ {' '.join(left)}", half), Ink.ACCENT)
    if right:
        text = fmt.clip(" ".join(right), half - 2)
        canvas.put_right(canvas.width, y, f"{text} {canvas.glyphs.step}", Ink.ACCENT)
