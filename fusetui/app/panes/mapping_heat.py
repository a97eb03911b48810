"""Which mapping ran for every plan and shape over time, with the recompiles above."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.cells import cell_len

from fusetui.analysis.mapping import WAYS
from fusetui.analysis.rows import RowQuery
from fusetui.analysis.snapshot import Snapshot
from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.charts.axis import draw_time_axis
from fusetui.app.charts.resample import Floats, columns
from fusetui.app.charts.ways import draw_way_legend, draw_ways
from fusetui.app.list_pane import ListPane
from fusetui.app.palette import Ink
from fusetui.app.panes.common import shown, time_span
from fusetui.app.panes.mapping_common import BucketPane, bucket_query
from fusetui.app.panes.mapping_rows import MapLine, map_lines, share_known

MAX_ITEM_LINES = 3
_COMPILE = "◆"
_LABEL_CELLS = 30


class MappingHeatPane(BucketPane, ListPane):
    TITLE = "Mapping · shape × time"
    HELP = """What ran for each plan and shape (down) over time (across), by size and plan, at most 63 and the others.

Groups    when there are more than lines a line stands for neighbours in size, its label is a range
Cell      the mapping that most executions of the slots under it had, told by glyph and colour
          planned: the plan made for this size ran; adapted: a plan for another size, padded or retuned;
          fallback: the generic path; unmapped: the rows do not say
Blank     nothing of this plan and shape ended in that slot
◆         a recompile in that slot, of any shape: a mark named so, or an execution named so where no mark is
hit       planned / (planned + adapted + fallback) of the whole window
Columns   plan, shape, mapping, start_ns, end_ns; name and value of marks for recompiles
Blind to  a minority: a slot with 40 % fallback looks planned. The shares over time show it."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._lines: list[MapLine] = []

    def keys(self, snapshot: Snapshot) -> Sequence[str]:
        return [line.label for line in self._lines]

    def row_query(self, snapshot: Snapshot) -> RowQuery | None:
        at = self.cursor(self.keys(snapshot))
        chosen = () if at is None else self._lines[at].buckets
        detail = snapshot.mapping_detail
        return bucket_query(detail, [i for i in chosen if i < len(detail.plans)])

    def draw(self, canvas: Canvas, snapshot: Snapshot) -> None:
        detail = snapshot.mapping_detail
        foot = 2 if canvas.height >= 5 else 0
        head = self.head_lines = 1 if canvas.height >= 6 and detail.compiles_by_slot.any() else 0
        room = canvas.height - foot - head
        self._lines = map_lines(detail, room)
        self.item_lines = max(1, min(MAX_ITEM_LINES, room // max(1, len(self._lines))))
        longest = max((cell_len(line.label) for line in self._lines), default=0)
        label = min(longest, _LABEL_CELLS, canvas.width // 3) if canvas.width >= 24 else 0
        values = 7 if canvas.width >= 50 else 0
        left = label + 1 if label else 0
        heat = canvas.width - left - values
        if head:
            _draw_compiles(canvas, left, heat, shown(snapshot, detail.compiles_by_slot.astype(np.float64)))
        used = len(self._lines) * self.item_lines
        draw_ways(canvas.view(left, head, heat, used), np.repeat(self._counts(snapshot), self.item_lines, axis=0))
        for i, line in enumerate(self._lines):
            y = head + i * self.item_lines
            canvas.put(0, y, fmt.fit(line.label, label), Ink.FG)
            if values:
                canvas.put(left + heat + 1, y, fmt.percent(share_known(detail, line.buckets)), Ink.DIM)
        cursor = self.cursor(self.keys(snapshot))
        if cursor is not None:
            canvas.view(0, head, max(1, label), used).select(cursor * self.item_lines)
        if foot:
            draw_time_axis(canvas.view(left, head + used, heat, 1), 0, *time_span(snapshot))
            draw_way_legend(canvas, left, head + used + 1, WAYS)
            if values:
                canvas.put_right(canvas.width, head + used + 1, "hit", Ink.DIM)

    def _counts(self, snapshot: Snapshot) -> Floats:
        """[lines, S, W] executions of the slots that are shown."""
        by_way = np.moveaxis(snapshot.mapping_detail.counts_by_slot.astype(np.float64), 1, 2)
        counts = np.moveaxis(shown(snapshot, by_way), 2, 1)
        return np.stack([counts[list(line.buckets)].sum(axis=0) for line in self._lines])


def _draw_compiles(canvas: Canvas, left: int, width: int, by_slot: Floats) -> None:
    """A line of marks where plans were made; what it is called stands before it, where there is room."""
    if left > len("recompiles"):
        canvas.put(0, 0, "recompiles", Ink.DIM)
    for x in np.flatnonzero(np.nan_to_num(columns(by_slot, width, "max"), nan=0.0) > 0).tolist():
        canvas.put(left + x, 0, _COMPILE, Ink.WARN)
