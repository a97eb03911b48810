"""Queue wait, stream by time, as a full heat map."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusetui.analysis.rows import RowQuery
from fusetui.analysis.snapshot import Snapshot
from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.charts.axis import draw_time_axis
from fusetui.app.charts.heat import bounds, draw_heat, draw_legend
from fusetui.app.list_pane import ListPane
from fusetui.app.palette import Ink
from fusetui.app.panes.common import QUEUE_TEACHES, quantile_text, samples, shown, stream_inks, time_span
from fusetui.app.panes.queue_streams import ordered

MAX_ITEM_LINES = 4
"""A stream is at most this many lines tall where there is room: taller tells nothing more."""


class QueueHeatPane(ListPane):
    TITLE = "Queue wait · stream × time"
    HELP = """p99 of queue wait, streams down, time across; the maximum where a slot has fewer than 100 samples.

Formula   queue wait = max(0, start_ns - enqueue_ns)
Steps     eight, dark to light, from the least to the most shown; logarithmic over two decades (the legend says so)
Blank     no data in that slot
Columns   stream, enqueue_ns, start_ns, node
Blind to  work still waiting in a slot: it shows once it starts."""

    def trust(self, snapshot: Snapshot) -> str:
        return samples(snapshot.queue_wait)

    def empty(self, snapshot: Snapshot) -> str | None:
        return None if snapshot.queue_wait.n and snapshot.streams else QUEUE_TEACHES

    def keys(self, snapshot: Snapshot) -> Sequence[str]:
        return [row.name for row in ordered(snapshot)]

    def row_query(self, snapshot: Snapshot) -> RowQuery | None:
        return RowQuery(order="wait", kind="execution", stream=self.selected)

    def draw(self, canvas: Canvas, snapshot: Snapshot) -> None:
        rows = ordered(snapshot)
        names = [row.name for row in rows]
        foot = 2 if canvas.height >= 5 else 0
        lines = canvas.height - foot
        self.item_lines = max(1, min(MAX_ITEM_LINES, lines // len(names)))
        lines_shown = self.in_view(names, lines // self.item_lines)
        used = len(lines_shown) * self.item_lines
        label_cells = min(12, max(len(name) for name in names)) if canvas.width >= 24 else 0
        value_cells = 13 if canvas.width >= 50 else 0
        left = label_cells + 1 if label_cells else 0
        heat_cells = canvas.width - left - value_cells
        data = shown(snapshot, np.stack([row.heat_ns for row in rows]))
        low, high, log = bounds(data)
        part = np.repeat(data[lines_shown.start : lines_shown.stop], self.item_lines, axis=0)
        draw_heat(canvas.view(left, 0, heat_cells, used), part, low, high, log=log)
        inks = stream_inks(snapshot)
        for i in lines_shown:
            y = (i - lines_shown.start) * self.item_lines
            canvas.put(0, y, fmt.fit(names[i], label_cells), inks[names[i]])
            if value_cells:
                canvas.put(left + heat_cells + 1, y, f"p99 {quantile_text(rows[i].wait, 'p99')}")
        cursor = self.cursor(names)
        if cursor is not None and cursor in lines_shown:
            canvas.view(0, 0, max(1, label_cells), used).select((cursor - lines_shown.start) * self.item_lines)
        if foot:
            draw_time_axis(canvas.view(left, used, heat_cells, 1), 0, *time_span(snapshot))
            lowest = fmt.duration(low).strip() if low else "0"
            x = draw_legend(canvas, left, used + 1, lowest, fmt.duration(high).strip())
            canvas.put(x + 1, used + 1, "log" if log else "", Ink.DIM)
