"""Everything at a glance: the tail, the queue, the cores, and what the tail is made of."""

from __future__ import annotations

from fusetui.app.panes.cohort import CohortPane
from fusetui.app.panes.cores_busy import CoresBusyPane
from fusetui.app.panes.counters import CountersPane
from fusetui.app.panes.depth import DepthPane
from fusetui.app.panes.imbalance import ImbalancePane
from fusetui.app.panes.launch import LaunchPane
from fusetui.app.panes.queue_streams import QueueStreamsPane
from fusetui.app.panes.source import SourcePane
from fusetui.app.panes.tail import TailPane
from fusetui.app.screens.base import TelemetryScreen


class OverviewScreen(TelemetryScreen):
    NAME = "overview"
    TITLE = "Overview"
    STAGE = None
    LEAD = False
    PANES = (
        TailPane,
        QueueStreamsPane,
        CohortPane,
        CoresBusyPane,
        LaunchPane,
        SourcePane,
        DepthPane,
        ImbalancePane,
        CountersPane,
    )
