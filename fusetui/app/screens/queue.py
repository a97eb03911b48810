"""The runtime queue: when and where work waited, how much of it, and how it was launched."""

from __future__ import annotations

from fusetui.app.pane import Pane
from fusetui.app.panes.batching import BatchingPane, batch_known
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
    PANES = (QueueHeatPane, QueueStreamsPane, DepthPane, WaitHistogramPane, BatchingPane, LaunchPane)

    def wanted(self) -> list[Pane]:
        """The gate only where something tells of batches."""
        snapshot = self.strip.snapshot
        known = snapshot is not None and batch_known(snapshot)
        return [pane for pane in self.panes if known or not isinstance(pane, BatchingPane)]
