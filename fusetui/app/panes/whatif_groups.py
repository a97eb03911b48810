"""Which groups the knobs change: merged, split, tiled anew, limited by something else."""

from __future__ import annotations

from dataclasses import dataclass

from fusetui.accelerator.plan import GroupPlan, Plan
from fusetui.analysis.planned import Planned
from fusetui.analysis.snapshot import Snapshot
from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.charts.table import Column, draw_header, draw_row, layout
from fusetui.app.list_pane import ListPane
from fusetui.app.palette import Ink
from fusetui.app.panes.plan_groups import tile_text
from fusetui.app.panes.plan_pane import MODEL_NOTE, PlanPane, about, draw_problem, group_label
from fusetui.app.planner import Answer

_COLUMNS = (
    Column("group", 5),
    Column("operators", 12, priority=2, grow=True),
    Column("≈ today", 8, right=True, priority=3),
    Column("≈ then", 8, right=True, priority=1),
    Column("diff", 7, right=True),
    Column("what changed", 17, grow=True),
)


@dataclass(frozen=True, slots=True)
class Change:
    """A group of the plan under the knobs. today_ns: modelled time today of the same operators, None: they were in
    kernels with others; what: how it differs from the groups it comes from, "" where at most its time does."""

    group: GroupPlan
    today_ns: float | None
    what: str


class WhatIfGroupsPane(PlanPane, ListPane):
    TITLE = "Groups then"
    HELP = f"""The groups under the knobs, and how each came about.

merged     its operators are several groups today; split: part of one group today; regrouped: parts of several
re-tiled   the same operators with another tile; limited by: another bottleneck
≈ today    modelled time today of the same operators; — where they share kernels with others
diff       then / today - 1
{MODEL_NOTE}Blind to   differences inside a kernel other than its tile."""
    head_lines = 1

    def keys(self, snapshot: Snapshot | None) -> list[str]:
        answer = self.board.answer if self.board else None
        plan = answer.predicted if answer else None
        return [] if plan is None else [group_label(i) for i in range(len(plan.rows))]

    def items(self) -> list[str]:
        return self.keys(self.snapshot)

    def marked(self, answer: Answer) -> Planned | None:
        return answer.predicted or answer.today

    def draw_answer(self, canvas: Canvas, answer: Answer) -> None:
        if answer.today is None or answer.predicted is None:
            draw_problem(canvas, answer.problem)
            return
        changes = changes_of(answer.today.plan, answer.predicted.plan)
        places = layout(_COLUMNS, canvas.width)
        draw_header(canvas, 0, _COLUMNS, places)
        keys = self.items()
        shown = self.in_view(keys, canvas.height - 1)
        for i in shown:
            change = changes[i]
            share = change.group.predicted_ns / change.today_ns - 1 if change.today_ns else None
            ink = Ink.STRONG if change.what else Ink.FG
            texts = (
                keys[i],
                " ".join(change.group.ops),
                about(change.today_ns) if change.today_ns else fmt.DASH,
                about(change.group.predicted_ns) if change.group.predicted_ns else fmt.DASH,
                "same" if share is not None and abs(share) < 5e-4 else fmt.signed(share),
                change.what or ("same kernel" if change.group.predicted_ns else "no kernel"),
            )
            inks = (ink, Ink.FG, Ink.FG, Ink.FG, ink, ink if change.what else Ink.DIM)
            draw_row(canvas, 1 + i - shown.start, _COLUMNS, places, texts, inks)
        cursor = self.cursor(keys)
        if cursor is not None and cursor in shown:
            canvas.select(1 + cursor - shown.start)
        if not shown:
            canvas.put(0, 0, fmt.clip(f"{len(keys)} groups", canvas.width), Ink.DIM)


def changes_of(today: Plan, then: Plan) -> list[Change]:
    """Every group of `then`, told by the groups of `today` that its operators are in."""
    home = {op: i for i, group in enumerate(today.groups) for op in group.ops}
    changes = []
    for group in then.groups:
        sources = sorted({home[op] for op in group.ops if op in home})
        old = [today.groups[i] for i in sources]
        alike = sum(len(one.ops) for one in old) == len(group.ops)
        time = sum(one.predicted_ns for one in old) if old and alike else None
        changes.append(Change(group, time, _what(group, old, [group_label(i) for i in sources])))
    return changes


def _what(group: GroupPlan, old: list[GroupPlan], labels: list[str]) -> str:
    ops = set(group.ops)
    before = {op for one in old for op in one.ops}
    if not old or not ops <= before:
        return "new operators"
    if len(old) > 1:
        return f"{'merged' if ops == before else 'regrouped'} {'+'.join(labels)}"
    parts = [] if ops == before else [f"split from {labels[0]}"]
    if ops == before and tile_text(group) != tile_text(old[0]):
        parts.append(f"re-tiled {tile_text(old[0])} → {tile_text(group)}")
    if group.bottleneck != old[0].bottleneck:
        parts.append(f"limited by {old[0].bottleneck} → {group.bottleneck}")
    return ", ".join(parts)
