"""The tail: quantiles over time, what the slowest are made of, how latencies are spread."""

from __future__ import annotations

from fusetui.app.panes.source import SourcePane
from fusetui.app.panes.tail import TailPane
from fusetui.app.panes.tail_drivers import TailDriversPane
from fusetui.app.panes.tail_histogram import TailHistogramPane
from fusetui.app.panes.tail_waterfall import TailWaterfallPane
from fusetui.app.screens.causes import CauseScreen


class TailScreen(CauseScreen):
    NAME = "tail"
    TITLE = "Tail"
    STAGE = 3
    LEAD = True
    PANES = (TailPane, TailDriversPane, TailWaterfallPane, TailHistogramPane, SourcePane)
