"""Queue depth and in-flight age over time."""

from __future__ import annotations

import numpy as np

from fusetui.analysis.rows import RowQuery
from fusetui.analysis.snapshot import Snapshot
from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.charts.line import Series, draw_lines
from fusetui.app.palette import DATA, Ink
from fusetui.app.pane import Pane
from fusetui.app.panes.beside import titled, was_series
from fusetui.app.panes.common import QUEUE_TEACHES, over, shown, time_span


class DepthPane(Pane):
    TITLE = "Queue depth"
    HELP = """How much waited in the queues over time: executions enqueued and not yet started.

Formula   depth(t) = number of executions with enqueue_ns <= t < start_ns, time-weighted mean per slot
mean, p95 time-weighted over the window; max: the largest; now: at the right edge of the window
in flight age of the oldest work enqueued and still not started (a lower bound: it may wait longer)
dots      the baseline, where there is one; was: its mean
Columns   enqueue_ns, start_ns
Blind to  work whose enqueue was not recorded."""

    def title(self, snapshot: Snapshot | None) -> str:
        return titled(self.TITLE, self.baseline)

    def trust(self, snapshot: Snapshot) -> str:
        return f"n {fmt.count(snapshot.queue_wait.n).strip()}"

    def empty(self, snapshot: Snapshot) -> str | None:
        return None if np.isfinite(snapshot.depth_by_slot).any() or snapshot.open_waiting else QUEUE_TEACHES

    def row_query(self, snapshot: Snapshot) -> RowQuery | None:
        return RowQuery(order="wait", kind="execution")

    def draw(self, canvas: Canvas, snapshot: Snapshot) -> None:
        head = 1 if canvas.height >= 3 else 0
        if head:
            _draw_head(canvas, snapshot)
        label = f"now {fmt.count(snapshot.depth.now).strip()}"
        plot = canvas.view(0, head, canvas.width, canvas.height - head)
        series = [Series(shown(snapshot, snapshot.depth_by_slot), label, DATA, thick=True)]
        was = self.baseline
        if was is not None:
            series += was_series(snapshot, was, was.depth_by_slot, was.depth.mean)
        draw_lines(plot, series, time=time_span(snapshot))


def _draw_head(canvas: Canvas, snapshot: Snapshot) -> None:
    depth, slo = snapshot.depth, snapshot.header.slo_ns
    late = over(snapshot.oldest_open_ns, slo)
    x = 0
    for label, value in (("mean", depth.mean), ("p95", depth.p95), ("max", depth.max), ("now", depth.now)):
        x = canvas.put(x, 0, f"{label} ", Ink.DIM)
        x = canvas.put(x, 0, fmt.count(value)) + 1
    x = canvas.put(x, 0, "oldest ", Ink.DIM)
    age = snapshot.oldest_open_ns
    canvas.put(x, 0, fmt.lower_bound(age) + (" ▲" if late else ""), Ink.WARN if late else Ink.FG)
