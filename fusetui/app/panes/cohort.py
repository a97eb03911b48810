"""What the tail is made of: the slowest work beside the median, stage by stage."""

from __future__ import annotations

from fusetui.analysis.rows import RowQuery
from fusetui.analysis.snapshot import Snapshot, TailCohort
from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.charts.bars import bar_text
from fusetui.app.charts.table import Column, draw_header, draw_row, layout
from fusetui.app.palette import Ink
from fusetui.app.pane import Pane

_BAR = 1
_COLUMNS = (
    Column("", 8),
    Column("", 8, grow=True),
    Column("slowest", 7, right=True),
    Column("share ", 6, right=True, priority=2),
    Column("median ", 7, right=True, priority=3),
    Column("factor", 6, right=True, priority=1),
)
_QUEUE_INK = Ink.STREAM_1 + 1
_SERVICE_INK = Ink.STREAM_1


class CohortPane(Pane):
    TITLE = "What the tail is made of"
    HELP = """Mean time per stage of the slowest work, beside that of the median.

slowest   items at or above p95 of latency; median: items up to p50. An item is a request, or an execution
          when there are no requests.
queue     mean queue wait of an item; service: mean service time. The stages of an item add up to its latency.
share     of the slowest items' latency; factor: slowest over median. The stage with the largest factor is where
          the tail leaves the rest.
Bars      to one scale; the second, dim bar of a stage is the median
Columns   enqueue_ns, start_ns, end_ns, request
Blind to  causes: a stage where time is spent is not always the one to blame."""

    def trust(self, snapshot: Snapshot) -> str:
        if snapshot.cohort is None:
            return ""
        # Cohorts need rows: of a window with more than are kept for exact numbers they are of the newest.
        newest = "" if snapshot.latency.exact else " of the newest"
        return f"n {fmt.count(snapshot.cohort.n).strip()}{newest}"

    def empty(self, snapshot: Snapshot) -> str | None:
        if snapshot.cohort is not None:
            return None
        return "Too little finished work tells how long it waited to set the slowest 5 % apart (column enqueue_ns)."

    def row_query(self, snapshot: Snapshot) -> RowQuery | None:
        return RowQuery(order="latency", kind=snapshot.cohort.of) if snapshot.cohort else None

    def draw(self, canvas: Canvas, snapshot: Snapshot) -> None:
        cohort = snapshot.cohort
        if cohort is None:
            return
        places = layout(_COLUMNS, canvas.width)
        head = 1 if canvas.height >= 3 else 0
        if head:
            draw_header(canvas, 0, _COLUMNS, places)
            room = next((cells for i, _, cells in places if i == _BAR), 0)
            canvas.put(0, 0, fmt.clip(f"{cohort.of}s ≥ p95", 9 + room), Ink.DIM)
        tall = 3 if canvas.height >= 9 else 2 if canvas.height >= 7 else 1
        for i, (stage, slow, median, ink) in enumerate(_stages(cohort)):
            y = head + i * tall
            _draw_stage(canvas, y, places, (stage, slow, median, ink), cohort, tall > 1)


def _stages(cohort: TailCohort) -> list[tuple[str, float, float, int]]:
    """(stage, mean of the slowest, mean of the median cohort, ink) in ns; the last one is the sum."""
    return [
        ("queue", cohort.queue_ns, cohort.median_queue_ns, _QUEUE_INK),
        ("service", cohort.service_ns, cohort.median_service_ns, _SERVICE_INK),
        (
            "latency",
            cohort.queue_ns + cohort.service_ns,
            cohort.median_queue_ns + cohort.median_service_ns,
            Ink.FG,
        ),
    ]


def _draw_stage(
    canvas: Canvas,
    y: int,
    places: list[tuple[int, int, int]],
    row: tuple[str, float, float, int],
    cohort: TailCohort,
    with_median: bool,
) -> None:
    stage, slow, median, ink = row
    total = cohort.queue_ns + cohort.service_ns
    top = max(total, cohort.median_queue_ns + cohort.median_service_ns)
    factor = fmt.number(slow / median if median > 0 else None)
    texts = (stage, "", fmt.duration(slow), fmt.percent(slow / total if total > 0 else None), fmt.duration(median))
    draw_row(
        canvas, y, _COLUMNS, places, (*texts, f"× {factor}"), (Ink.FG, Ink.FG, Ink.STRONG, Ink.FG, Ink.DIM, Ink.FG)
    )
    x, cells = next(((x, cells) for i, x, cells in places if i == _BAR), (0, 0))
    if cells and top > 0:
        canvas.put(x, y, bar_text(slow / top, cells, canvas.glyphs.rows), ink)
        if with_median:
            canvas.put(x, y + 1, bar_text(median / top, cells, canvas.glyphs.rows), Ink.DIM)
