"""Core placement: which cores were busy when, how unevenly, and which streams got less than they asked for."""

from __future__ import annotations

from fusetui.app.panes.cores_busy import CoresBusyPane
from fusetui.app.panes.cores_heat import CoresHeatPane
from fusetui.app.panes.counters import CountersPane
from fusetui.app.panes.imbalance import ImbalancePane
from fusetui.app.panes.streams import StreamsPane
from fusetui.app.screens.base import TelemetryScreen


class CoresScreen(TelemetryScreen):
    NAME = "cores"
    TITLE = "Cores"
    STAGE = 2
    LEAD = True
    PANES = (CoresHeatPane, CoresBusyPane, ImbalancePane, StreamsPane, CountersPane)
