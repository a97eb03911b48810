"""Counters: the latest value, the largest, and the shape over the window."""

from __future__ import annotations

from collections.abc import Sequence

from fusetui.analysis.snapshot import CounterRow, Snapshot
from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.charts.spark import draw_spark
from fusetui.app.charts.table import Column, draw_header, draw_row, layout
from fusetui.app.gauges import value_text
from fusetui.app.list_pane import ListPane
from fusetui.app.palette import DATA, Ink
from fusetui.app.panes.common import shown

_SPARK = 2
_COLUMNS = (
    Column("counter", 15, grow=True),
    Column("of", 5, priority=2),
    Column("", 8, grow=True, priority=3),
    Column("now    ", 9, right=True),
    Column("max    ", 9, right=True, priority=1),
)


class CountersPane(ListPane):
    TITLE = "Counters"
    HELP = """Counters that the source sends: the latest value, the largest in the window, and the mean per slot.

Columns   kind = counter, name, value, unit, device
stale     nothing came for three times as long as it usually takes; an upper bound ends where its lower one goes on: the
          quantile is in the last bucket then
Shape     each counter on its own scale from 0 to its largest value; a blank is a slot without a value
Blind to  what happened between two readings."""
    head_lines = 1

    def trust(self, snapshot: Snapshot) -> str:
        return f"n {fmt.count(snapshot.counters).strip()}"

    def empty(self, snapshot: Snapshot) -> str | None:
        if snapshot.counter_rows:
            return None
        return "No counters in this window: this source sends no rows of kind counter (columns name, value, unit)."

    def keys(self, snapshot: Snapshot) -> Sequence[str]:
        return [f"{row.name} {row.device}" for row in snapshot.counter_rows]

    def draw(self, canvas: Canvas, snapshot: Snapshot) -> None:
        rows, keys = snapshot.counter_rows, self.keys(snapshot)
        rows_shown = self.in_view(keys, canvas.height - 1)
        places = layout(_COLUMNS, canvas.width)
        draw_header(canvas, 0, _COLUMNS, places)
        spark = next(((x, cells) for i, x, cells in places if i == _SPARK), None)
        for y, i in enumerate(rows_shown, 1):
            row = rows[i]
            last = f"{fmt.DASH} stale" if row.stale else value_text(row.last, row.unit)
            texts = (row.name, row.device, "", last, value_text(row.max, row.unit))
            ink, loud = (Ink.DIM, Ink.DIM) if row.stale else (Ink.FG, Ink.STRONG)
            draw_row(canvas, y, _COLUMNS, places, texts, (ink, Ink.DIM, ink, loud, Ink.DIM))
            if spark is not None:
                draw_spark(
                    canvas, spark[0], y, spark[1], shown(snapshot, row.by_slot), DATA, how="mean", high=_top(row)
                )
        cursor = self.cursor(keys)
        if cursor is not None and cursor in rows_shown:
            canvas.select(1 + cursor - rows_shown.start)


def _top(row: CounterRow) -> float | None:
    return 100.0 if row.unit == "%" else None
