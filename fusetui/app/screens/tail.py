"""The tail: quantiles over time, what the slowest are made of, how latencies are spread."""

from __future__ import annotations

from fusetui.app.panes.cohort import CohortPane
from fusetui.app.panes.source import SourcePane
from fusetui.app.panes.tail import TailPane
from fusetui.app.panes.tail_histogram import TailHistogramPane
from fusetui.app.screens.base import TelemetryScreen


class TailScreen(TelemetryScreen):
    NAME = "tail"
    TITLE = "Tail"
    STAGE = 3
    LEAD = True
    PANES = (TailPane, CohortPane, TailHistogramPane, SourcePane)
