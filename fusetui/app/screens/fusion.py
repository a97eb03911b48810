"""Fusion and tiling: the block in groups, what each buys, and what was measured of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from fusetui.app.layout import Arrangement
from fusetui.app.panes.plan_graph import PlanGraphPane
from fusetui.app.panes.plan_groups import PlanGroupsPane
from fusetui.app.panes.plan_policies import PlanPoliciesPane
from fusetui.app.panes.plan_residual import PlanResidualPane
from fusetui.app.panes.plan_roofline import PlanRooflinePane
from fusetui.app.panes.plan_traffic import PlanTrafficPane
from fusetui.app.screens.plan import PlanScreen

ALL_FROM_HEIGHT: Final = 40


class FusionScreen(PlanScreen):
    NAME = "fusion"
    TITLE = "Fusion"
    STAGE = 0
    LEAD = True
    PANES = (
        PlanGraphPane,
        PlanGroupsPane,
        PlanRooflinePane,
        PlanPoliciesPane,
        PlanResidualPane,
        PlanTrafficPane,
    )

    def arranged(self, count: int) -> Arrangement:
        """All six where they fit: the graph and the table want width, what is below them does not."""
        usual = super().arranged(count)
        if count < len(self.PANES) or self.size.height < ALL_FROM_HEIGHT:
            return usual
        if usual.columns == 3:
            return replace(usual, spans=(3, 2, 1, 1, 1, 1), heights=("6fr", "5fr", "4fr"))
        if usual.columns == 2:
            return replace(usual, spans=(2, 2, 1, 1, 1, 1), heights=("9fr", "8fr", "8fr", "7fr"))
        return usual
