"""What if: other hardware, costs, sizes or policies, asked of the model and applied to nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from fusetui.app.layout import NORMAL_WIDTH, Arrangement
from fusetui.app.panes.knobs import KnobsPane
from fusetui.app.panes.whatif_compare import WhatIfComparePane
from fusetui.app.panes.whatif_groups import WhatIfGroupsPane
from fusetui.app.screens.plan import PlanScreen

BESIDE_FROM_WIDTH: Final = 72
TALL_FROM_HEIGHT: Final = 32


class WhatIfScreen(PlanScreen):
    NAME = "whatif"
    TITLE = "What-if"
    STAGE = 0
    LEAD = False
    PLACES = frozenset({"plan", "knobs"})
    PANES = (KnobsPane, WhatIfComparePane, WhatIfGroupsPane)

    def arranged(self, count: int) -> Arrangement:
        """The knobs at the left of everything else, as soon as there is room beside them."""
        usual = super().arranged(count)
        if count < len(self.PANES) or not usual.fits or self.size.width < BESIDE_FROM_WIDTH:
            return usual
        wide = self.size.width >= NORMAL_WIDTH
        tall = "15" if self.size.height >= TALL_FROM_HEIGHT else "13"
        return replace(
            usual, columns=2, spans=(1, 1, 1), widths=("42" if wide else "32", "1fr"), heights=(tall, "1fr"), tall=2
        )

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
