"""Tail latency over time: p99, p95 and p50 with the objective."""

from __future__ import annotations

from fusetui.analysis.rows import RowQuery
from fusetui.analysis.snapshot import Snapshot
from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.charts.line import Limit, Series, draw_lines
from fusetui.app.charts.spark import draw_spark
from fusetui.app.palette import DATA, Ink
from fusetui.app.pane import Pane
from fusetui.app.panes.beside import titled, was_series
from fusetui.app.panes.common import over, quantile, samples, shown, time_span, unit_of


class TailPane(Pane):
    TITLE = "Tail latency"
    HELP = """Latency quantiles over the window, and per time slot as lines.

Formula   latency = end_ns - enqueue_ns (end_ns - start_ns where nothing was enqueued); nearest rank:
          the value at position ceil(q n) of the sorted latencies.
Of        requests (rows of kind request); without any in the window, executions. The title says which.
Unit      the one in the title; the labels at the right are of the whole window, the lines of each slot.
Columns   kind, enqueue_ns, start_ns, end_ns
┊         a mark (row of kind mark)
dots      p99 of the baseline, where there is one: over the same time since the beginning, or its level
≥         a lower bound: work still open is older than that.
—         p99 of the window is not told below 100 samples. In a slot of fewer than 100 the p99 line is the slowest
          one, of fewer than 20 the p95 line too. A gap in a line is a slot without any.
Blind to  work that was never enqueued or recorded; in slots with few requests p99 is close to the maximum."""

    def title(self, snapshot: Snapshot | None) -> str:
        if snapshot is None:
            return self.TITLE
        return titled(f"{self.TITLE} · {snapshot.latency_of}s · {self._unit(snapshot)[1]}", self._was(snapshot))

    def trust(self, snapshot: Snapshot) -> str:
        return samples(snapshot.latency)

    def empty(self, snapshot: Snapshot) -> str | None:
        if snapshot.latency.n:
            return None
        return (
            "No latency: nothing in this window has both an end and a beginning (columns start_ns or enqueue_ns, "
            "and end_ns).\nSend rows of kind request to see what users wait for."
        )

    def row_query(self, snapshot: Snapshot) -> RowQuery | None:
        return RowQuery(order="latency", kind=snapshot.latency_of)

    def draw(self, canvas: Canvas, snapshot: Snapshot) -> None:
        scale = self._unit(snapshot)[0]
        slo = snapshot.header.slo_ns
        lines = snapshot.latency_series
        series = [
            Series(shown(snapshot, lines.p99_ns), self._label(snapshot, "p99", scale), self._ink(snapshot), thick=True),
            Series(shown(snapshot, lines.p95_ns), self._label(snapshot, "p95", scale), DATA),
            Series(shown(snapshot, lines.p50_ns), self._label(snapshot, "p50", scale), Ink.DIM),
        ]
        was = self._was(snapshot)
        if was is not None:
            series += was_series(snapshot, was, was.latency_series.p99_ns, was.latency.p99_ns, scale)
        limit = None if slo is None else Limit(float(slo), f"SLO  {fmt.short(slo / scale):>4}", Ink.WARN)
        if canvas.width < 44 or canvas.height < 3:
            self._draw_values(canvas, snapshot)
            canvas = canvas.view(0, 1, canvas.width, canvas.height - 1)
            if canvas.height < 2:
                draw_spark(canvas, 0, 0, canvas.width, shown(snapshot, lines.p99_ns), self._ink(snapshot))
                return
        marks = [mark.at_ns for mark in snapshot.marks]
        draw_lines(canvas, series, unit=scale, limit=limit, time=time_span(snapshot), marks=marks)
        if snapshot.latency.p99_ns is None and canvas.width >= 44:
            canvas.put(7, 0, fmt.clip(snapshot.latency.why, canvas.width - 20), Ink.DIM)

    def _was(self, snapshot: Snapshot) -> Snapshot | None:
        """The baseline, where latency is of the same there."""
        was = self.baseline
        return was if was is not None and was.latency_of == snapshot.latency_of else None

    def _unit(self, snapshot: Snapshot) -> tuple[float, str]:
        return unit_of((snapshot.latency.p99_ns, snapshot.latency.p95_ns, snapshot.latency.p50_ns))

    def _ink(self, snapshot: Snapshot) -> int:
        return Ink.BREACH if over(snapshot.latency.p99_ns, snapshot.header.slo_ns) else Ink.STRONG

    def _label(self, snapshot: Snapshot, name: str, scale: float) -> str:
        value, bound = quantile(snapshot.latency, name)
        mark = "≥" if bound else " "
        breach = " ✗" if name == "p99" and over(value, snapshot.header.slo_ns) else ""
        return f"{name} {mark}{fmt.number(None if value is None else value / scale)}{breach}"

    def _draw_values(self, canvas: Canvas, snapshot: Snapshot) -> None:
        x = 0
        for name, ink in (("p99", self._ink(snapshot)), ("p95", DATA), ("p50", Ink.DIM)):
            value, bound = quantile(snapshot.latency, name)
            breach = name == "p99" and over(value, snapshot.header.slo_ns)
            x = canvas.put(x, 0, f"{name}{fmt.bounded(value, bound)}{' ✗' if breach else '  '} ", ink)
