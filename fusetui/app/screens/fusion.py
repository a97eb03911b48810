"""Fusion and tiling: the block in groups, what each buys, and what was measured of it."""

from __future__ import annotations

from fusetui.app.panes.plan_graph import PlanGraphPane
from fusetui.app.panes.plan_groups import PlanGroupsPane
from fusetui.app.panes.plan_policies import PlanPoliciesPane
from fusetui.app.panes.plan_residual import PlanResidualPane
from fusetui.app.panes.plan_roofline import PlanRooflinePane
from fusetui.app.panes.plan_traffic import PlanTrafficPane
from fusetui.app.screens.plan import PlanScreen


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
