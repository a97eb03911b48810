"""The runtime queue: when and where work waited, how much of it, and how it was launched."""

from __future__ import annotations

from fusetui.app.panes.depth import DepthPane
from fusetui.app.panes.launch import LaunchPane
from fusetui.app.panes.queue_heat import QueueHeatPane
from fusetui.app.panes.queue_streams import QueueStreamsPane
from fusetui.app.panes.wait_histogram import WaitHistogramPane
from fusetui.app.screens.base import TelemetryScreen


class QueueScreen(TelemetryScreen):
    NAME = "queue"
    TITLE = "Queue"
    STAGE = 1
    LEAD = True
    PANES = (QueueHeatPane, QueueStreamsPane, DepthPane, WaitHistogramPane, LaunchPane)
