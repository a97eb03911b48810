"""Distribution of latency, with the quantiles and the objective marked."""

from __future__ import annotations

from fusetui.analysis.rows import RowQuery
from fusetui.analysis.snapshot import Snapshot
from fusetui.app.canvas import Canvas
from fusetui.app.charts.histogram import draw_histogram
from fusetui.app.pane import Pane
from fusetui.app.panes.common import histogram_marks, samples


class TailHistogramPane(Pane):
    TITLE = "Latency distribution"
    HELP = """How many requests (or executions, the title says which) had which latency, over the window.

Axis      duration, logarithmic; the height is linear, the fullest column reaches the top.
Marks     p50, p95, p99 (nearest rank) and the objective (SLO)
Columns   kind, enqueue_ns, start_ns, end_ns
Blind to  work still open: it has no latency yet and is in the quantiles only, as a lower bound."""

    def title(self, snapshot: Snapshot | None) -> str:
        return self.TITLE if snapshot is None else f"{self.TITLE} · {snapshot.latency_of}s"

    def trust(self, snapshot: Snapshot) -> str:
        return samples(snapshot.latency)

    def empty(self, snapshot: Snapshot) -> str | None:
        if snapshot.latency_histogram.counts.any():
            return None
        return "No finished request or execution in this window: its rows need end_ns and start_ns or enqueue_ns."

    def row_query(self, snapshot: Snapshot) -> RowQuery | None:
        return RowQuery(order="latency", kind=snapshot.latency_of)

    def draw(self, canvas: Canvas, snapshot: Snapshot) -> None:
        histogram = snapshot.latency_histogram
        marks = histogram_marks(snapshot.latency, snapshot.header.slo_ns)
        draw_histogram(canvas, histogram.edges_ns, histogram.counts, marks)
