"""Busy share, core by time, as a full heat map; neighbours are grouped when there are more cores than lines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusetui.analysis.rows import RowQuery
from fusetui.analysis.snapshot import Snapshot
from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.charts.axis import draw_time_axis
from fusetui.app.charts.heat import draw_heat, draw_legend, group_rows
from fusetui.app.list_pane import ListPane
from fusetui.app.palette import Ink
from fusetui.app.panes.common import CORES_TEACH, shown, time_span
from fusetui.app.panes.cores_busy import mean_share, range_label

MAX_ITEM_LINES = 3


class CoresHeatPane(ListPane):
    TITLE = "Cores × time · busy"
    HELP = """Busy share of every core (down) over time (across), eight steps from 0 to 1.

Formula   busy share of a slot = union of [start_ns, end_ns) of the executions on the core, over the slot
Groups    when there are more cores than lines a line is the mean of neighbours, and its label a range
Blank     no data in that slot
Columns   start_ns, end_ns, host, device, core
Blind to  what a busy core achieves: waiting on memory counts as busy."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._spans: list[tuple[int, int]] = []

    def trust(self, snapshot: Snapshot) -> str:
        return f"{len(snapshot.cores.labels)} {snapshot.cores.level}s"

    def empty(self, snapshot: Snapshot) -> str | None:
        return None if snapshot.cores.labels else CORES_TEACH

    def keys(self, snapshot: Snapshot) -> Sequence[str]:
        labels = snapshot.cores.labels
        return [labels[first] for first, last in self._spans if last < len(labels)]

    def row_query(self, snapshot: Snapshot) -> RowQuery | None:
        return RowQuery(order="time", kind="execution", core_label=self.selected) if self.selected else None

    def draw(self, canvas: Canvas, snapshot: Snapshot) -> None:
        cores = snapshot.cores
        foot = 2 if canvas.height >= 5 else 0
        lines = canvas.height - foot
        data, self._spans = group_rows(shown(snapshot, cores.busy_share), lines, "mean")
        self.item_lines = max(1, min(MAX_ITEM_LINES, lines // max(1, len(self._spans))))
        used = len(self._spans) * self.item_lines
        label_cells = 10 if canvas.width >= 30 else 0
        value_cells = 5 if canvas.width >= 40 else 0
        left = label_cells + 1 if label_cells else 0
        heat = canvas.width - left - value_cells
        draw_heat(canvas.view(left, 0, heat, used), np.repeat(data, self.item_lines, axis=0), 0.0, 1.0, how="mean")
        means = mean_share(cores)
        for i, (first, last) in enumerate(self._spans):
            y = i * self.item_lines
            canvas.put(0, y, fmt.fit(range_label(cores.labels, first, last), label_cells), Ink.DIM)
            if value_cells:
                group = means[first : last + 1]
                canvas.put(canvas.width - 4, y, fmt.ratio(float(group.mean())))
        cursor = self.cursor(self.keys(snapshot))
        if cursor is not None and label_cells:
            canvas.view(0, 0, label_cells, used).select(cursor * self.item_lines)
        if foot:
            draw_time_axis(canvas.view(left, used, heat, 1), 0, *time_span(snapshot))
            draw_legend(canvas, left, used + 1, "0", "1")
