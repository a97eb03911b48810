"""The block as a graph, operators boxed by the group they run in."""

from __future__ import annotations

from fusetui.analysis.planned import Planned
from fusetui.analysis.snapshot import Snapshot
from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.charts.flow import Box, draw_flow
from fusetui.app.palette import stream_ink
from fusetui.app.panes.plan_pane import MODEL_NOTE, GroupListPane, group_label


class PlanGraphPane(GroupListPane):
    TITLE = "Block"
    HELP = f"""The block from left to right: a frame is a group of the plan, one kernel, with its operators.

g1 …      the group's label, the same in every pane; behind it its modelled time, ▲ where what ran does not fit it
─▸        what one group computes and the next one reads; ◂ g2 at the bottom of a frame: read from further back
Colour    tells neighbouring groups apart and means nothing else
Keys      up and down move from group to group; what does not fit is named on the last line and comes with the cursor
{MODEL_NOTE}Blind to  weights and inputs of the block, which no operator of it computes."""

    def title(self, snapshot: Snapshot | None) -> str:
        plan = self.board.today if self.board else None
        if plan is None:
            return f"{self.TITLE} · {self.UNITS}"
        return f"{plan.graph.name} · {plan.plan.policy} · {len(plan.plan.groups)} groups · {self.UNITS}"

    def draw_plan(self, canvas: Canvas, plan: Planned) -> None:
        home = {op: i for i, group in enumerate(plan.plan.groups) for op in group.ops}
        edges = set()
        for op in plan.graph.operators:
            for name in op.inputs:
                if name in plan.graph.producer:
                    source = home[plan.graph.operators[plan.graph.producer[name]].name]
                    if source != home[op.name]:
                        edges.add((source, home[op.name]))
        draw_flow(canvas, _boxes(plan), sorted(edges), self.cursor(self.items()))


def _boxes(plan: Planned) -> list[Box]:
    boxes = []
    for i, row in enumerate(plan.rows):
        group = row.plan
        mark = " ▲" if row.verdict in ("slower", "unexplained") else ""
        time = "" if group.pattern == "view" else f"≈{fmt.duration(group.predicted_ns).strip()}{mark}"
        boxes.append(Box(group_label(i), time, group.ops, stream_ink(i % 7)))
    return boxes
