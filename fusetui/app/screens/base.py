"""What all screens share: two lines of head, the pipeline strip, a grid of panes, the scrubber and the footer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.containers import Grid
from textual.screen import Screen

from fusetui.app.canvas import Canvas
from fusetui.app.footer import Footer, Hint
from fusetui.app.frame import Frame
from fusetui.app.layout import MIN_HEIGHT, MIN_WIDTH, Arrangement, arrange
from fusetui.app.line import Line
from fusetui.app.palette import Ink
from fusetui.app.pane import Pane
from fusetui.app.panes.pipeline import PipelinePane
from fusetui.app.scrubber import Scrubber
from fusetui.app.titlebar import TitleBar, VerdictLine


class TooSmall(Line):
    """What a screen that cannot hold anything says."""

    def draw(self, canvas: Canvas, frame: Frame | None) -> None:
        size = self.screen.size
        text = f"needs {MIN_WIDTH}x{MIN_HEIGHT}, this is {size.width}x{size.height}"
        canvas.put(0, 0, text[: canvas.width], Ink.WARN)


class TelemetryScreen(Screen[None], inherit_bindings=False):
    """One screen of panes. They are made once and stay; what does not fit is hidden.

    NAME   the mode it is known by; TITLE: its name in the footer
    STAGE  the pipeline cell that is lit, None: none
    PLACES  where its own keys work, beside those of every screen
    PANES  the most important first; LEAD: the first takes a whole row
    """

    NAME: ClassVar[str] = ""
    STAGE: ClassVar[int | None] = None
    PANES: ClassVar[Sequence[type[Pane]]] = ()
    LEAD: ClassVar[bool] = True
    PLACES: ClassVar[frozenset[str]] = frozenset()
    AUTO_FOCUS = "#body Pane"
    DEFAULT_CSS = """
    TelemetryScreen { layout: vertical; background: $background; overflow: hidden; }
    TelemetryScreen #body { grid-gutter: 0; height: 1fr; width: 1fr; overflow: hidden; }
    TelemetryScreen #body Pane { width: 100%; height: 100%; }
    TelemetryScreen TooSmall { display: none; height: 1; }
    TelemetryScreen.-tiny > * { display: none; }
    TelemetryScreen.-tiny > TooSmall { display: block; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.strip = PipelinePane(current=self.STAGE, id="strip")
        self.panes = [kind() for kind in self.PANES]
        self.chrome: tuple[Line, ...] = (TitleBar(), VerdictLine(), Scrubber(), TooSmall())
        self.footer = Footer()
        self.zoomed: Pane | None = None
        self._arrangement: Arrangement | None = None
        self._placed: list[Pane] = []

    def compose(self) -> ComposeResult:
        title, verdict, scrubber, too_small = self.chrome
        yield title
        yield verdict
        yield self.strip
        yield Grid(*self.panes, id="body")
        yield scrubber
        yield self.footer
        yield too_small

    def show(self, frame: Frame, hints: Sequence[Hint], pane_now_s: float) -> None:
        """Take up a tick. pane_now_s: the time that the age of the panes is counted to."""
        for line in self.chrome:
            line.show(frame)
        self.footer.set_hints(hints, self.TITLE or "")
        before = None if frame.baseline is None else frame.baseline.before(frame.snapshot)
        for pane in self.panes:
            pane.baseline = before
        self.strip.first = frame.verdict.first_stage
        self.strip.show(frame.snapshot, pane_now_s)
        if self._arrangement is not None:  # the first one is made when the screen knows its size
            self.rearrange()
        for pane in self.panes:
            pane.show(frame.snapshot, pane_now_s)

    def turn(self, steps: int) -> None:
        """Turn the selected knob, on screens that have some."""

    def reset(self, *, every: bool) -> None:
        """Put the selected knob back, or every knob."""

    def read_again(self) -> bool:
        """Look for the operators of the capture anew, on screens that show a plan; whether there is a capture."""
        return False

    def restyle(self) -> None:
        """The theme or the glyph set changed."""
        for line in (*self.chrome, self.footer):
            line.restyle()
        for pane in (self.strip, *self.panes):
            pane.repaint()

    @property
    def focused_pane(self) -> Pane | None:
        return self.focused if isinstance(self.focused, Pane) else None

    def zoom(self) -> bool:
        """Give the focused pane the whole body, or take it back; whether a pane is zoomed now."""
        self.zoomed = None if self.zoomed else self.focused_pane
        self.rearrange()
        return self.zoomed is not None

    def unzoom(self) -> bool:
        """Take the whole body back from a pane; whether there was one."""
        if self.zoomed is None:
            return False
        self.zoomed = None
        self.rearrange()
        return True

    def on_resize(self, event: events.Resize) -> None:
        self.rearrange()

    def arranged(self, count: int) -> Arrangement:
        """How `count` panes are arranged at this size."""
        return arrange(self.size.width, self.size.height, count, lead=self.LEAD)

    def wanted(self) -> list[Pane]:
        """The panes there is something to show in, the most important first."""
        return self.panes

    def rearrange(self) -> None:
        """Show what there is room for. A drag of the window changes styles only where the arrangement changes."""
        shown = [self.zoomed] if self.zoomed else self.wanted()
        arrangement = self.arranged(len(shown))
        if (arrangement, shown) == (self._arrangement, self._placed):
            return
        self._arrangement, self._placed = arrangement, list(shown)
        self.set_class(not arrangement.fits, "-tiny")
        self.strip.styles.height = arrangement.strip_lines
        body = self.query_one("#body", Grid)
        body.styles.grid_size_columns = arrangement.columns
        body.styles.grid_size_rows = max(1, arrangement.rows)
        body.styles.grid_columns = " ".join(arrangement.widths) or "1fr"
        body.styles.grid_rows = " ".join(arrangement.heights) or "1fr"
        spans = dict(zip(shown, arrangement.spans, strict=False))
        for pane in self.panes:
            pane.display = pane in spans
            pane.styles.column_span = spans.get(pane, 1)
            pane.styles.row_span = arrangement.tall if pane is shown[0] else 1
