"""Facts: label and value pairs in columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.palette import Ink


@dataclass(frozen=True, slots=True)
class Fact:
    """One label with its value; `note` follows the value, dimmed."""

    label: str
    value: str
    ink: int = Ink.FG
    note: str = ""


def draw_facts(canvas: Canvas, facts: Sequence[Fact], value_cells: int = 9, note_cells: int = 0) -> int:
    """Facts down, then across, in as many columns as fit; values right-aligned. Returns the number of lines used."""
    if not facts or canvas.width < 1 or canvas.height < 1:
        return 0
    label_cells = max(cell_len(fact.label) for fact in facts)
    width = label_cells + 1 + value_cells + (note_cells + 1 if note_cells else 0)
    across = max(1, (canvas.width + 3) // (width + 3))
    lines = -(-len(facts) // across)
    pitch = max(1, (canvas.width + 3) // across)
    for i, fact in enumerate(facts):
        x, y = i // lines * pitch, i % lines
        room = min(width if across > 1 else canvas.width, canvas.width - x)
        column = canvas.view(x, y, room, 1)
        column.put(0, 0, fmt.clip(fact.label, room), Ink.DIM)
        column.put(label_cells + 1, 0, fmt.fit(fact.value, value_cells, right=True), fact.ink)
        if fact.note:
            after = label_cells + 2 + value_cells
            column.put(after, 0, fmt.clip(fact.note, room - after), Ink.DIM)
    return min(lines, canvas.height)
