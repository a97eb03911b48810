"""Triage: what the rules found, the evidence for it, what evidence there is at all, and what was decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from fusetui.app.footer import Hint
from fusetui.app.frame import Frame
from fusetui.app.layout import NORMAL_WIDTH, Arrangement
from fusetui.app.pane import Pane
from fusetui.app.panes.alerts import AlertsPane
from fusetui.app.panes.contradictions import ContradictionsPane
from fusetui.app.panes.decisions import DecisionsPane
from fusetui.app.panes.evidence import EvidencePane
from fusetui.app.panes.findings import FindingsPane, TriageListPane
from fusetui.app.panes.matrix import MatrixPane
from fusetui.app.panes.triage_pane import TriagePane
from fusetui.app.screens.base import TelemetryScreen

ALL_FROM_HEIGHT: Final = 34
PANES_SHOWN: Final = 5


class TriageScreen(TelemetryScreen):
    NAME = "triage"
    TITLE = "Triage"
    STAGE = None
    LEAD = False
    PLACES = frozenset({"triage", "causes"})
    PANES = (TriageListPane, EvidencePane, MatrixPane, AlertsPane, ContradictionsPane, DecisionsPane)

    def arranged(self, count: int) -> Arrangement:
        """Findings beside their evidence and the matrix below; on a narrow screen one above another."""
        usual = super().arranged(count)
        if count < PANES_SHOWN or not usual.fits:
            return usual
        if self.size.width < NORMAL_WIDTH:
            if self.size.height < ALL_FROM_HEIGHT:
                return replace(usual, spans=usual.spans[:2], heights=("2fr", "3fr")[: len(usual.spans)])
            return replace(usual, spans=(1, 1, 1, 1), heights=("6fr", "10fr", "11", "5fr"))
        if self.size.height < ALL_FROM_HEIGHT:
            return replace(usual, columns=2, spans=(1, 1, 2), heights=("3fr", "8"))
        return replace(usual, columns=2, spans=(1, 1, 2, 1, 1), heights=("2fr", "12", "1fr"))

    _alerts = False

    def wanted(self) -> list[Pane]:
        """Alerts, where some are watched, in the place of what has nothing to say; contradictions are findings too."""
        for kind in (ContradictionsPane, DecisionsPane) if self._alerts else (AlertsPane,):
            if kind is AlertsPane or any(type(pane) is kind and self._silent(pane) for pane in self.panes):
                return [pane for pane in self.panes if type(pane) is not kind]
        return [pane for pane in self.panes if not isinstance(pane, AlertsPane)]

    def _silent(self, pane: Pane) -> bool:
        board = pane.triage if isinstance(pane, TriagePane) else None
        found = board.of(pane.snapshot) if board is not None else None
        if isinstance(pane, ContradictionsPane):
            return found is None or not found.contradictions
        return board is None or not board.decisions.all

    def show(self, frame: Frame, hints: Sequence[Hint], pane_now_s: float) -> None:
        if frame.causes is not None:
            frame.causes.look(frame.snapshot, held=frame.held)
        seen = frame.watched
        watched = seen is not None and (bool(seen.alerts) or any(one.kind == "alert" for one in seen.moments))
        self._alerts = watched or (seen is not None and bool(seen.problem))
        for pane in self.panes:
            if isinstance(pane, TriagePane):
                pane.triage = frame.triage
            elif isinstance(pane, AlertsPane):
                pane.watched = seen
        super().show(frame, hints, pane_now_s)

    def on_findings_pane_moved(self, message: FindingsPane.Moved) -> None:
        """The evidence is of the finding under the cursor, at once."""
        for pane in self.panes:
            if isinstance(pane, EvidencePane):
                pane.top = 0
            pane.show(pane.snapshot, pane._now_s)
