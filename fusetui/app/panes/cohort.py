"""What the tail is made of: the slowest work beside the median, stage by stage."""

from __future__ import annotations

from fusetui.analysis.rows import RowQuery
from fusetui.analysis.snapshot import Snapshot, TailCohort
from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.charts.bars import Bar, draw_bars
from fusetui.app.palette import Ink
from fusetui.app.pane import Pane

_TEXT_CELLS = 26


class CohortPane(Pane):
    TITLE = "What the tail is made of"
    HELP = """Mean time per stage of the slowest work, beside that of the median.

Tail      items at or above p95 of latency; median: items up to p50. An item is a request, or an execution
          when there are no requests.
queue     mean queue wait of an item; service: mean service time. The stages of an item add up to its latency.
factor    tail over median: the stage with the larger factor is where the tail leaves the rest.
Columns   enqueue_ns, start_ns, end_ns, request
Blind to  causes: a stage where time is spent is not always the one to blame."""

    def trust(self, snapshot: Snapshot) -> str:
        return f"n {fmt.count(snapshot.cohort.n).strip()} ≥ p95" if snapshot.cohort else ""

    def empty(self, snapshot: Snapshot) -> str | None:
        if snapshot.cohort is not None:
            return None
        return "Not enough finished work to tell the slowest 5 % from the rest (columns enqueue_ns, start_ns, end_ns)."

    def row_query(self, snapshot: Snapshot) -> RowQuery | None:
        return RowQuery(order="latency", kind=snapshot.cohort.of) if snapshot.cohort else None

    def draw(self, canvas: Canvas, snapshot: Snapshot) -> None:
        cohort = snapshot.cohort
        if cohort is None:
            return
        bars = _bars(cohort)
        if canvas.height >= 5:
            head = "mean      share  × median"
            canvas.put_right(canvas.width, 0, fmt.fit(head, _TEXT_CELLS), Ink.DIM)
            canvas.put(0, 0, f"slowest 5 % of {cohort.of}s", Ink.DIM)
            canvas = canvas.view(0, 1, canvas.width, canvas.height - 1)
        elif canvas.height < 4:
            bars = bars[:2]
        draw_bars(canvas, bars, label_cells=14, text_cells=_TEXT_CELLS)


def _bars(cohort: TailCohort) -> list[Bar]:
    top = max(cohort.queue_ns, cohort.service_ns, cohort.median_queue_ns, cohort.median_service_ns)
    tail = cohort.queue_ns + cohort.service_ns
    median = cohort.median_queue_ns + cohort.median_service_ns

    def bar(label: str, ns: float, total: float, base: float | None, ink: int) -> Bar:
        share = fmt.percent(ns / total if total > 0 else None)
        factor = "" if base is None else f"×{fmt.number(ns / base if base > 0 else None)}"
        return Bar(label, ns / top if top > 0 else 0.0, f"{fmt.duration(ns)}  {share}  {factor}", ink)

    return [
        bar("queue   tail", cohort.queue_ns, tail, cohort.median_queue_ns, Ink.STREAM_1 + 1),
        bar("service tail", cohort.service_ns, tail, cohort.median_service_ns, Ink.STREAM_1),
        bar("queue   median", cohort.median_queue_ns, median, None, Ink.GRID),
        bar("service median", cohort.median_service_ns, median, None, Ink.GRID),
    ]
