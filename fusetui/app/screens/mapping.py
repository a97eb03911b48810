"""Mapping: which plan ran for what came, how well it fitted, and whether what comes has moved."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from fusetui.app.layout import WIDE_WIDTH, Arrangement
from fusetui.app.panes.mapping_buckets import MappingBucketsPane
from fusetui.app.panes.mapping_drift import MappingDriftPane
from fusetui.app.panes.mapping_heat import MappingHeatPane
from fusetui.app.panes.mapping_metastable import MappingMetastablePane
from fusetui.app.panes.mapping_shares import MappingSharesPane
from fusetui.app.screens.base import TelemetryScreen

ALL_FROM_HEIGHT: Final = 40


class MappingScreen(TelemetryScreen):
    NAME = "mapping"
    TITLE = "Mapping"
    STAGE = 0
    LEAD = True
    PANES = (MappingHeatPane, MappingBucketsPane, MappingSharesPane, MappingDriftPane, MappingMetastablePane)

    def arranged(self, count: int) -> Arrangement:
        """All five where they fit: the map and the table want width, what is below them does not."""
        usual = super().arranged(count)
        if count < len(self.PANES) or self.size.height < ALL_FROM_HEIGHT:
            return usual
        if self.size.width >= WIDE_WIDTH:
            return replace(usual, columns=3, spans=(3, 2, 1, 1, 2), heights=("6fr", "5fr", "4fr"))
        if usual.columns == 2:
            return replace(usual, spans=(2, 2, 1, 1, 2), heights=("10fr", "7fr", "8fr", "7fr"))
        return usual
