"""Roofline: arithmetic per byte against arithmetic per second, both logarithmic, under the roofs of a device."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.charts.axis import Scale
from fusetui.app.charts.line import Series, draw_series
from fusetui.app.palette import SELECTED, Ink

Taken = npt.NDArray[np.bool_]

_LABEL_CELLS: Final = 14
_MAX_DECADES: Final = 9
_AXIS_CELLS: Final = 6
_HEADROOM: Final = 2.5
_POINT: Final = "●"
_RAN: Final = "○"


@dataclass(frozen=True, slots=True)
class Point:
    """One kernel: FLOP per byte, FLOP per second; measured: it is drawn hollow; chosen: under the cursor."""

    label: str
    intensity: float
    rate: float
    ink: int = Ink.STRONG
    measured: bool = False
    chosen: bool = False


@dataclass(frozen=True, slots=True)
class Roofs:
    """FLOP/s of the matrix units, byte/s of device memory, and what the peak is called."""

    flops: float
    bytes_per_s: float
    peak: str

    @property
    def ridge(self) -> float:
        """FLOP per byte from which arithmetic limits, not memory."""
        return self.flops / self.bytes_per_s


def draw_roofline(canvas: Canvas, points: Sequence[Point], roofs: Roofs) -> None:
    """Roofs as lines, kernels as labelled points; those that fall on one cell share it."""
    if canvas.width < 16 or canvas.height < 4:
        canvas.put(0, 0, fmt.clip("no room for a roofline (z)", canvas.width), Ink.DIM)
        return
    known = [p for p in points if p.intensity > 0 and p.rate > 0]
    across = _decades([roofs.ridge, *(p.intensity for p in known)])
    up = _decades([roofs.flops, *(p.rate for p in known)])
    # Room above the flat roof for its name.
    up = Scale(up.low, max(up.high if up.high > _HEADROOM * roofs.flops else 0.0, _HEADROOM * roofs.flops), log=True)
    axis = _AXIS_CELLS
    plot = canvas.view(axis, 0, canvas.width - axis, canvas.height - 1)
    fine = np.geomspace(across.low, across.high, plot.width * plot.glyphs.dots[0])
    roof = np.minimum(fine * roofs.bytes_per_s, roofs.flops)
    patterns = np.zeros((plot.height, plot.width), np.int64)
    draw_series(plot, up, Series(np.where(roof >= up.low, roof, np.nan), "", Ink.DIM), patterns)
    _draw_rates(canvas.view(0, 0, axis, plot.height), up)
    taken = np.zeros((plot.height, plot.width), bool)
    _draw_points(plot, known, across, up, taken)
    _draw_names(plot, roofs, across, up, taken)
    _draw_intensities(canvas.view(axis, canvas.height - 1, plot.width, 1), across)


def _decades(values: Sequence[float]) -> Scale:
    """Whole decades around the values, one at least; what lies too far below the largest sits on the edge."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return Scale(10.0 ** max(low, high - _MAX_DECADES), 10.0 ** max(high, low + 1), log=True)


def _cell(plot: Canvas, across: Scale, up: Scale, intensity: float, rate: float) -> tuple[int, int]:
    x = round(float(across.share([intensity])[0]) * (plot.width - 1))
    return x, round(float(1 - up.share([rate])[0]) * (plot.height - 1))


def _draw_points(plot: Canvas, points: Sequence[Point], across: Scale, up: Scale, taken: Taken) -> None:
    cells: dict[tuple[int, int], list[Point]] = {}
    for point in points:
        cells.setdefault(_cell(plot, across, up, point.intensity, point.rate), []).append(point)
    for x, y in cells:
        taken[y, x] = True
    # Points first, names after: no name may cover a point.
    for (x, y), here in cells.items():
        chosen = next((p for p in here if p.chosen), here[0])
        plot.put(x, y, _RAN if all(p.measured for p in here) else _POINT, Ink.ACCENT if chosen.chosen else chosen.ink)
    for y, first, last, here in sorted(_clusters(cells), key=lambda cluster: not any(p.chosen for p in cluster[3])):
        chosen_here = any(p.chosen for p in here)
        text = fmt.clip(_names(sorted({p.label for p in here}, key=lambda name: (len(name), name))), _LABEL_CELLS)
        _put_near(plot, first, last, y, text, (Ink.ACCENT + SELECTED) if chosen_here else Ink.FG, taken)


def _clusters(cells: Mapping[tuple[int, int], Sequence[Point]]) -> list[tuple[int, int, int, list[Point]]]:
    """(line, first cell, last cell, points) of points side by side: they share a name tag."""
    found: list[tuple[int, int, int, list[Point]]] = []
    for (x, y), here in sorted(cells.items(), key=lambda item: (item[0][1], item[0][0])):
        if found and found[-1][0] == y and x - found[-1][2] <= 1:
            line, first, _, points = found.pop()
            found.append((line, first, x, [*points, *here]))
        else:
            found.append((y, x, x, list(here)))
    return found


def _names(labels: Sequence[str]) -> str:
    """`g2-4 g6` for g2 g3 g4 g6."""
    runs: list[list[int]] = []
    for number in (int(label.lstrip("g")) for label in labels):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return " ".join(f"g{run[0]}-{run[-1]}" if len(run) > 1 else f"g{run[0]}" for run in runs)


def _put_near(plot: Canvas, first: int, last: int, y: int, text: str, ink: int, taken: Taken) -> None:
    """Write a name beside its points, on the first side that is free; nowhere when all are taken."""
    size = len(text)
    middle = (first + last - size) // 2
    sides = ((last + 1, y), (first - size, y), (middle, y - 1), (middle, y + 1), (last + 1, y - 1), (last + 1, y + 1))
    for left, line in sides:
        right = left + size
        if left < 0 or right > plot.width or not 0 <= line < plot.height or taken[line, left:right].any():
            continue
        plot.put(left, line, text, ink)
        taken[line, max(0, left - 1) : right + 1] = True
        return


def _draw_names(plot: Canvas, roofs: Roofs, across: Scale, up: Scale, taken: Taken) -> None:
    peak = f"{roofs.peak} {fmt.short(roofs.flops / 1e12)} TFLOP/s"
    x, y = _cell(plot, across, up, roofs.ridge, roofs.flops)
    memory = f"DRAM {fmt.short(roofs.bytes_per_s / 1e12)} TB/s"
    for text, left, line in (
        (peak, plot.width - len(peak), max(0, y - 1) if y else 1),
        (memory, max(4, x // 2 - len(memory) - 1), max(0, (y + plot.height) // 2 - 1)),
    ):
        free = left >= 0 and left + len(text) <= plot.width and not taken[line, left : left + len(text)].any()
        if free:
            plot.put(left, line, text, Ink.DIM)
            taken[line, left : left + len(text)] = True


def _draw_rates(area: Canvas, up: Scale) -> None:
    """Powers of ten of TFLOP/s along the left, as many as stay two lines apart."""
    for y in range(area.height):
        area.put(area.width - 1, y, area.glyphs.axis, Ink.GRID)
    free = area.height
    for power in range(math.ceil(math.log10(up.low) - 1e-9), math.floor(math.log10(up.high) + 1e-9) + 1):
        y = round(float(1 - up.share([10.0**power])[0]) * (area.height - 1))
        if y <= free - 2 or free == area.height:
            exponent = power - 12
            text = fmt.short(10.0**exponent) if -2 <= exponent <= 3 else f"1e{exponent}"
            area.put_right(area.width - 1, y, text, Ink.DIM)
            area.put(area.width - 1, y, area.glyphs.tick, Ink.GRID)
            free = y


def _draw_intensities(line: Canvas, across: Scale) -> None:
    """Powers of ten along the bottom, the unit last where there is room."""
    first, last = round(math.log10(across.low)), round(math.log10(across.high))
    unit = "FLOP/byte"
    end = line.width - len(unit) - 1 if line.width >= 40 else line.width
    free = 0
    for power in range(first, last + 1):
        x = round(float(across.share([10.0**power])[0]) * (line.width - 1))
        text = fmt.short(10.0**power) if -2 <= power <= 3 else f"1e{power}"
        x = max(0, min(x - len(text) // 2, line.width - len(text)))
        if x >= free and x + len(text) <= end:
            free = line.put(x, 0, text, Ink.DIM) + 2
    if end < line.width:
        line.put(end + 1, 0, unit, Ink.DIM)
