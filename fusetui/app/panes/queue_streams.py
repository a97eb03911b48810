"""Queue wait by stream: when it was long, how long, and how much waits now."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusetui.analysis.rows import RowQuery
from fusetui.analysis.snapshot import Snapshot, StreamRow
from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.charts.axis import draw_time_axis
from fusetui.app.charts.heat import bounds, draw_heat
from fusetui.app.charts.table import Column, draw_header, draw_row, layout
from fusetui.app.list_pane import ListPane
from fusetui.app.palette import WAS, Ink
from fusetui.app.panes.common import QUEUE_TEACHES, over, quantile_text, samples, shown, stream_inks, time_span

_HEAT = 1
_P95 = 3
_COLUMNS = (
    Column("stream", 8),
    Column("", 12, grow=True, priority=3),
    Column("p99   ", 8, right=True),
    Column("p95   ", 8, right=True, priority=2),
    Column("depth", 5, right=True, priority=1),
    Column("oldest ", 8, right=True, priority=4),
)
_WAS = Column("p99 was ", 8, right=True, priority=2)


class QueueStreamsPane(ListPane):
    TITLE = "Queue wait by stream"
    HELP = """Queue wait of executions, a line per stream, the longest first (within a factor of two by name).

Formula   queue wait = max(0, start_ns - enqueue_ns); of a graph launch only the first node waits (column node).
Heat      p99 per time slot (the maximum where a slot has fewer than 100), dark to light from 0 to the largest seen
          in any stream; over two decades the steps are logarithmic.
depth     executions enqueued and not started: the 95th percentile over the window, weighted by time
p99 was   in the baseline, where there is one, in the place of p95
oldest    age of the oldest one still waiting; in the warning colour, and ▲ below, when older than the objective
Columns   stream, enqueue_ns, start_ns, node
≥         a lower bound: work still waiting is older than that.
Blind to  work that waits before it is handed to the runtime (batching, the host's own queues)."""
    head_lines = 1

    def trust(self, snapshot: Snapshot) -> str:
        return samples(snapshot.queue_wait)

    def empty(self, snapshot: Snapshot) -> str | None:
        return None if snapshot.queue_wait.n or snapshot.open_waiting else QUEUE_TEACHES

    def keys(self, snapshot: Snapshot) -> Sequence[str]:
        return [row.name for row in ordered(snapshot)]

    def row_query(self, snapshot: Snapshot) -> RowQuery | None:
        return RowQuery(order="wait", kind="execution", stream=self.selected)

    def draw(self, canvas: Canvas, snapshot: Snapshot) -> None:
        rows = ordered(snapshot)
        foot = 2 if canvas.height >= 6 else 1 if canvas.height >= 4 else 0
        lines = canvas.height - 1 - foot
        self.item_lines = 2 if lines >= 2 * len(rows) else 1
        lines_shown = self.in_view([row.name for row in rows], lines // self.item_lines)
        was = {row.name: row for row in self.baseline.streams} if self.baseline is not None else None
        # In the place of p95: beside a baseline what it was tells more.
        columns = _COLUMNS if was is None else (*_COLUMNS[:_P95], _WAS, *_COLUMNS[_P95 + 1 :])
        places = layout(columns, canvas.width)
        draw_header(canvas, 0, columns, places)
        inks = stream_inks(snapshot)
        for i in lines_shown:
            y = 1 + (i - lines_shown.start) * self.item_lines
            old = was.get(rows[i].name) if was is not None else None
            texts, row_inks = _texts(rows[i]), _row_inks(rows[i], snapshot, inks)
            if was is not None:
                then = f"{fmt.DASH:>5}" if old is None else quantile_text(old.wait, "p99")
                texts = (*texts[:_P95], then, *texts[_P95 + 1 :])
                row_inks = (*row_inks[:_P95], WAS, *row_inks[_P95 + 1 :])
            draw_row(canvas, y, columns, places, texts, row_inks)
        self._draw_heat(canvas, snapshot, rows, lines_shown, places)
        cursor = self.cursor([row.name for row in rows])
        if cursor is not None and cursor in lines_shown:
            canvas.select(1 + (cursor - lines_shown.start) * self.item_lines)
        if foot:
            y = 1 + len(lines_shown) * self.item_lines + (foot == 2)
            _draw_total(canvas, y, snapshot, len(rows) - len(lines_shown))

    def _draw_heat(
        self,
        canvas: Canvas,
        snapshot: Snapshot,
        rows: Sequence[StreamRow],
        lines_shown: range,
        places: Sequence[tuple[int, int, int]],
    ) -> None:
        place = next(((x, cells) for i, x, cells in places if i == _HEAT), None)
        if place is None or not lines_shown:
            return
        x, cells = place
        data = shown(snapshot, np.stack([row.heat_ns for row in rows]))
        low, high, log = bounds(data)
        part = np.repeat(data[lines_shown.start : lines_shown.stop], self.item_lines, axis=0)
        draw_heat(canvas.view(x, 1, cells, len(part)), part, low, high, log=log)
        ends = (fmt.duration(ns).replace(" ", "") if ns else "0" for ns in (low, high))
        legend = "–".join(ends) + (" log" if log else "")
        canvas.put(x, 0, fmt.clip(legend, cells), Ink.DIM)
        if canvas.height >= 6:
            draw_time_axis(canvas.view(x, len(part) + 1, cells, 1), 0, *time_span(snapshot))


def ordered(snapshot: Snapshot) -> list[StreamRow]:
    """Streams by queue wait, longest first; within a factor of two by name, so that lines do not swap at every tick."""

    def rank(row: StreamRow) -> tuple[int, str]:
        return -(row.wait.p99_ns or row.wait.max_ns or 0).bit_length(), row.name

    return sorted(snapshot.streams, key=rank)


def _texts(row: StreamRow) -> tuple[str, ...]:
    return (
        row.name,
        "",
        quantile_text(row.wait, "p99"),
        quantile_text(row.wait, "p95"),
        fmt.count(row.depth.p95),
        fmt.duration(row.oldest_open_ns, at_least=row.oldest_open_ns is not None),
    )


def _row_inks(row: StreamRow, snapshot: Snapshot, inks: dict[str, int]) -> tuple[int, ...]:
    late = over(row.oldest_open_ns, snapshot.header.slo_ns)
    return (inks[row.name], Ink.FG, Ink.STRONG, Ink.FG, Ink.FG, Ink.WARN if late else Ink.FG)


def _draw_total(canvas: Canvas, y: int, snapshot: Snapshot, hidden: int) -> None:
    if y >= canvas.height:
        return
    known = snapshot.open_waiting is not None
    text = f"waiting {fmt.count(snapshot.open_waiting).strip()}" if known else "waiting now: not told by this source"
    if snapshot.oldest_open_ns is not None:
        text += f", oldest {fmt.lower_bound(snapshot.oldest_open_ns)}"
    late = over(snapshot.oldest_open_ns, snapshot.header.slo_ns)
    x = canvas.put(0, y, f"{text} ▲" if late else text, Ink.WARN if late else Ink.DIM)
    if hidden > 0:
        canvas.put(x + 2, y, f"{hidden} more", Ink.DIM)
