"""Everything at a glance: the tail, the queue, the cores, and what the tail is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fusetui.app.footer import Hint
from fusetui.app.frame import Frame
from fusetui.app.gauges import only_counters
from fusetui.app.layout import NORMAL_WIDTH, WIDE_WIDTH
from fusetui.app.pane import Pane
from fusetui.app.panes.baseline import BaselinePane
from fusetui.app.panes.cores_busy import CoresBusyPane
from fusetui.app.panes.counters import CountersPane
from fusetui.app.panes.depth import DepthPane
from fusetui.app.panes.findings import FindingsPane
from fusetui.app.panes.gauges import GaugesPane
from fusetui.app.panes.imbalance import ImbalancePane
from fusetui.app.panes.launch import LaunchPane
from fusetui.app.panes.plan_groups import PlanGroupsPane
from fusetui.app.panes.queue_streams import QueueStreamsPane
from fusetui.app.panes.source import SourcePane
from fusetui.app.panes.tail import TailPane
from fusetui.app.panes.tail_drivers import TailDriversPane
from fusetui.app.screens.causes import CauseScreen

if TYPE_CHECKING:
    from fusetui.app.plan_board import PlanBoard


class OverviewScreen(CauseScreen):
    NAME = "overview"
    TITLE = "Overview"
    STAGE = None
    LEAD = False
    AUTO_FOCUS = "FindingsPane"
    PANES = (
        TailPane,
        GaugesPane,
        BaselinePane,
        QueueStreamsPane,
        TailDriversPane,
        CoresBusyPane,
        LaunchPane,
        FindingsPane,
        PlanGroupsPane,
        SourcePane,
        DepthPane,
        ImbalancePane,
        CountersPane,
    )

    _board: PlanBoard | None = None
    _compared = False

    def wanted(self) -> list[Pane]:
        """The plan beside the rest where there is room for it, once there is one: none is made for this screen."""
        planned = self._board is not None and self._board.today is not None and self.size.width >= WIDE_WIDTH
        absent: list[type[Pane]] = [] if planned else [PlanGroupsPane]
        # What moved is the news, where there is something to compare with; how work was launched stays on screen 3.
        absent.append(LaunchPane if self._compared else BaselinePane)
        panes = [pane for pane in self.panes if type(pane) not in absent]
        shown = self.strip.snapshot
        if shown is not None and only_counters(shown):
            # Nothing but counters: the panes of work would all say that there is none.
            kinds: tuple[type[Pane], ...] = (GaugesPane, FindingsPane)
            kinds += (SourcePane, CountersPane) if self.size.width >= NORMAL_WIDTH else ()
            return [pane for pane in self.panes if type(pane) in kinds]
        panes = [pane for pane in panes if type(pane) is not GaugesPane]
        if self.size.width >= NORMAL_WIDTH:
            return panes
        # One column: how bad, of what, and what to do about it.
        first = (TailPane, *((BaselinePane,) if self._compared else ()), TailDriversPane, FindingsPane)
        return sorted(
            panes, key=lambda pane: next((i for i, kind in enumerate(first) if type(pane) is kind), len(first))
        )

    def show(self, frame: Frame, hints: Sequence[Hint], pane_now_s: float) -> None:
        if frame.board is not None:
            self._board = frame.board
            for pane in self.panes:
                if isinstance(pane, PlanGroupsPane):
                    pane.board = frame.board
        self._compared = frame.baseline is not None
        for pane in self.panes:
            if isinstance(pane, FindingsPane):
                pane.triage = frame.triage
            elif isinstance(pane, BaselinePane):
                pane.board = frame.baseline
        super().show(frame, hints, pane_now_s)
