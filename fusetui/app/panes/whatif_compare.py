"""Today's plan and the one under other knobs, side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fusetui.accelerator.plan import GroupPlan
from fusetui.analysis.planned import Planned
from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.charts.bars import draw_meter
from fusetui.app.charts.table import Column, draw_header, draw_row, layout
from fusetui.app.palette import DATA, Ink
from fusetui.app.panes.plan_pane import MODEL_NOTE, PlanPane, draw_problem
from fusetui.app.planner import Answer

_COLUMNS = (
    Column("", 14),
    Column("today", 8, right=True),
    Column("what if", 8, right=True),
    Column("diff", 8, right=True),
    Column("", 6, priority=1, grow=True),
)
_METER = 4
_METER_CELLS = 32
_LEAST_CHANGE = 0.0005


@dataclass(frozen=True, slots=True)
class Measure:
    """One line: what it is called, its value, how it is written; a plain one is a number of things."""

    label: str
    value: Callable[[Planned], float | None]
    text: Callable[[float | None], str]
    points: bool = False


class WhatIfComparePane(PlanPane):
    TITLE = "What if"
    UNITS = "model, nothing is applied"
    HELP = f"""The plan as things are, the plan under the knobs, and what is different.

time          modelled time from the first launch call to the end of the last kernel; ± is the model's error bar
kernels       time in kernels; launches: kernels started; exposed launch: time the device waits for launches
DRAM          bytes to and from device memory; × bound: over the least that any plan needs
reuse         1 - bytes filled from device memory / bytes served on chip
peak memory   most device memory live at once; burst: most of the bandwidth asked for at once, × the device's own
occupancy     share of the threads that the kernels leave room for, weighted by their time
diff          what if / today - 1, of shares in points; the bar is what if against the larger of the two
A difference that is smaller than the error bar is still one: both sides have the same error in common.
{MODEL_NOTE}Blind to      the queue, the batcher and everything else that is not on the device."""

    def draw_answer(self, canvas: Canvas, answer: Answer) -> None:
        today, predicted = answer.today, answer.predicted
        if today is None or predicted is None:
            draw_problem(canvas, answer.problem)
            return
        places = layout(_COLUMNS, canvas.width)
        draw_header(canvas, 0, _COLUMNS, places)
        for y, measure in enumerate(_MEASURES, 1):
            _draw_measure(canvas, y, measure, measure.value(today), measure.value(predicted), places)
        y = len(_MEASURES) + 2
        if y < canvas.height:
            subject = f"{_subject(today)} → {_subject(predicted)}" if _moved(today, predicted) else _subject(today)
            canvas.put(0, y, fmt.clip(subject, canvas.width), Ink.DIM)

    def marked(self, answer: Answer) -> Planned | None:
        return answer.predicted or answer.today


def _draw_measure(
    canvas: Canvas,
    y: int,
    measure: Measure,
    today: float | None,
    then: float | None,
    places: list[tuple[int, int, int]],
) -> None:
    difference, moved = _difference(measure, today, then)
    texts = (measure.label, measure.text(today), measure.text(then), difference, "")
    loud = Ink.STRONG if moved else Ink.FG
    draw_row(canvas, y, _COLUMNS, places, texts, (Ink.DIM, Ink.FG, loud, loud if moved else Ink.DIM, Ink.FG))
    place = next(((x, cells) for i, x, cells in places if i == _METER), None)
    if moved and place is not None and today is not None and then is not None and max(today, then) > 0:
        draw_meter(canvas, place[0], y, min(_METER_CELLS, place[1]), then / max(today, then), DATA)


def _difference(measure: Measure, today: float | None, then: float | None) -> tuple[str, bool]:
    """(what is different, is anything)."""
    if today is None or then is None:
        return fmt.DASH, today is not then
    if measure.points:
        points = (then - today) * 100
        moved = abs(points) >= 0.05
        return (f"{points:+.1f} pt".replace("-", "−") if moved else "same"), moved
    if today == 0:
        return ("same", False) if then == 0 else (fmt.DASH, True)
    share = then / today - 1
    if abs(share) < _LEAST_CHANGE:
        return "same", False
    return fmt.signed(share), True


def _occupancy(plan: Planned) -> float | None:
    groups: tuple[GroupPlan, ...] = plan.plan.groups
    total = sum(group.predicted_ns for group in groups)
    return sum(group.occupancy * group.predicted_ns for group in groups) / total if total else None


def _reuse(plan: Planned) -> float | None:
    factor = plan.plan.totals.reuse_factor
    return None if factor is None else 1 - 1 / factor


def _bound(plan: Planned) -> float | None:
    totals = plan.plan.totals
    return totals.dram_bytes / totals.dram_lower_bound_bytes if totals.dram_lower_bound_bytes else None


def _about(text: Callable[[float | None], str]) -> Callable[[float | None], str]:
    return lambda value: f"≈{text(value)}"


def _times(value: float | None) -> str:
    return f"≈{fmt.number(value)} × "


_MEASURES = (
    Measure("time", lambda p: p.plan.totals.predicted_ns, _about(fmt.duration)),
    Measure("kernels", lambda p: p.plan.totals.kernel_ns, _about(fmt.duration)),
    Measure("launches", lambda p: float(p.plan.totals.launches), lambda v: fmt.DASH if v is None else f"{v:.0f}   "),
    Measure("exposed launch", lambda p: p.plan.totals.exposed_launch_ns, _about(fmt.duration)),
    Measure("DRAM", lambda p: p.plan.totals.dram_bytes, _about(fmt.size)),
    Measure("× bound", _bound, _times),
    Measure("reuse", _reuse, lambda v: f"≈{fmt.percent(v)} ", points=True),
    Measure("peak memory", lambda p: p.plan.totals.peak_bytes, _about(fmt.size)),
    Measure("burst", lambda p: p.plan.totals.burst, _times),
    Measure("occupancy", _occupancy, lambda v: f"≈{fmt.percent(v)} ", points=True),
)


def _subject(plan: Planned) -> str:
    knobs, error = plan.knobs, plan.plan.totals.predicted_error
    return f"{plan.graph.name} on {plan.hardware.name}, {knobs.dtype}, {knobs.mode}, {knobs.policy}, ±{error:.0%}"


def _moved(today: Planned, predicted: Planned) -> bool:
    return _subject(today) != _subject(predicted)
