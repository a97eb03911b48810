"""The last line: the keys that work here."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from textual import events
from textual.message import Message

from fusetui.app.canvas import Canvas
from fusetui.app.frame import Frame
from fusetui.app.layout import NORMAL_WIDTH
from fusetui.app.line import Line
from fusetui.app.palette import Ink

Hint = tuple[str, str, int]
_SCREEN_KEYS = frozenset("123456789")


def fit_hints(entries: Sequence[Hint], width: int) -> list[Hint]:
    """The hints (keys, words, rank) that fit in `width` cells, highest ranks left out first."""
    kept = list(entries)
    while kept and sum(cell_len(keys) + cell_len(words) + 3 for keys, words, _ in kept) > width:
        kept.remove(max(reversed(kept), key=lambda entry: entry[2]))
    return kept


def join_screens(entries: Sequence[Hint], here: str) -> list[Hint]:
    """The screens' entries as one, for narrow screens: `1-5 8` and the name of the one that is shown."""
    screens = [entry for entry in entries if entry[0] in _SCREEN_KEYS]
    if len(screens) < 2:
        return list(entries)
    joined = (_ranges([int(key) for key, _, _ in screens]), here, 1)
    return [joined, *(entry for entry in entries if entry[0] not in _SCREEN_KEYS)]


def _ranges(numbers: Sequence[int]) -> str:
    """`1-5 8` for 1 2 3 4 5 8."""
    starts = [n for n in numbers if n - 1 not in numbers]
    ends = [n for n in numbers if n + 1 not in numbers]
    return " ".join(f"{a}-{b}" if b > a else str(a) for a, b in zip(starts, ends, strict=True))


class Footer(Line):
    """Keys and what they do; the current screen's name is lit, a click does what the key does."""

    class Pressed(Message):
        """A person clicked on the entry of this hint; `offset`: cells from its beginning."""

        def __init__(self, hint: str, offset: int) -> None:
            super().__init__()
            self.hint = hint
            self.offset = offset

    _places: tuple[tuple[int, int, str], ...] = ()

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._hints: Sequence[Hint] = ()
        self._here = ""

    def set_hints(self, entries: Sequence[Hint], here: str) -> None:
        """The entries of this screen; `here`: the entry that is lit."""
        if (entries, here) != (self._hints, self._here):
            self._hints, self._here = entries, here
            self.show(self._frame)

    def draw(self, canvas: Canvas, frame: Frame | None) -> None:
        x, places = 1, []
        entries = self._hints if canvas.width >= NORMAL_WIDTH else join_screens(self._hints, self._here)
        for keys, words, _ in fit_hints(entries, canvas.width - 1):
            lit = words == self._here
            start = x
            x = canvas.put(x, 0, keys, Ink.ACCENT)
            x = canvas.put(x + 1, 0, words, Ink.STRONG if lit else Ink.DIM)
            places.append((start, x, words))
            x += 2
        self._places = tuple(places)

    def on_click(self, event: events.Click) -> None:
        for start, end, hint in self._places:
            if start <= event.x < end:
                self.post_message(self.Pressed(hint, event.x - start))
