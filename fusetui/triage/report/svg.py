"""Two small pictures as SVG: a line over time and bars side by side.

Own code on purpose: a report needs one line chart and one bar chart, without scripts and with every text escaped. The
charting packages that write SVG bring a script, a font or tens of megabytes for that.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Final

import numpy as np

from fusetui.analysis.fmt import duration
from fusetui.triage.report.blocks import Bars, Line

_WIDTH: Final = 860
_HEIGHT: Final = 260
_LEFT: Final = 80
_TOP: Final = 24
_BOTTOM: Final = 30
_RIGHT: Final = 16
_ROW: Final = 38
_BAR_LEFT: Final = 150
_BAR_RIGHT: Final = 70
_TICKS: Final = 4
_PAINT: Final = {
    "grid": 'stroke="#d0d7de"', "line": 'fill="none" stroke="#0969da" stroke-width="1.8"', "dot": 'fill="#0969da"',
    "first": 'fill="#0969da"', "second": 'fill="#9a6700"', "bad": 'stroke="#b42318"',
    "limit": 'stroke="#b42318" stroke-dasharray="6 4"',
}  # fmt: skip
_INK: Final = 'fill="#6e7781" font-size="12" font-family="sans-serif"'
"""For what shows the picture without the page's own style, which goes before it."""


def line_svg(line: Line) -> str:
    """The value over time; gaps stay gaps, the objective is dashed and named, the first bad moment is a mark."""
    values = np.array([np.nan if value is None else value for value in line.values], np.float64)
    times = np.asarray(line.times, np.float64) - (line.times[0] if line.times else 0)
    top = max(float(np.nanmax(values)), float(line.limit_ns or 0), 1.0) * 1.05
    span = max(float(times[-1]), 1.0) if times.size else 1.0
    x = _LEFT + times / span * (_WIDTH - _LEFT - _RIGHT)
    y = _HEIGHT - _BOTTOM - values / top * (_HEIGHT - _TOP - _BOTTOM)
    parts = [*_axis(top, line), *_runs(x, y)]
    if line.limit_ns is not None:
        at = _HEIGHT - _BOTTOM - line.limit_ns / top * (_HEIGHT - _TOP - _BOTTOM)
        parts.append(f'<line {_of("limit")} x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(_text(_WIDTH - _RIGHT, at - 4, f"objective {duration(line.limit_ns).strip()}", "end"))
    if line.first_bad_ns is not None and line.times:
        at = _LEFT + (line.first_bad_ns - line.times[0]) / span * (_WIDTH - _LEFT - _RIGHT)
        at = min(max(at, _LEFT), _WIDTH - _RIGHT)
        anchor = "end" if at > _WIDTH / 2 else "start"
        parts.append(f'<line {_of("bad")} x1="{at:.1f}" x2="{at:.1f}" y1="{_TOP}" y2="{_HEIGHT - _BOTTOM}"/>')
        parts.append(_text(at + (-5 if anchor == "end" else 5), _TOP - 8, "first bad moment", anchor))
    return _svg(_HEIGHT, line.title, parts)


def bars_svg(bars: Bars) -> str:
    """Two bars a row; a share above 1 is cut at the edge and its number still told."""
    room = _WIDTH - _BAR_LEFT - _BAR_RIGHT
    legend = f"upper bar: {bars.names[0]}, lower: {bars.names[1]}" if bars.names[1] else bars.names[0]
    parts = [_text(_BAR_LEFT, 14, legend, "start")]
    for place, (label, first, second) in enumerate(bars.rows):
        top = 24 + place * _ROW
        parts.append(_text(_BAR_LEFT - 8, top + 18, label, "end"))
        for kind, share, at in (("first", first, top), ("second", second, top + 15)):
            if share is None:
                continue
            width = min(max(share, 0.0), 1.0) * room
            parts.append(f'<rect {_of(kind)} x="{_BAR_LEFT}" y="{at}" width="{width:.1f}" height="12"/>')
            parts.append(_text(_BAR_LEFT + width + 6, at + 11, f"{share * 100:.1f} %", "start"))
    return _svg(30 + len(bars.rows) * _ROW, bars.title, parts)


def _axis(top: float, line: Line) -> Iterator[str]:
    for tick in range(_TICKS + 1):
        value = top / 1.05 * tick / _TICKS
        y = _HEIGHT - _BOTTOM - value / top * (_HEIGHT - _TOP - _BOTTOM)
        yield f'<line {_of("grid")} x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield _text(_LEFT - 6, y + 4, duration(value).strip() if tick else "0", "end")
    yield _text(_LEFT, _HEIGHT - 8, line.labels[0], "start")
    yield _text(_WIDTH - _RIGHT, _HEIGHT - 8, line.labels[1], "end")


def _runs(x: np.ndarray[tuple[int], np.dtype[np.float64]], y: np.ndarray[tuple[int], np.dtype[np.float64]]
          ) -> Iterator[str]:  # fmt: skip
    """A line for each run of known values, a dot for one alone."""
    known = np.flatnonzero(~np.isnan(y))
    for run in np.split(known, np.flatnonzero(np.diff(known) > 1) + 1):
        if run.size == 1:
            yield f'<circle {_of("dot")} cx="{x[run[0]]:.1f}" cy="{y[run[0]]:.1f}" r="2.5"/>'
        elif run.size:
            points = " ".join(f"{x[i]:.1f},{y[i]:.1f}" for i in run.tolist())
            yield f'<polyline {_of("line")} points="{points}"/>'


def _of(kind: str) -> str:
    return f'class="{kind}" {_PAINT[kind]}'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {_INK}>{escape(text)}</text>'


def _svg(height: int, title: str, parts: list[str]) -> str:
    label = escape(title, quote=True)
    return f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{label}">{"".join(parts)}</svg>'
