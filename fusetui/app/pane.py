"""The base of every pane: a frame with trust marks, an inside drawn on a canvas, repaints of changed cells only."""

from __future__ import annotations

import textwrap
from typing import ClassVar

import numpy as np
from rich.cells import cell_len
from textual import events
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from fusetui.analysis.rows import RowQuery
from fusetui.analysis.snapshot import Snapshot
from fusetui.app import fmt
from fusetui.app.canvas import Canvas, cropped
from fusetui.app.glyphs import BRAILLE, Glyphs
from fusetui.app.look import look_of
from fusetui.app.palette import DEFAULT, Ink, Palette

MIN_FRAME_WIDTH = 12
MIN_FRAME_HEIGHT = 3
_MIN_TITLE = 12
_TROUBLE = frozenset({"lost", "hung", "failed", "reconnecting"})


class Pane(Widget, can_focus=True):
    """A framed view of the snapshot. Subclasses draw; `show` is called once per tick by whoever owns the tick.

    TITLE  shown at the left of the top edge
    HELP   formula, unit, columns, blind spots, as plain text, for `?`
    """

    DEFAULT_CSS = "Pane { width: 1fr; height: 1fr; background: $background; }"
    TITLE: ClassVar[str] = ""
    HELP: ClassVar[str] = ""
    ALLOW_SELECT = False

    tick_s: float = 0.5
    baseline: Snapshot | None = None
    """What to draw beside the snapshot, set by the screen."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.snapshot: Snapshot | None = None
        self._now_s = 0.0
        self._canvas = Canvas(0, 0)
        self._strips: list[Strip] = []
        self._drawn: tuple[object, ...] = ()
        self._palette: Palette = DEFAULT
        self._glyphs: Glyphs = BRAILLE

    # What subclasses say

    def draw(self, canvas: Canvas, snapshot: Snapshot) -> None:
        """Draw the inside."""

    def title(self, snapshot: Snapshot | None) -> str:
        """The title, which may tell a unit that depends on the data."""
        return self.TITLE

    def trust(self, snapshot: Snapshot) -> str:
        """How much the numbers rest on, e.g. `n 12.4k`; the age is added by the frame."""
        return ""

    def empty(self, snapshot: Snapshot) -> str | None:
        """When there is nothing to show: why, and how to get it. None when there are data."""
        return None

    def row_query(self, snapshot: Snapshot) -> RowQuery | None:
        """The rows behind this pane (or behind its cursor), for drill-down; None when there are none."""
        return None

    def row_names(self, snapshot: Snapshot) -> frozenset[str] | None:
        """Only rows of these names are meant by `row_query`; None: of any name."""
        return None

    def select(self, delta: int) -> None:
        """Move the cursor, in panes that have one."""

    # What the app calls

    def show(self, snapshot: Snapshot | None, now_s: float) -> None:
        """Take up a snapshot at monotonic time `now_s` and repaint the cells that changed, if anybody can see them."""
        self.snapshot = snapshot
        self._now_s = now_s
        if not (self.is_attached and self.display):
            return
        wanted = self._drawn_from()
        if wanted != self._drawn:
            self.repaint(wanted)

    def extra_state(self) -> tuple[object, ...]:
        """What else than the snapshot the drawing depends on and is changed from outside between two `show`s."""
        return ()

    def _drawn_from(self) -> tuple[object, ...]:
        """Equal for equal drawings: a paused view costs nothing."""
        palette, glyphs = look_of(self.app)
        seen = None if self.snapshot is None else (self.snapshot.version, self.snapshot.taken_s)
        return (
            seen,
            self._trust_marks(),
            id(self.baseline),
            id(palette),
            glyphs.name,
            self.outer_size,
            *self.extra_state(),
        )

    def repaint(self, drawn: tuple[object, ...] | None = None) -> None:
        """Draw again from the snapshot at hand; `drawn` is what `_drawn_from` just said."""
        if not self.is_attached or not self.screen.is_current or not self.is_on_screen:
            return
        palette, glyphs = look_of(self.app)
        # The outer size is the size of what has no border, and is not worked out from the styles each time.
        width, height = self.outer_size
        fresh = Canvas(width, height, glyphs)
        self.compose_canvas(fresh)
        self._drawn = self._drawn_from() if drawn is None else drawn
        old, redress = self._canvas, palette is not self._palette or glyphs is not self._glyphs
        self._canvas, self._palette, self._glyphs = fresh, palette, glyphs
        if redress or len(self._strips) != height or (old.width, old.height) != (width, height):
            self._strips = [fresh.strip(y, palette.styles) for y in range(height)]
            self.refresh()
        else:
            self._repaint_changes(old)

    def text(self) -> str:
        """What the pane shows, as plain text: the title, then the lines of the inside."""
        glyphs = look_of(self.app)[1] if self.is_attached else BRAILLE
        width, height = max(self.size.width, 40), max(self.size.height, 8)
        inside = Canvas(width - 4, height - 2, glyphs)
        self._draw_inside(inside)
        lines = [inside.line_text(y).rstrip() for y in range(inside.height)]
        heading = f"{self.title(self.snapshot)}  {self._trust_marks()[0]}".rstrip()
        return "\n".join([heading, *lines]).rstrip() + "\n"

    # Drawing

    def compose_canvas(self, canvas: Canvas) -> None:
        """Frame and inside; below 12 columns or 3 lines the inside alone, below one cell nothing."""
        width, height = canvas.width, canvas.height
        marks, fading = self._trust_marks()
        if width < MIN_FRAME_WIDTH or height < MIN_FRAME_HEIGHT:
            if height <= 1 or width < MIN_FRAME_WIDTH:
                canvas.put(0, 0, fmt.clip(self.title(self.snapshot), width), Ink.DIM)
                self._draw_inside(canvas.view(0, 1, width, height - 1))
            else:
                self._draw_inside(canvas)
        else:
            self._draw_inside(canvas.view(2, 1, width - 4, height - 2))
        if fading:
            canvas.fade()
        if width >= MIN_FRAME_WIDTH and height >= MIN_FRAME_HEIGHT:
            draw_frame(canvas, self.title(self.snapshot), marks, focused=self.has_focus, alarm=fading)

    def _draw_inside(self, canvas: Canvas) -> None:
        if not canvas.width or not canvas.height:
            return
        if self.snapshot is None:
            canvas.put(0, 0, fmt.clip("waiting for the first events", canvas.width), Ink.DIM)
            return
        reason = self.empty(self.snapshot)
        if reason is None:
            self.draw(canvas, self.snapshot)
        else:
            draw_text(canvas, reason)

    def _trust_marks(self) -> tuple[str, bool]:
        """The text at the right of the top edge, and whether what is shown is too old to be trusted."""
        snapshot = self.snapshot
        if snapshot is None:
            return "", False
        seconds = max(0.0, self._now_s - snapshot.taken_s)
        state, transport = snapshot.health.state, snapshot.transport
        fading = False
        if state in _TROUBLE:
            age, fading = f"{state} {fmt.age(seconds)}", True
        elif transport is not None and not transport.playing and not (transport.at_end and transport.growing):
            age = "ended" if transport.at_end else "paused"
        elif state == "ended":
            age = "ended"
        elif seconds > max(2 * self.tick_s, 1.0):
            age, fading = f"stale {fmt.age(seconds)}", True
        else:
            # Tenths of what is fresh would be sent to the terminal at every tick, and tell nobody anything.
            age = "<1s" if seconds < 1 else fmt.age(seconds)
        trust = self.trust(snapshot)
        return (f"{trust} · {age}" if trust else age), fading

    def _repaint_changes(self, old: Canvas) -> None:
        canvas, styles = self._canvas, self._palette.styles
        changed = canvas.changes(old)
        regions = []
        for y in np.flatnonzero(changed.any(axis=1)).tolist():
            self._strips[y] = canvas.strip(y, styles)
            cells = np.flatnonzero(changed[y])
            # One cell more on each side: a wide character must never be cut in half.
            left, right = max(0, int(cells[0]) - 1), min(canvas.width, int(cells[-1]) + 2)
            regions.append(Region(left, y, right - left, 1))
        if regions:
            self.refresh(*regions)

    def render_lines(self, crop: Region) -> list[Strip]:
        return cropped(self._strips, crop, self._palette.styles[Ink.FG])

    # Events

    def on_show(self) -> None:
        self.repaint()

    def on_resize(self, event: events.Resize) -> None:
        self.repaint()

    def watch_has_focus(self, has_focus: bool) -> None:
        super().watch_has_focus(has_focus)
        self.repaint()


def draw_frame(canvas: Canvas, title: str, marks: str, *, focused: bool = False, alarm: bool = False) -> None:
    """A frame around the canvas with the title at the left and the trust marks at the right of the top edge."""
    width, height = canvas.width, canvas.height
    top_left, across, top_right, down, bottom_left, bottom_right = list(canvas.glyphs.box)
    ink = Ink.ACCENT if focused else Ink.GRID
    canvas.put(0, 0, top_left + across * (width - 2) + top_right, ink)
    canvas.put(0, height - 1, bottom_left + across * (width - 2) + bottom_right, ink)
    side = ord(down)
    for x in (0, width - 1):
        canvas.codes[1 : height - 1, x] = side
        canvas.inks[1 : height - 1, x] = ink
    # A long title gives way to the trust marks as long as enough of it is left.
    left = width - 8 - cell_len(marks)
    title = fmt.clip(title, left if left >= _MIN_TITLE else width - 4)
    end = canvas.put(1, 0, f" {title} ", Ink.ACCENT if focused else Ink.STRONG)
    room = width - 2 - end
    for text in (marks, marks.rpartition("· ")[2]):
        if text and cell_len(text) + 3 <= room:
            canvas.put_right(width - 1, 0, f" {text} ", Ink.WARN if alarm else Ink.DIM)
            return


def draw_text(canvas: Canvas, text: str, ink: int = Ink.DIM) -> None:
    """Prose, wrapped to the canvas, an ellipsis where it does not fit."""
    lines = [line for part in text.split("\n") for line in textwrap.wrap(part, max(1, canvas.width)) or [""]]
    for y, line in enumerate(lines[: canvas.height]):
        more = y == canvas.height - 1 and len(lines) > canvas.height
        canvas.put(0, y, fmt.clip(line[: canvas.width - 1] + "…" if more else line, canvas.width), ink)
