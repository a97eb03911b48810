"""What if: other hardware, costs, sizes or policies, asked of the model and applied to nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from fusetui.app.footer import Hint
from fusetui.app.frame import Frame
from fusetui.app.layout import NORMAL_WIDTH, Arrangement
from fusetui.app.panes.knobs import KnobsPane
from fusetui.app.panes.whatif_compare import WhatIfComparePane
from fusetui.app.panes.whatif_groups import WhatIfGroupsPane
from fusetui.app.panes.whatif_runtime import WhatIfRuntimePane
from fusetui.app.screens.plan import PlanScreen

BESIDE_FROM_WIDTH: Final = 72
TALL_FROM_HEIGHT: Final = 34
RUNTIME_LINES: Final = "10"
REASON_LINES: Final = "4"


class WhatIfScreen(PlanScreen):
    NAME = "whatif"
    TITLE = "What-if"
    STAGE = 0
    LEAD = False
    PLACES = frozenset({"plan", "knobs"})
    PANES = (KnobsPane, WhatIfComparePane, WhatIfRuntimePane, WhatIfGroupsPane)

    def arranged(self, count: int) -> Arrangement:
        """The knobs at the left of everything else, as soon as there is room beside them."""
        usual = super().arranged(count)
        if count < len(self.PANES) or not usual.fits or self.size.width < BESIDE_FROM_WIDTH:
            return usual
        width = "42" if self.size.width >= NORMAL_WIDTH else "32"
        twin = self.board is not None and self.board.runtime.twin is not None
        if self.size.height >= TALL_FROM_HEIGHT:
            heights: tuple[str, ...] = ("15", RUNTIME_LINES if twin else REASON_LINES, "1fr")
        else:
            heights = ("1fr", RUNTIME_LINES) if twin else ("1fr", REASON_LINES)
        return replace(
            usual, columns=2, spans=(1,) * (1 + len(heights)), widths=(width, "1fr"), heights=heights, tall=len(heights)
        )

    def show(self, frame: Frame, hints: Sequence[Hint], pane_now_s: float) -> None:
        if frame.board is not None:
            frame.board.runtime.look(frame.snapshot)
        super().show(frame, hints, pane_now_s)

    def read_again(self) -> bool:
        snapshot = self.strip.snapshot
        if self.board is not None and snapshot is not None:
            self.board.runtime.read_again(snapshot)
        return super().read_again()

    def waiting(self) -> bool:
        return super().waiting() or (self.board is not None and self.board.runtime.worker.busy)

    def looked_again(self) -> None:
        self.rearrange()

    @property
    def knobs(self) -> KnobsPane:
        """The pane of knobs, whichever has the focus."""
        return next(pane for pane in self.panes if isinstance(pane, KnobsPane))

    def turn(self, steps: int) -> None:
        """One step more or less of the selected knob."""
        self.knobs.turn(steps)

    def reset(self, *, every: bool) -> None:
        """Put the selected knob back, or every knob."""
        if every:
            self.knobs.reset_all()
        else:
            self.knobs.reset()

    def on_knobs_pane_turned(self, message: KnobsPane.Turned) -> None:
        message.stop()
        self.await_answer()
