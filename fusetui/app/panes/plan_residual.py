"""What was measured against what the model said, and what has no place in the graph."""

from __future__ import annotations

from fusetui.analysis.planned import Captured, GroupRow
from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.palette import Ink
from fusetui.app.pane import draw_text
from fusetui.app.panes.plan_groups import verdict_text
from fusetui.app.panes.plan_pane import MODEL_NOTE, PlanPane, about, group_label
from fusetui.app.planner import Answer

_TEXT_CELLS = 48
_FULL = 1.0


class PlanResidualPane(PlanPane):
    TITLE = "Predicted and measured"
    HELP = f"""Every group of which something ran: modelled time, measured median, and their difference.

residual    measured p50 / modelled - 1; the bar is full at ±100 %, left of the middle: faster than modelled
explained   device time of the executions that are in the graph, of all executions looked at
no place    the largest of the others: kernels that no operator of the graph stands for
{MODEL_NOTE}Blind to    why: a residual tells where model and device disagree, not which of them is at fault."""

    def draw_answer(self, canvas: Canvas, answer: Answer) -> None:
        plan = answer.today
        if plan is None or not any(row.measured for row in plan.rows):
            draw_text(canvas, _teach(answer))
            return
        rows = [(i, row) for i, row in enumerate(plan.rows) if row.measured]
        tail = _tail_lines(plan.captured) if plan.captured else []
        room = max(1, canvas.height - min(len(tail), max(0, canvas.height - len(rows), canvas.height // 3)))
        # The largest first: with little room the groups that fit the model can wait.
        rows.sort(key=lambda item: -abs(item[1].residual or 0.0))
        for y, (i, row) in enumerate(rows[:room]):
            _draw_row(canvas.view(0, y, canvas.width, 1), i, row)
        for y, line in enumerate(tail, min(room, len(rows))):
            canvas.put(0, y, fmt.clip(line, canvas.width), Ink.DIM)


def _draw_row(line: Canvas, index: int, row: GroupRow) -> None:
    measured = row.measured.p50_ns if row.measured else None
    text = f"{group_label(index):<4}{about(row.plan.predicted_ns)}  {fmt.duration(measured)}"
    x = line.put(0, 0, text)
    ink = Ink.WARN if row.verdict in ("slower", "unexplained") else Ink.FG
    x = line.put(x + 1, 0, fmt.fit(fmt.signed(row.residual), 7, right=True), ink)
    x = line.put(x + 1, 0, fmt.fit(verdict_text(row), 13), ink)
    half = (line.width - _TEXT_CELLS) // 2
    if half < 3 or row.residual is None:
        return
    middle = line.width - half - 1
    line.put(middle, 0, line.glyphs.axis, Ink.GRID)
    cells = max(1, round(min(_FULL, abs(row.residual)) * half)) if abs(row.residual) >= 0.005 else 0
    bar = line.glyphs.meter[0] * cells
    line.put(middle + 1 if row.residual > 0 else middle - cells, 0, bar, ink)


def _tail_lines(captured: Captured) -> list[str]:
    share = captured.explained_ns / captured.window_ns if captured.window_ns else None
    lines = [f"explained {fmt.percent(share).strip()} of {fmt.duration(captured.window_ns).strip()} on the device"]
    rest = [f"{name} {fmt.duration(ns).strip()}" for name, ns in captured.unexplained[:4]]
    if rest:
        lines.append(f"no place in the graph: {', '.join(rest)}")
    return [*lines, *captured.notes]


def _teach(answer: Answer) -> str:
    if isinstance(answer.capture, str):
        return f"Nothing measured: the plan is of a built-in block, not of this capture.\n{answer.capture}"
    if answer.start.block:
        return (
            "Nothing measured: the plan is of a built-in block. "
            "The operators of the capture are known: choose it as the block on the what-if screen (8)."
        )
    return "Nothing measured for any group." + "".join(f"\n{note}" for note in answer.capture.notes)
