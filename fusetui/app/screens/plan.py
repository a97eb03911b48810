"""Base of the screens that show plans: they are planned for only while one is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from textual.timer import Timer

from fusetui.app.footer import Hint
from fusetui.app.frame import Frame
from fusetui.app.panes.plan_pane import PlanPane
from fusetui.app.plan_board import PlanBoard
from fusetui.app.screens.base import TelemetryScreen

LOOK_S: Final = 0.02
"""How often an answer is looked for while one is on its way."""


class PlanScreen(TelemetryScreen):
    """A screen whose panes draw from the board."""

    PLACES = frozenset({"plan"})

    def __init__(self) -> None:
        super().__init__()
        self.board: PlanBoard | None = None
        self._waiting: Timer | None = None

    def on_mount(self) -> None:
        self._waiting = self.set_interval(LOOK_S, self._look_again, pause=True)

    def show(self, frame: Frame, hints: Sequence[Hint], pane_now_s: float) -> None:
        if frame.board is not None:
            self.board = frame.board
            self.board.look(frame.snapshot)
            for pane in self.panes:
                if isinstance(pane, PlanPane):
                    pane.board = self.board
            self.await_answer()
        super().show(frame, hints, pane_now_s)

    def await_answer(self) -> None:
        """Something was asked of the planner: paint its answer as soon as it is there."""
        if self._waiting is not None and self.waiting():
            self._waiting.resume()

    def waiting(self) -> bool:
        """Whether an answer is on its way."""
        return self.board is not None and self.board.planner.busy

    def looked_again(self) -> None:
        """Before what is new is painted."""

    def read_again(self) -> bool:
        """Look for the capture's operators anew; whether there is a capture."""
        started = self.board is not None and self.board.read_again(self.strip.snapshot)
        self.await_answer()
        return started

    def _look_again(self) -> None:
        if not self.is_current or self.board is None:
            return
        if not self.waiting() and self._waiting is not None:
            self._waiting.pause()
        self.looked_again()
        for pane in self.panes:
            pane.show(pane.snapshot, pane._now_s)
