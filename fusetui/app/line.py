"""One line of chrome, drawn on a canvas and sent to the terminal only when it changed."""

from __future__ import annotations

from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from fusetui.app.canvas import Canvas, cropped
from fusetui.app.frame import Frame
from fusetui.app.look import look_of
from fusetui.app.palette import Ink


class Line(Widget):
    """Base of the title bar, the verdict, the scrubber and the footer; a subclass draws."""

    DEFAULT_CSS = "Line { height: 1; width: 1fr; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._frame: Frame | None = None
        self._canvas = Canvas(0, 1)
        self._strips: list[Strip] = []

    def draw(self, canvas: Canvas, frame: Frame | None) -> None:
        """Draw on a blank canvas of one line."""
        raise NotImplementedError

    def show(self, frame: Frame | None) -> None:
        """Take a new frame; the line is sent again only when it looks different."""
        self._frame = frame
        canvas = self._drawn()
        if canvas.width != self._canvas.width or canvas.changes(self._canvas).any():
            self._take(canvas)

    def restyle(self) -> None:
        """The theme or the glyph set changed."""
        self._take(self._drawn())

    def text(self) -> str:
        """What the line says."""
        return self._canvas.line_text(0).rstrip()

    def _take(self, canvas: Canvas) -> None:
        self._canvas = canvas
        self._strips = [canvas.strip(0, look_of(self.app)[0].styles)]
        self.refresh()

    def _drawn(self) -> Canvas:
        canvas = Canvas(self.outer_size.width, 1, look_of(self.app)[1])
        if canvas.width:
            self.draw(canvas, self._frame)
        return canvas

    def on_resize(self) -> None:
        self.restyle()

    def render_lines(self, crop: Region) -> list[Strip]:
        return cropped(self._strips, crop, look_of(self.app)[0].styles[Ink.FG])
