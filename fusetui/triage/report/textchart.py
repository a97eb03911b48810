"""A line over time in characters, for forms without pictures."""

from __future__ import annotations

from typing import Final

import numpy as np

from fusetui.analysis.fmt import duration
from fusetui.triage.report.blocks import Line

_ROWS: Final = 8
_COLUMNS: Final = 60
_EIGHTHS: Final = " ▁▂▃▄▅▆▇█"
_LABEL: Final = 9


def chart_lines(line: Line) -> list[str]:
    """Bars of the largest value per column, the limit as dashes, and below a caret at the first bad moment."""
    values = np.array([np.nan if value is None else value for value in line.values], np.float64)
    columns = _columns(values)
    top = float(np.nanmax(columns))
    if line.limit_ns is not None:
        top = max(top, float(line.limit_ns))
    heights = np.nan_to_num(columns / top * _ROWS * 8 if top > 0 else columns * 0.0)
    limit = None if line.limit_ns is None or top <= 0 else min(int(line.limit_ns / top * _ROWS), _ROWS - 1)
    found = []
    for row in range(_ROWS - 1, -1, -1):
        cells = [_EIGHTHS[int(np.clip(np.ceil(height - row * 8), 0, 8))] for height in heights.tolist()]
        if row == limit:
            cells = ["╌" if cell == " " else cell for cell in cells]
        found.append(f"{_label(line, row, limit, top)}│{''.join(cells).rstrip()}")
    found.append(f"{' ' * _LABEL}└{'─' * len(columns)}")
    found.append(_below(line, len(values), len(columns)))
    return found


def _columns(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The largest of neighbours, so that a peak never falls between two columns."""
    count = min(_COLUMNS, len(values))
    edges = np.arange(count) * len(values) // count
    low = np.where(np.isnan(values), -1.0, values)
    largest = np.maximum.reduceat(low, edges)
    return np.where(largest < 0, np.nan, largest)


def _label(line: Line, row: int, limit: int | None, top: float) -> str:
    if row == limit and line.limit_ns is not None:
        return f"{duration(line.limit_ns).strip()} ".rjust(_LABEL)
    return (f"{duration(top).strip()} " if row == _ROWS - 1 else "").rjust(_LABEL)


def _below(line: Line, slots: int, columns: int) -> str:
    if line.first_bad_ns is None or not line.times:
        return ""
    slot = int(np.searchsorted(np.asarray(line.times), line.first_bad_ns, side="right")) - 1
    at = min(max(slot, 0) * columns // max(slots, 1), columns - 1)
    return f"{' ' * (_LABEL + 1 + at)}^ first bad moment"
