"""Axes: the value scale (linear or log, three ticks) and the time ticks."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.charts.resample import finite
from fusetui.app.palette import Ink

Floats = npt.NDArray[np.float64]

_NICE = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
_LOG_ABOVE = 100.0
_MAX_DECADES = 9
_DAY_NS = 86_400 * 10**9
_FULL_LABEL_FROM = 24
_TIME_STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400)


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps values to 0 (bottom) … 1 (top). On a log scale `low` > 0; values at or below it sit on the bottom."""

    low: float
    high: float
    log: bool = False

    def share(self, values: npt.ArrayLike) -> Floats:
        """Where values lie, clipped to 0..1; NaN stays NaN."""
        data = np.asarray(values, np.float64)
        if self.log:
            low, high = math.log(self.low), math.log(self.high)
            data = np.log(np.maximum(data, self.low))
        else:
            low, high = self.low, self.high
        with np.errstate(over="ignore"):  # what is so far off the scale lies at its end
            return np.clip((data - low) / (high - low), 0.0, 1.0)

    def middle(self) -> float:
        """The value half-way up."""
        return math.sqrt(self.low * self.high) if self.log else (self.low + self.high) / 2


def nice_ceiling(value: float) -> float:
    """The smallest of 1, 1.5, 2, 3, 4, 5, 6, 8 x 10^k that is ≥ value; 1 when there is none."""
    if not math.isfinite(value) or value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    if power < 1e-300:
        return 1.0
    return next((step * power for step in _NICE if step * power >= value), 10 * power)


def fit_scale(values: Floats, limit: float | None = None) -> Scale:
    """A scale for some values: from 0 to a round number, or log (nine decades at most) over two decades.

    limit  an objective to keep in sight when it is not far above the data
    """
    values = finite(values)
    seen = values[np.isfinite(values)]
    top = float(seen.max()) if len(seen) else 0.0
    if limit is not None and limit > top and limit <= 4 * top:
        top = limit
    above = seen[seen > 0]
    if len(above) and top / float(above.min()) > _LOG_ABOVE:
        least = math.floor(math.log10(float(above.min())))
        most = math.ceil(math.log10(top))
        return Scale(10.0 ** max(least, most - _MAX_DECADES), 10.0**most, log=True)
    return Scale(0.0, nice_ceiling(top))


def draw_value_axis(canvas: Canvas, scale: Scale, unit: float, width: int) -> None:
    """Three ticks in `width` cells at the left: labels in `unit`, right-aligned against the axis line."""
    rows = canvas.height
    for y in range(rows):
        canvas.put(width - 1, y, canvas.glyphs.axis, Ink.GRID)
    ticks = {0: scale.high, rows - 1: scale.low}
    if rows >= 3:
        # With an even number of lines the tick is half a line off, and its round label is worth it.
        ticks[(rows - 1) // 2] = scale.middle()
    for y, value in ticks.items():
        canvas.put_right(width - 1, y, fmt.short(value / unit), Ink.DIM)
        canvas.put(width - 1, y, canvas.glyphs.tick, Ink.GRID)
    if scale.log and rows >= 2:
        canvas.put(width, 0, "log", Ink.DIM)


def draw_time_axis(canvas: Canvas, y: int, start_ns: int, end_ns: int, clock: str = "epoch") -> None:
    """Time ticks on one line: the first in full, then as short as they stay clear; round times only."""
    span = end_ns - start_ns
    width = canvas.width
    if span <= 0 or width < 10:
        return
    step = _time_step(span * 12 // width)
    unit = fmt.duration_unit(max(abs(start_ns), abs(end_ns)))
    tick = -(-start_ns // step) * step
    taken = -1
    while tick < end_ns:
        x = (tick - start_ns) * width // span
        full = taken < 0 and width >= _FULL_LABEL_FROM
        label = _since_start(tick, unit) if clock == "trace" else _tick_label(tick, step, full)
        if x > taken and x + len(label) <= width:
            taken = canvas.put(x, y, label, Ink.DIM)
        tick += step
    if taken < 0:
        canvas.put(0, y, fmt.clip(fmt.moment(start_ns, span, clock), width), Ink.DIM)


def _time_step(wanted_ns: int) -> int:
    """The smallest round step, in ns, that is at least `wanted_ns`: 1, 2 or 5 below a second, then as clocks count."""
    for step_s in _TIME_STEPS_S:
        if wanted_ns > 500_000_000 and step_s * 10**9 >= wanted_ns:
            return step_s * 10**9
    if wanted_ns > 500_000_000:
        return -(-wanted_ns // _DAY_NS) * _DAY_NS
    power = int(10 ** (len(str(max(1, wanted_ns))) - 1))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= wanted_ns)


def _tick_label(ns: int, step: int, full: bool) -> str:
    if step >= _DAY_NS:
        return fmt.moment(ns, 3e14)[:5]
    clock = fmt.moment(ns, 1e11)[:8]
    if step >= 60 * 10**9:
        return clock[:5]
    if step >= 10**9:
        return clock if full or clock.endswith(":00") else clock[5:]
    decimals = 10 - len(str(step))
    fraction = f".{ns % 10**9:09d}"[: decimals + 1]
    return clock + fraction if full else fraction


def _since_start(ns: int, unit: tuple[float, str]) -> str:
    return f"+{ns / unit[0]:.6g}{unit[1]}"
