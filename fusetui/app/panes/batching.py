"""The batching gate as it was measured: how full batches were, and how long requests waited for others of theirs."""

from __future__ import annotations

import numpy as np

from fusetui.analysis.attribution.parts import GATE
from fusetui.analysis.rows import RowQuery
from fusetui.analysis.snapshot import Snapshot
from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.charts.facts import Fact, draw_facts
from fusetui.app.charts.line import Limit, Series, draw_lines
from fusetui.app.palette import DATA, Ink
from fusetui.app.pane import Pane
from fusetui.app.panes.common import shown, time_span

_CHART_FROM = 3


class BatchingPane(Pane):
    TITLE = "Batching"
    HELP = """How full batches were, and what the gate before the queue cost.

batch      mean `batch` of the executions of a slot: the line; the fact is the mean over slots, and the largest slot
largest    the largest batch that ran as planned or adapted: the dashed line
fill       mean batch / largest
gate       time from a request's enqueue to the first launch of its work: mean of the slowest (at or above p95), and of
           the median (p45 to p55)
Columns    batch, mapping, enqueue_ns, launch_ns, request
Blind to   batches that could have been larger: a gate that waits longer fills them, see What-if (8)."""

    def trust(self, snapshot: Snapshot) -> str:
        time = snapshot.tail_time
        return "" if time is None else f"n {fmt.count(time.items).strip()}"

    def empty(self, snapshot: Snapshot) -> str | None:
        return None if batch_known(snapshot) else "No batch: no execution tells how many rows it took (column batch)."

    def row_query(self, snapshot: Snapshot) -> RowQuery | None:
        return RowQuery(order="time", kind="execution") if batch_known(snapshot) else None

    def draw(self, canvas: Canvas, snapshot: Snapshot) -> None:
        detail, time = snapshot.mapping_detail, snapshot.tail_time
        known = detail.batch_by_slot[~np.isnan(detail.batch_by_slot)]
        mean, largest = float(known.mean()), detail.largest_planned
        gate = (None, None) if time is None else (time.tail.mean_ns[GATE], time.median.mean_ns[GATE])
        facts = [
            Fact("batch", fmt.number(mean), Ink.STRONG),
            Fact("most", fmt.number(float(known.max()))),
            Fact("fill", fmt.percent(mean / largest if largest else None), Ink.STRONG),
            Fact("largest", fmt.count(largest)),
            Fact("gate tail", fmt.duration(gate[0]), Ink.STRONG),
            Fact("gate med.", fmt.duration(gate[1])),
        ]
        room = max(1, canvas.height - _CHART_FROM)
        used = draw_facts(canvas.view(0, 0, canvas.width, room), facts, 8)
        limit = Limit(float(largest), f"plan {fmt.count(largest).strip()}", Ink.DIM) if largest else None
        line = Series(shown(snapshot, detail.batch_by_slot), "batch", DATA)
        draw_lines(
            canvas.view(0, used, canvas.width, canvas.height - used), [line], limit=limit, time=time_span(snapshot)
        )


def batch_known(snapshot: Snapshot) -> bool:
    """Whether any execution of the window tells its batch."""
    return bool((~np.isnan(snapshot.mapping_detail.batch_by_slot)).any())
