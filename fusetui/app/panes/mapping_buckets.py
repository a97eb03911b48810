"""The plans and shapes of the window as a table: how often the plan fitted and what it cost where it did not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusetui.analysis.mapping import MappingDetail
from fusetui.analysis.rows import RowQuery
from fusetui.analysis.snapshot import Snapshot
from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.charts.table import Column, draw_header, draw_row, layout
from fusetui.app.list_pane import ListPane
from fusetui.app.palette import Ink
from fusetui.app.panes.mapping_common import BucketPane, bucket_names, bucket_query, cost, known, times

_COLUMNS = (
    Column("shape · plan", 16, grow=True),
    Column("runs", 5, right=True),
    Column("time ", 7, right=True, priority=1),
    Column("share ", 6, right=True, priority=5),
    Column("hit ", 6, right=True),
    Column("adapted ", 8, right=True, priority=9),
    Column("fallback", 8, right=True, priority=8),
    Column("padding", 7, right=True, priority=2),
    Column("compiles", 8, right=True, priority=6),
    Column("stall ", 7, right=True, priority=7),
    Column("accuracy", 8, right=True, priority=4),
    Column("gain", 6, right=True, priority=4),
    Column("fb cost ", 8, right=True, priority=3),
)


class MappingBucketsPane(BucketPane, ListPane):
    TITLE = "Plans and shapes"
    HELP = """Each plan and shape that ran in the window, most time first, at most 63 and the others.

runs, time   executions that ended in the window and their service time; share: of the time of all of them
hit          planned / (planned + adapted + fallback), of executions that carry a mapping; adapted, fallback alike
padding      Σ tokens that ran / Σ tokens asked for: × 1.50 is half as much again for nothing
compiles     recompiles that name the shape; stall: how long they took
accuracy     Σ n min(t, t of the best way) / Σ n t of planned work that also ran otherwise: 1 is the best
gain         Σ n t planned / Σ n t - 1 of adapted work that also ran planned, before the cost of switching
fb cost      Σ n (t - t of the best other way) of work that fell back; with − the fallback was the faster one
—            not known: t is the p50 of a way from 5 runs on, and all of the same work in one way tells nothing
Keys         up and down select a row, Enter shows its executions, slowest first
Columns      plan, shape, mapping, name, group, batch, request, start_ns, end_ns
Blind to     ways that never ran. Accuracy, gain and cost are of the rows kept when the window has more."""
    head_lines = 1

    def trust(self, snapshot: Snapshot) -> str:
        return f"{len(snapshot.mapping_detail.plans)} rows · {super().trust(snapshot)}"

    def keys(self, snapshot: Snapshot) -> Sequence[str]:
        return bucket_names(snapshot.mapping_detail)

    def row_query(self, snapshot: Snapshot) -> RowQuery | None:
        at = self.cursor(self.keys(snapshot))
        return bucket_query(snapshot.mapping_detail, [] if at is None else [at])

    def draw(self, canvas: Canvas, snapshot: Snapshot) -> None:
        detail = snapshot.mapping_detail
        names = self.keys(snapshot)
        places = _places(detail, canvas.width)
        draw_header(canvas, 0, _COLUMNS, places)
        view = self.in_view(names, canvas.height - 1)
        total_ns = float(detail.time_ns.sum())
        for i in view:
            texts, inks = _row(detail, i, names[i], total_ns)
            draw_row(canvas, 1 + i - view.start, _COLUMNS, places, texts, inks)
        cursor = self.cursor(names)
        if cursor is not None and cursor in view:
            canvas.select(1 + cursor - view.start)


def _places(detail: MappingDetail, width: int) -> list[tuple[int, int, int]]:
    """(column, x, cells) of what is shown: a column that nothing is known for gives its room to the others."""
    known = {
        7: not np.isnan(detail.padding).all(), 8: detail.compiles.any(), 9: detail.stall_ns.any(),
        10: not np.isnan(detail.accuracy).all(), 11: not np.isnan(detail.gain).all(),
        12: not np.isnan(detail.fallback_ns).all(),
    }  # fmt: skip
    kept = [i for i in range(len(_COLUMNS)) if known.get(i, True)]
    return [(kept[i], x, cells) for i, x, cells in layout([_COLUMNS[i] for i in kept], width)]


def _row(detail: MappingDetail, i: int, name: str, total_ns: float) -> tuple[tuple[str, ...], list[int]]:
    planned, adapted, fell, _ = (int(n) for n in detail.counts[i])
    told, time_ns = planned + adapted + fell, float(detail.time_ns[i].sum())
    hit = known(detail.hit_share[i])
    texts = (
        name,
        fmt.count(float(detail.counts[i].sum())),
        fmt.duration(time_ns),
        fmt.percent(time_ns / total_ns if total_ns else None),
        fmt.percent(hit),
        fmt.percent(adapted / told if told else None),
        fmt.percent(fell / told if told else None),
        times(known(detail.padding[i])),
        fmt.count(float(detail.compiles[i]) if detail.compiles[i] else None),
        fmt.duration(float(detail.stall_ns[i]) or None),
        fmt.ratio(known(detail.accuracy[i])),
        fmt.signed(known(detail.gain[i])),
        cost(known(detail.fallback_ns[i])),
    )
    inks = [int(Ink.FG)] * len(_COLUMNS)
    inks[4] = Ink.DIM if hit is None else Ink.STRONG
    if fell and fell == max(planned, adapted, fell):
        inks[6] = Ink.STRONG
    return texts, inks
