"""Bytes to and from device memory: every policy against the least that any plan needs."""

from __future__ import annotations

from fusetui.analysis.planned import Planned
from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.charts.bars import Bar, draw_bars
from fusetui.app.palette import DATA, Ink
from fusetui.app.panes.plan_pane import MODEL_NOTE, PlanPane, about_size


class PlanTrafficPane(PlanPane):
    TITLE = "DRAM traffic"
    HELP = f"""Bytes moved to and from device memory by the whole block, under each policy.

bound         every input and weight read once, every result written once: no plan moves less
none          unfused: every operator reads and writes device memory
×             bytes over the bound
{MODEL_NOTE}Blind to      data that is still in the cache from the block before, and compression."""

    def draw_plan(self, canvas: Canvas, plan: Planned) -> None:
        plans = plan.plans.plans
        bound = plan.plan.totals.dram_lower_bound_bytes
        most = max(bound, *(one.totals.dram_bytes for one in plans.values()), 1.0)
        bars = [Bar("bound", bound / most, about_size(bound), Ink.DIM, Ink.DIM)]
        for name, one in plans.items():
            chosen = name == plan.knobs.policy
            moved = one.totals.dram_bytes
            times = f"  {fmt.ratio(moved / bound)}×" if bound else ""
            label = f"{name} {canvas.glyphs.first}" if chosen else name
            ink = Ink.STRONG if chosen else Ink.FG
            bars.append(Bar(label, moved / most, f"{about_size(moved)}{times}", DATA, ink))
        draw_bars(canvas, bars, 14, 16)
