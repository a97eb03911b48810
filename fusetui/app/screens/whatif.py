"""What if: other hardware, costs, sizes or policies, asked of the model and applied to nothing."""

from __future__ import annotations

from fusetui.app.panes.knobs import KnobsPane
from fusetui.app.panes.whatif_compare import WhatIfComparePane
from fusetui.app.panes.whatif_groups import WhatIfGroupsPane
from fusetui.app.screens.plan import PlanScreen


class WhatIfScreen(PlanScreen):
    NAME = "whatif"
    TITLE = "What-if"
    STAGE = 0
    LEAD = False
    PANES = (KnobsPane, WhatIfComparePane, WhatIfGroupsPane)

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
