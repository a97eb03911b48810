"""A grid of cells that panes and charts draw on: every line of it is exactly as wide as the canvas, always."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from rich.cells import cell_len, get_character_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip

from fusetui.app.glyphs import BRAILLE, Glyphs
from fusetui.app.palette import SELECTED, Ink

Codes = npt.NDArray[np.uint32]
Inks = npt.NDArray[np.uint8]

_BLANK = ord(" ")
_TAIL = 0  # the second cell of a wide character
# Ranges in which every character takes one cell: whatever is outside is measured one by one.
_NARROW = re.compile(
    "[ -~\u00a1-\u00ac\u00ae-\u02ff\u0391-\u03c9\u2010-\u2027\u2190-\u21ff"
    "\u2200-\u22ff\u2500-\u25fc\u2713-\u2717\u2800-\u28ff]*\\Z"
)


class Canvas:
    """Cells of (character, ink), `height` x `width`; drawing outside is clipped, never an error.

    codes  [height, width] uint32 code points; inks [height, width] uint8 (`Ink`, + SELECTED under the cursor)
    """

    __slots__ = ("codes", "glyphs", "inks")

    def __init__(self, width: int, height: int, glyphs: Glyphs = BRAILLE) -> None:
        shape = (max(0, height), max(0, width))
        self.codes: Codes = np.full(shape, _BLANK, np.uint32)
        self.inks: Inks = np.zeros(shape, np.uint8)
        self.glyphs = glyphs

    @property
    def width(self) -> int:
        return int(self.codes.shape[1])

    @property
    def height(self) -> int:
        return int(self.codes.shape[0])

    def view(self, x: int, y: int, width: int, height: int) -> Canvas:
        """A window onto these cells; drawing on it draws here."""
        part = object.__new__(Canvas)
        x, y = max(0, x), max(0, y)
        rows, columns = slice(y, max(y, y + height)), slice(x, max(x, x + width))
        part.codes, part.inks, part.glyphs = self.codes[rows, columns], self.inks[rows, columns], self.glyphs
        return part

    def put(self, x: int, y: int, text: str, ink: int = Ink.FG) -> int:
        """Write `text` from cell (x, y), cut at the right edge; returns the cell after it."""
        height, width = self.codes.shape
        room = width - x
        if not 0 <= y < height or room <= 0 or x < 0 or not text:
            return x
        codes = _cells(self.glyphs.text(text) if self.glyphs.ascii_only else text)
        if len(codes) > room:
            cut = codes[room] == _TAIL
            codes = codes[:room]
            if cut:
                codes = np.append(codes[:-1], np.uint32(_BLANK))
        end = x + len(codes)
        row = self.codes[y]
        _mend(row, x, end)
        row[x:end] = codes
        self.inks[y, x:end] = ink
        return end

    def put_right(self, right: int, y: int, text: str, ink: int = Ink.FG) -> int:
        """Write `text` so that it ends before cell `right`; returns the cell it begins at."""
        text = self.glyphs.text(text)
        x = right - (len(text) if text.isascii() else cell_len(text))
        if x < 0 or x >= self.width:
            return right
        self.put(x, y, text, ink)
        return x

    def paint(self, x: int, y: int, chars: str, inks: int | npt.NDArray[np.integer]) -> None:
        """Write single-cell characters with an ink for each."""
        if not 0 <= y < self.height or x < 0:
            return
        codes = np.frombuffer(chars.encode("utf-32-le"), np.uint32)[: max(0, self.width - x)]
        if not len(codes):
            return
        row = self.codes[y]
        _mend(row, x, x + len(codes))
        row[x : x + len(codes)] = codes
        self.inks[y, x : x + len(codes)] = inks if isinstance(inks, int) else inks[: len(codes)]

    def ink(self, x: int, y: int, width: int, ink: int) -> None:
        """Change the ink of cells that are there."""
        if 0 <= y < self.height:
            self.inks[y, max(0, x) : max(0, x + width)] = ink

    def select(self, y: int) -> None:
        """Put the cursor on a line."""
        if 0 <= y < self.height:
            self.inks[y] |= SELECTED

    def fade(self) -> None:
        """Draw everything dimmed: what is shown is old."""
        self.inks[:] = Ink.DIM

    def changes(self, old: Canvas) -> npt.NDArray[np.bool_]:
        """Which cells differ from those of a canvas of the same size, [height, width] bool."""
        changed: npt.NDArray[np.bool_] = (self.codes != old.codes) | (self.inks != old.inks)
        return changed

    def line_text(self, y: int) -> str:
        """The characters of a line."""
        return _decode(self.codes[y])

    def strip(self, y: int, styles: Sequence[Style]) -> Strip:
        """A line as runs of equal ink; `styles` by ink."""
        width = self.width
        if not width:
            return Strip([], 0)
        inks = self.inks[y]
        text = self.codes[y].tobytes().decode("utf-32-le")
        starts = [0, *(np.flatnonzero(inks[1:] != inks[:-1]) + 1).tolist()]
        runs = inks[starts].tolist()
        segments = [
            Segment(text[start:end], styles[ink])
            for start, end, ink in zip(starts, [*starts[1:], width], runs, strict=True)
        ]
        if "\0" in text:
            segments = [Segment(segment.text.replace("\0", ""), segment.style) for segment in segments]
        return Strip(segments, width)


def _mend(row: Codes, x: int, end: int) -> None:
    """Blank the other half of wide characters that writing cells x..end of a line is about to cut."""
    if x and row.item(x) == _TAIL:
        row[x - 1] = _BLANK
    if end < len(row) and row.item(end) == _TAIL:
        row[end] = _BLANK


def cropped(strips: Sequence[Strip], crop: Region, blank: Style) -> list[Strip]:
    """What a widget of drawn lines renders: the part of them that is asked for.

    Such a widget has no border, padding or opacity, and its styles have been through the filters of the app: the
    general way, which looks after all of these line by line, would take a quarter of the time of a frame.
    """
    lines = list(strips[crop.y : crop.bottom])
    if crop.x or any(line.cell_length != crop.right for line in lines):
        lines = [line.crop_extend(crop.x, crop.right, blank) for line in lines]
    return lines + [Strip.blank(crop.width, blank)] * (crop.height - len(lines))


def _decode(codes: Codes) -> str:
    text: str = codes.tobytes().decode("utf-32-le")
    return text.replace("\0", "")


@lru_cache(8192)
def _cells(text: str) -> Codes:
    """One code point per cell, 0 in the second cell of a wide character; what has no cell of its own is left out."""
    if _NARROW.match(text):
        return np.frombuffer(text.encode("utf-32-le"), np.uint32)
    codes: list[int] = []
    for char in text:
        width = get_character_cell_size(char)
        if width > 0:
            codes.extend((ord(char), *[_TAIL] * (width - 1)))
    return np.array(codes, np.uint32)
