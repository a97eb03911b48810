"""Streams as a table: how much each ran, how long its work takes, and whether it gets its share."""

from __future__ import annotations

from collections.abc import Sequence

from fusetui.analysis.rows import RowQuery
from fusetui.analysis.snapshot import Fairness, Snapshot, StreamRow
from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.charts.bars import draw_meter
from fusetui.app.charts.table import Column, draw_header, draw_row, layout
from fusetui.app.list_pane import ListPane
from fusetui.app.palette import Ink
from fusetui.app.panes.common import quantile_text, stream_inks

_SHARE = 5
_COLUMNS = (
    Column("stream", 8, grow=True),
    Column("runs ", 5, right=True),
    Column("busy   ", 7, right=True, priority=1),
    Column("p95   ", 8, right=True),
    Column("p99   ", 8, right=True, priority=4),
    Column("", 8, priority=3, grow=True),
    Column("served", 6, right=True, priority=2),
)


class StreamsPane(ListPane):
    TITLE = "Streams · service"
    HELP = """What each stream executed in the window.

runs      executions; busy: union of their [start_ns, end_ns)
p95, p99  of service time = end_ns - start_ns, nearest rank
served    service time received over service time asked for (done and still open): below 100 % work is left over.
Jain      (Σx)² / (n Σx²) of served over asked for, among streams that have work waiting: 1 is fair.
worst     the stream that got the smallest share of what it asked for
Columns   stream, start_ns, end_ns, enqueue_ns
Blind to  priorities: a stream that is meant to yield looks unfairly treated."""
    head_lines = 1

    def trust(self, snapshot: Snapshot) -> str:
        return f"n {fmt.count(snapshot.executions).strip()}"

    def empty(self, snapshot: Snapshot) -> str | None:
        if snapshot.streams:
            return None
        return "No streams: no execution in this window names its queue (column stream)."

    def keys(self, snapshot: Snapshot) -> Sequence[str]:
        return [row.name for row in ordered(snapshot)]

    def row_query(self, snapshot: Snapshot) -> RowQuery | None:
        return RowQuery(order="service", kind="execution", stream=self.selected)

    def draw(self, canvas: Canvas, snapshot: Snapshot) -> None:
        rows = ordered(snapshot)
        names = [row.name for row in rows]
        foot = 1 if canvas.height >= 4 else 0
        shown = self.in_view(names, canvas.height - 1 - foot)
        places = layout(_COLUMNS, canvas.width)
        draw_header(canvas, 0, _COLUMNS, places)
        inks = stream_inks(snapshot)
        meter = next(((x, cells) for i, x, cells in places if i == _SHARE), (0, 0))
        for y, i in enumerate(shown, 1):
            share = rows[i].served_ns / rows[i].demand_ns if rows[i].demand_ns > 0 else float("nan")
            texts = _texts(rows[i], share)
            draw_row(canvas, y, _COLUMNS, places, texts, (inks[rows[i].name], *[Ink.FG] * 6))
            draw_meter(canvas, meter[0], y, meter[1], share)
        cursor = self.cursor(names)
        if cursor is not None and cursor in shown:
            canvas.select(1 + cursor - shown.start)
        if foot:
            canvas.put(0, len(shown) + 1, fairness_text(snapshot.fairness), Ink.DIM)


def ordered(snapshot: Snapshot) -> list[StreamRow]:
    """Streams by busy time, the busiest first; within a factor of two by name."""
    return sorted(snapshot.streams, key=lambda row: (-max(0, row.busy_ns).bit_length(), row.name))


def _texts(row: StreamRow, share: float) -> tuple[str, ...]:
    return (
        row.name,
        fmt.count(row.executions),
        fmt.duration(row.busy_ns),
        quantile_text(row.service, "p95"),
        quantile_text(row.service, "p99"),
        "",
        fmt.percent(share),
    )


def fairness_text(fairness: Fairness) -> str:
    """Jain's index and the worst stream in one line."""
    if fairness.jain is None:
        return f"Jain — {fairness.why}".rstrip()
    text = f"Jain {fmt.ratio(fairness.jain)} over {fairness.backlogged} backlogged"
    if fairness.worst_stream is not None:
        text += f", worst {fairness.worst_stream} {fmt.percent(fairness.worst_ratio).strip()}"
    return text
