"""Counters as a summary, of sources that send no work: what is in flight, brackets of latencies, rates and shares."""

from __future__ import annotations

from collections.abc import Sequence

from fusetui.analysis.snapshot import Snapshot
from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.charts.spark import draw_spark
from fusetui.app.charts.table import Column, draw_header, draw_row, layout
from fusetui.app.gauges import Reading, readings
from fusetui.app.list_pane import ListPane
from fusetui.app.palette import DATA, Ink
from fusetui.app.panes.common import shown

_SPARK = 2
_COLUMNS = (
    Column("", 16, grow=True),
    Column("of", 5, priority=3),
    Column("", 8, grow=True, priority=4),
    Column("now", 20, right=True),
    Column("n    ", 5, right=True, priority=2),
)


class GaugesPane(ListPane):
    TITLE = "In flight, brackets and rates"
    HELP = """Counters in the order in which one asks: requests in flight, latencies, rates, shares, then the rest.

[lo, hi]  a quantile lies between: all that a histogram of buckets tells. n: observations behind it
≥         it lies in the last bucket: nothing tells how far above
—         stale: nothing came for three times as long as it usually takes, or the bound has ended
Shape     each on its own scale from 0 to its largest value; of a bracket the upper bound; a blank is no reading
Columns   kind = counter, name, value, unit, device
Blind to  single requests: counters do not tell which one was slow, nor why."""
    head_lines = 1

    def trust(self, snapshot: Snapshot) -> str:
        return f"n {fmt.count(snapshot.counters).strip()}"

    def empty(self, snapshot: Snapshot) -> str | None:
        return None if snapshot.counter_rows else "No counters in this window (rows of kind counter)."

    def keys(self, snapshot: Snapshot) -> Sequence[str]:
        return [f"{one.name} {one.device}" for one in readings(snapshot)]

    def draw(self, canvas: Canvas, snapshot: Snapshot) -> None:
        found = readings(snapshot)
        keys = [f"{one.name} {one.device}" for one in found]
        view = self.in_view(keys, canvas.height - 1)
        columns = _COLUMNS if any(one.device for one in found) else (_COLUMNS[0], Column("", 0), *_COLUMNS[2:])
        places = layout(columns, canvas.width)
        draw_header(canvas, 0, columns, places)
        spark = next(((x, cells) for i, x, cells in places if i == _SPARK), None)
        for y, i in enumerate(view, 1):
            one = found[i]
            draw_row(canvas, y, columns, places, _texts(one), _inks(one))
            if spark is not None:
                high = 100.0 if one.row.unit == "%" else None
                ink = Ink.DIM if one.stale else DATA
                draw_spark(canvas, spark[0], y, spark[1], shown(snapshot, one.by_slot), ink, how="mean", high=high)
        cursor = self.cursor(keys)
        if cursor is not None and cursor in view:
            canvas.select(1 + cursor - view.start)


def _texts(one: Reading) -> tuple[str, ...]:
    n = "" if one.n is None else fmt.count(one.n)
    return one.name, one.device, "", f"{fmt.DASH} stale" if one.stale else one.text, n


def _inks(one: Reading) -> tuple[int, ...]:
    if one.stale:
        return (Ink.DIM,) * len(_COLUMNS)
    return (Ink.STRONG if one.rank == 0 else Ink.FG, Ink.DIM, Ink.FG, Ink.STRONG, Ink.DIM)
