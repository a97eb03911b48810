"""Base of the screens that show what the tail is made of: its causes are looked for only while one is shown."""

from __future__ import annotations

from collections.abc import Sequence

from fusetui.app.footer import Hint
from fusetui.app.frame import Frame
from fusetui.app.panes.tail_drivers import TailDriversPane
from fusetui.app.screens.base import TelemetryScreen


class CauseScreen(TelemetryScreen):
    """A screen with a pane of drivers."""

    PLACES = frozenset({"causes"})

    def show(self, frame: Frame, hints: Sequence[Hint], pane_now_s: float) -> None:
        board = frame.causes
        if board is not None:
            board.look(frame.snapshot, held=frame.held)
            for pane in self.panes:
                if isinstance(pane, TailDriversPane):
                    pane.causes = board
        super().show(frame, hints, pane_now_s)
