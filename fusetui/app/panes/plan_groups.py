"""The groups of the plan as a table: what each does, costs and saves, and what was measured of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.charts.table import Column, draw_header, draw_row, layout
from fusetui.app.palette import Ink
from fusetui.app.panes.plan_pane import MODEL_NOTE, GroupListPane, about, group_label

if TYPE_CHECKING:  # as in the base
    from fusetui.accelerator.plan import GroupPlan
    from fusetui.analysis.planned import GroupRow, Planned

_COLUMNS = (
    Column("group", 5),
    Column("operators", 14, grow=True),
    Column("tile", 13, priority=3),
    Column("≈ time", 8, right=True),
    Column("measured", 8, right=True, priority=1),
    Column("resid", 6, right=True, priority=1),
    Column("verdict", 13, priority=2),
    Column("launch", 6, right=True, priority=5),
    Column("reuse", 5, right=True, priority=6),
    Column("occ.", 6, right=True, priority=7),
    Column("limited by", 16, priority=4),
    Column("spill", 7, right=True, priority=8),
)
_MEASURED = (4, 5, 6)
_VERDICT_INKS = {"slower": Ink.WARN, "unexplained": Ink.WARN, "faster": Ink.FG, "fits": Ink.OK, "": Ink.DIM}


class PlanGroupsPane(GroupListPane):
    TITLE = "Fusion groups"
    HELP = f"""The groups of today's plan, one kernel each, in the order they run.

tile        m×n×k of the output tile of a matrix product, and /s for a reduction split into s parts
≈ time      modelled time on the device; measured: median (nearest rank) of what ran for the group
resid       measured / modelled - 1. fits: within the model's error bar; slower, faster: beyond it;
            unexplained: nothing that the model knows of explains it. — : nothing was measured
launch      launches the group saves: its operators that need a kernel, less one
reuse       1 - bytes filled from device memory / bytes served on chip
occ.        share of the threads that a core can hold which the kernel leaves room for
limited by  what limited its operators alone → what limits the group: launch, compute, dram, l2, spill
spill       bytes that found no register
Keys        up and down select a group, Enter shows the rows that were measured for it
{MODEL_NOTE}Blind to    kernels that a library picks by rules of its own, and everything that is not in the graph."""
    head_lines = 1

    def draw_plan(self, canvas: Canvas, plan: Planned) -> None:
        places = _places(plan, canvas.width)
        draw_header(canvas, 0, _COLUMNS, places)
        keys = self.items()
        views = {op.name for op in plan.graph.operators if op.is_view}
        shown = self.in_view(keys, canvas.height - 1)
        for i in shown:
            row = plan.rows[i]
            inks = [Ink.FG] * len(_COLUMNS)
            inks[0], inks[3] = Ink.STRONG, Ink.STRONG
            inks[5] = inks[6] = _VERDICT_INKS.get(row.verdict, Ink.FG)
            draw_row(canvas, 1 + i - shown.start, _COLUMNS, places, _texts(row, i, views), inks)
        cursor = self.cursor(keys)
        if cursor is not None and cursor in shown:
            canvas.select(1 + cursor - shown.start)


def _places(plan: Planned, width: int) -> list[tuple[int, int, int]]:
    """(column, x, cells) of what is shown: without a measurement there is nothing to compare with."""
    kept = [i for i in range(len(_COLUMNS)) if i not in _MEASURED or any(row.measured for row in plan.rows)]
    return [(kept[i], x, cells) for i, x, cells in layout([_COLUMNS[i] for i in kept], width)]


def _texts(row: GroupRow, index: int, views: set[str]) -> tuple[str, ...]:
    group, measured = row.plan, row.measured
    kernels = sum(op not in views for op in group.ops)
    return (
        group_label(index),
        " ".join(group.ops),
        tile_text(group),
        about(group.predicted_ns) if kernels else fmt.DASH,
        fmt.duration(measured.p50_ns if measured else None),
        fmt.signed(row.residual),
        verdict_text(row),
        f"−{kernels - 1}" if kernels > 1 else fmt.DASH,
        fmt.ratio(group.reuse_ratio) if kernels else fmt.DASH,
        fmt.percent(group.occupancy) if kernels else fmt.DASH,
        limits_text(group) if kernels else "no kernel",
        fmt.size(group.spill_bytes) if group.spill_bytes else fmt.DASH,
    )


def verdict_text(row: GroupRow) -> str:
    """The verdict as a word with its glyph; the dash when nothing was measured."""
    mark = {"slower": " ▲", "unexplained": " ▲", "fits": " ✓"}.get(row.verdict, "")
    return f"{row.verdict}{mark}" if row.verdict else fmt.DASH


def tile_text(group: GroupPlan) -> str:
    """`128×256×64`, with `/4` where the reduction is split into four parts."""
    tile = group.tile
    if tile is None:
        return fmt.DASH
    return f"{tile.m}×{tile.n}×{tile.k}" + (f"/{tile.split}" if tile.split > 1 else "")


def limits_text(group: GroupPlan) -> str:
    """`dram → compute`, or one word where fusion changed nothing."""
    before, after = group.bottleneck_before, group.bottleneck
    return after if before == after else f"{before} → {after}"
