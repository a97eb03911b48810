"""How many panes a screen shows, in how many columns: by room, the most important first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MIN_WIDTH: Final = 40
MIN_HEIGHT: Final = 12
NORMAL_WIDTH: Final = 100
WIDE_WIDTH: Final = 160
NARROW_PANE_HEIGHT: Final = 6
PANE_HEIGHT: Final = 9
CHROME_LINES: Final = 4
TALL_STRIP_HEIGHT: Final = 30


@dataclass(frozen=True, slots=True)
class Arrangement:
    """A grid: `columns` wide, the pane at i takes `spans[i]` columns; panes after the last span are hidden.

    strip_lines  lines of the pipeline strip; fits: whether the screen is large enough at all
    widths, heights  of the columns and rows as the grid takes them, (): all equal
    tall             rows that the first pane takes
    """

    columns: int
    spans: tuple[int, ...]
    strip_lines: int
    fits: bool = True
    widths: tuple[str, ...] = ()
    heights: tuple[str, ...] = ()
    tall: int = 1

    @property
    def rows(self) -> int:
        return (sum(self.spans) + self.tall - 1) // self.columns if self.columns else 0


def arrange(width: int, height: int, count: int, *, lead: bool = False, tall_strip: int = 4) -> Arrangement:
    """The arrangement of `count` panes on a screen of width x height cells; lead: the first pane takes a whole row."""
    if width < MIN_WIDTH or height < MIN_HEIGHT:
        return Arrangement(1, (), 1, fits=False)
    columns = 1 if width < NORMAL_WIDTH else 2 if width < WIDE_WIDTH else 3
    strip = tall_strip if width >= NORMAL_WIDTH and height >= TALL_STRIP_HEIGHT else 1
    room = height - CHROME_LINES - strip
    # A narrow screen is short too: there a pane of six lines is better than none.
    rows = max(1, room // (NARROW_PANE_HEIGHT if columns == 1 and height < 40 else PANE_HEIGHT))
    slots = rows * columns
    lead = lead and columns > 1 and rows > 1
    shown = min(count, slots - (columns - 1 if lead else 0))
    # Four panes are two rows of two, and one or two leave no room for a third column to be filled.
    if columns == 3 and shown - lead in (1, 2, 4):
        columns = min(2, shown - lead)
    spans = [1] * shown
    if lead:
        spans[0] = columns
    spans[-1] += -sum(spans) % columns
    return Arrangement(columns, tuple(spans), strip)
