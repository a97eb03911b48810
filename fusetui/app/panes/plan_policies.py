"""The four policies side by side."""

from __future__ import annotations

from fusetui.accelerator.plan import Plan
from fusetui.analysis.planned import Planned
from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.charts.table import Column, draw_header, draw_row, layout
from fusetui.app.palette import Ink
from fusetui.app.panes.plan_pane import MODEL_NOTE, PlanPane, about

_COLUMNS = (
    Column("policy", 14),
    Column("≈ time", 8, right=True),
    Column("±", 5, right=True, priority=6),
    Column("launch", 6, right=True, priority=1),
    Column("exposed", 8, right=True, priority=3),
    Column("saved i", 7, right=True, priority=4),
    Column("ii", 6, right=True, priority=2),
    Column("×bound", 6, right=True, priority=1),
    Column("reuse", 5, right=True, priority=5),
    Column("peak", 7, right=True, priority=7),
    Column("burst", 6, right=True, priority=5),
    Column("search", 9, priority=8),
)


class PlanPoliciesPane(PlanPane):
    TITLE = "Policies"
    HELP = f"""The block under each fusion policy, today's marked with ◀.

none          every operator its own kernel; conservative: vector operators together, library kernels alone
balanced      least time; aggressive: fewest launches that are legal
≈ time ±      modelled time from the first launch call, and the error bar of the model
launch        kernels started; exposed: time the device waits for launches
saved i, ii   shares of the launches (i) and of the exposed launch time (ii) of `none` removed; only (ii) is latency
×bound        bytes moved to and from device memory over the least that any plan needs
reuse         1 - bytes filled from device memory / bytes served on chip
peak          most device memory that is live at once; burst: most of the bandwidth asked for at once, × the device's
search        proved: no legal partition is better under the model; "best seen" where the search was cut short
{MODEL_NOTE}Blind to      copies between host and device, and other work on the device."""

    def draw_plan(self, canvas: Canvas, plan: Planned) -> None:
        places = layout(_COLUMNS, canvas.width)
        draw_header(canvas, 0, _COLUMNS, places)
        for y, (name, one) in enumerate(plan.plans.plans.items(), 1):
            chosen = name == plan.knobs.policy
            inks = [Ink.STRONG if chosen else Ink.FG] * len(_COLUMNS)
            draw_row(canvas, y, _COLUMNS, places, _texts(one, chosen, canvas.glyphs.first), inks)
        if canvas.height > len(plan.plans.plans) + 2:
            text = f"{plan.graph.name}, {plan.plans.dtype}, {plan.plans.mode} launches"
            canvas.put(0, canvas.height - 1, fmt.clip(text, canvas.width), Ink.DIM)


def _texts(plan: Plan, chosen: bool, mark: str) -> tuple[str, ...]:
    totals = plan.totals
    bound = totals.dram_bytes / totals.dram_lower_bound_bytes if totals.dram_lower_bound_bytes else None
    reuse = None if totals.reuse_factor is None else 1 - 1 / totals.reuse_factor
    return (
        f"{plan.policy} {mark}" if chosen else plan.policy,
        about(totals.predicted_ns),
        f"±{totals.predicted_error:.0%}",
        str(totals.launches),
        about(totals.exposed_launch_ns),
        fmt.percent(totals.saved.launches),
        fmt.percent(totals.saved.exposed_time),
        fmt.ratio(bound),
        fmt.ratio(reuse),
        fmt.size(totals.peak_bytes),
        f"{fmt.number(totals.burst).strip()}×",
        "proved" if plan.proved_optimal else "best seen",
    )
