"""Numbers as text of a fixed width: three significant digits, the unit always in the same column.

Absent, NaN and infinite values print as a dash in the place of the number. Every function says how many cells it
returns whatever the value, so that 9.99 → 10.0 moves no neighbour; `.strip()` the result inside a sentence.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Final

DASH: Final = "—"
DURATION_CELLS: Final = 7
COUNT_CELLS: Final = 5
BYTES_CELLS: Final = 7
RATE_CELLS: Final = 7
PERCENT_CELLS: Final = 6
NUMBER_CELLS: Final = 4

_NS_UNITS: Final = ((1, "ns"), (1_000, "µs"), (1_000_000, "ms"), (1_000_000_000, "s"))
_THOUSANDS: Final = ("", "k", "M", "G", "T", "P", "E")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_UTC_NS: Final = 1 << 62


def number(value: float | None) -> str:
    """Three significant digits (two when negative) in 4 cells, right-aligned: 0.31, 9.99, 10.0, 999."""
    if value is None or not math.isfinite(value):
        return DASH.rjust(NUMBER_CELLS)
    size = abs(value)
    if size >= (9_999.5 if value > 0 else 999.5):
        return _huge(value).rjust(NUMBER_CELLS)
    room = 2 if value < 0 else 3
    digits = 0 if size >= 999.5 else max(0, room - _integer_digits(size, room))
    text = f"{value:.{digits}f}"
    return (text[1:] if text.startswith("-") and not text.strip("-0.") else text).rjust(NUMBER_CELLS)


def _huge(value: float) -> str:
    """One digit and an exponent: 1e5, -2e9; beyond 4 cells only the bound is told."""
    if value >= 9.5e99 or value <= -9.5e9:
        return ">e99" if value > 0 else "<-e9"
    mantissa, exponent = f"{value:.0e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def _integer_digits(size: float, room: int) -> int:
    """Digits before the point once `size` is rounded to `room` significant digits; 0.x counts as one."""
    for digits, limit in ((1, 10.0), (2, 100.0)):
        if size < limit - 0.5 * 10 ** (digits - room):
            return digits
    return 3


def short(value: float) -> str:
    """The shortest text of at most three significant digits: 50, 2.5, 0.25 (an axis label)."""
    if not math.isfinite(value):
        return DASH
    if 0 < abs(value) < 0.1:
        return f"{value:.2g}"
    text = number(value).strip()
    return text.rstrip("0").rstrip(".") if "." in text else text


def duration_unit(ns: float | None) -> tuple[float, str]:
    """The unit `ns` reads best in: (ns per unit, name)."""
    if ns is None or not math.isfinite(ns):
        return 1_000_000.0, "ms"
    size = abs(ns)
    for scale, unit in _NS_UNITS:
        if size < 999.5 * scale:
            return float(scale), unit
    if size < 9_999.5e9:
        return 1e9, "s"
    return (3.6e12, "h") if size < 999.5 * 3.6e12 else (86.4e12, "d")


def duration(ns: float | None, *, at_least: bool = False) -> str:
    """A duration in ns as text, 7 cells: `9.99 ms`, `10.0 µs`, ` 999 ns`; 8 cells with `≥` before it when `at_least`.

    The mark takes the cell before the number, so a column that may hold bounds reserves 8 cells.
    """
    if ns is None or not math.isfinite(ns):
        text = f"{number(None)}   "
    else:
        scale, unit = duration_unit(ns)
        text = f"{number(ns / scale)} {unit:<2}"
    return f"≥{text}" if at_least else text


def bounded(ns: float | None, at_least: bool) -> str:
    """A duration in a column that may hold lower bounds: 8 cells, the first is `≥` or blank."""
    return duration(ns, at_least=True) if at_least and ns is not None else " " + duration(ns)


def lower_bound(ns: float | None) -> str:
    """A lower bound in a sentence: `≥ 22.4 s`, the dash when there is none."""
    text = duration(ns).strip()
    return text if text == DASH else f"≥ {text}"


def count(value: float | None) -> str:
    """A count in 5 cells, suffix in the last: ` 999 `, `12.4k`, `1.20M`."""
    if value is None or not math.isfinite(value):
        return f"{number(None)} "
    if abs(value) < 999.5:
        whole = float(value).is_integer()
        return f"{value:>4.0f} " if whole else f"{number(value)} "
    scaled, suffix = _scaled(value, 1000.0)
    return f"{number(scaled)}{suffix}"


def _scaled(value: float, base: float) -> tuple[float, str]:
    for suffix in _THOUSANDS[:-1]:
        if abs(value) < 999.5:
            return value, suffix
        value /= base
    return value, _THOUSANDS[-1]


def size(value: float | None) -> str:
    """Bytes in 7 cells, decimal units: `14.2 kB`."""
    if value is None or not math.isfinite(value):
        return f"{number(None)}   "
    if abs(value) < 999.5:
        return f"{value:>4.0f} B "
    scaled, suffix = _scaled(value, 1000.0)
    return f"{number(scaled)} {suffix}B"


def rate(value: float | None) -> str:
    """Events per second in 7 cells: `118k/s`."""
    return f"{count(value)}/s" if value is not None and math.isfinite(value) else f"{count(None)}  "


def percent(share: float | None) -> str:
    """A share (1.0 is 100 %) in 6 cells: `97.2 %`, ` 100 %`."""
    if share is None or not math.isfinite(share):
        return f"{number(None)}  "
    return f"{number(share * 100)} %"


def ratio(value: float | None) -> str:
    """A plain ratio in 4 cells with at most two decimals: `0.31`."""
    if value is None or not math.isfinite(value):
        return number(None)
    return f"{abs(value):4.2f}" if 0 <= value < 9.995 else number(value)


def age(seconds: float | None) -> str:
    """How old, in at most 5 cells: `0.4s`, `12s`, `3m`, `2h`."""
    if seconds is None or not math.isfinite(seconds):
        return DASH
    seconds = max(0.0, seconds)
    if seconds < 9.95:
        return f"{seconds:.1f}s"
    for limit, scale, unit in ((99.5, 1, "s"), (5_970.0, 60, "m"), (356_400.0, 3_600, "h")):
        if seconds < limit:
            return f"{seconds / scale:.0f}{unit}"
    return f"{min(seconds / 86_400, 9_999):.0f}d"


def moment(ns: int | None, span_ns: float, clock: str = "epoch") -> str:
    """A point in time: UTC with as many decimals as the span shown deserves, or `+12.3 ms` on a trace clock."""
    if ns is None:
        return DASH
    if clock == "trace":
        return relative(ns)
    when = _utc(ns)
    if span_ns > 2 * 86_400e9:
        return when.strftime("%m-%d %H:%MZ")
    return f"{when:%H:%M:%S}{_fraction(ns, span_ns)}Z"


def _utc(ns: int) -> datetime:
    return _EPOCH + timedelta(microseconds=max(-_MAX_UTC_NS, min(ns, _MAX_UTC_NS)) // 1000)


def _fraction(ns: int, span_ns: float) -> str:
    for decimals, limit in ((9, 2e3), (6, 2e6), (3, 2e9), (1, 60e9)):
        if span_ns < limit:
            return f".{ns % 1_000_000_000:09d}"[: decimals + 1]
    return ""


def relative(ns: float | None) -> str:
    """Time since the trace began: `+12.3 ms`; the dash when unknown."""
    if ns is None or not math.isfinite(ns):
        return DASH
    scale, unit = duration_unit(ns)
    text = number(ns / scale).strip()
    return f"{text} {unit}" if text.startswith("-") else f"+{text} {unit}"
