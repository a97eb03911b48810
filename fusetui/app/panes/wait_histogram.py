"""Distribution of queue wait."""

from __future__ import annotations

from fusetui.analysis.rows import RowQuery
from fusetui.analysis.snapshot import Snapshot
from fusetui.app.canvas import Canvas
from fusetui.app.charts.histogram import draw_histogram
from fusetui.app.pane import Pane
from fusetui.app.panes.beside import titled
from fusetui.app.panes.common import QUEUE_TEACHES, histogram_marks, samples


class WaitHistogramPane(Pane):
    TITLE = "Queue wait distribution"
    HELP = """How many executions waited how long in their queue, over the window.

Formula   queue wait = max(0, start_ns - enqueue_ns); waits of 0 are in the leftmost column.
Axis      duration, logarithmic; the height is linear, the fullest column reaches the top.
◦         the baseline, where there is one, as if it were as many
Columns   enqueue_ns, start_ns, node
Blind to  work still waiting: it is in the quantiles only, as a lower bound."""

    def title(self, snapshot: Snapshot | None) -> str:
        return titled(self.TITLE, self.baseline)

    def trust(self, snapshot: Snapshot) -> str:
        return samples(snapshot.queue_wait)

    def empty(self, snapshot: Snapshot) -> str | None:
        return None if snapshot.wait_histogram.counts.any() else QUEUE_TEACHES

    def row_query(self, snapshot: Snapshot) -> RowQuery | None:
        return RowQuery(order="wait", kind="execution")

    def draw(self, canvas: Canvas, snapshot: Snapshot) -> None:
        histogram = snapshot.wait_histogram
        marks, was = histogram_marks(snapshot.queue_wait, None), self.baseline
        beside = None if was is None else (was.wait_histogram.edges_ns, was.wait_histogram.counts)
        draw_histogram(canvas, histogram.edges_ns, histogram.counts, marks, beside)
