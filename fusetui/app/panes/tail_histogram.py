"""Distribution of latency, with the quantiles and the objective marked."""

from __future__ import annotations

from fusetui.analysis.rows import RowQuery
from fusetui.analysis.snapshot import Snapshot
from fusetui.app.canvas import Canvas
from fusetui.app.charts.histogram import draw_histogram
from fusetui.app.pane import Pane
from fusetui.app.panes.beside import titled
from fusetui.app.panes.common import histogram_marks, samples


class TailHistogramPane(Pane):
    TITLE = "Latency distribution"
    HELP = """How many requests (or executions, the title says which) had which latency, over the window.

Axis      duration, logarithmic; the height is linear, the fullest column reaches the top.
Marks     p50, p95, p99 (nearest rank) and the objective (SLO)
◦         the baseline, where there is one, as if it were as many
Columns   kind, enqueue_ns, start_ns, end_ns
Blind to  work still open: it has no latency yet and is in the quantiles only, as a lower bound."""

    def title(self, snapshot: Snapshot | None) -> str:
        return self.TITLE if snapshot is None else titled(f"{self.TITLE} · {snapshot.latency_of}s", self._was(snapshot))

    def _was(self, snapshot: Snapshot) -> Snapshot | None:
        """The baseline, where latency is of the same there."""
        was = self.baseline
        return was if was is not None and was.latency_of == snapshot.latency_of else None

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
        was = self._was(snapshot)
        beside = None if was is None else (was.latency_histogram.edges_ns, was.latency_histogram.counts)
        draw_histogram(canvas, histogram.edges_ns, histogram.counts, marks, beside)
