"""Numbers of the plain report in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fusetui.analysis import fmt

_TIMES: Final = 2.0
_DIGITS: Final = 1000.0


def ns(value: float | None) -> str:
    """A duration."""
    return "0" if value == 0 else fmt.duration(value).strip()


def pct(share: float | None) -> str:
    """A share."""
    return "0 %" if share == 0 else fmt.percent(share).strip()


def num(value: float | None) -> str:
    """At most three significant digits."""
    return "0" if value == 0 else fmt.number(value).strip()


def precise(value: float | None) -> str:
    """Four significant digits, as they stand: of scores and shares of which little is much."""
    return fmt.DASH if value is None else f"{value:.4g}"


def whole(value: int | None) -> str:
    """A count, every digit of it."""
    return fmt.DASH if value is None else f"{value:,}"


def fact(value: float | None, unit: str) -> str:
    """The value of a `Fact`."""
    if unit == "ns":
        return ns(value)
    if unit == "share":
        return pct(value)
    return f"{num(value)}{f' {unit}' if unit not in ('', 'count') and value is not None else ''}"


def quantile(tail: Mapping[str, Any], name: str) -> str:
    """Of a tail of the summary; a lower bound says so."""
    text = ns(tail[name])
    return f"≥ {text}" if name in tail["at_least"] and tail[name] is not None else text


def change(ratio: float | None) -> str:
    """`+12.0 %` of after/before; from double on `24.8×`."""
    if ratio is None:
        return fmt.DASH
    return f"{num(ratio)}×" if ratio >= _TIMES else f"{(ratio - 1) * 100:+.1f} %"


def of_kind(value: float | None, kind: str) -> str:
    """The value of a measure: duration, share, size or number."""
    if kind == "duration":
        return ns(value)
    if kind == "share":
        return pct(value)
    if kind == "size":
        return fmt.size(value).strip()
    if value is not None and (value >= _DIGITS or float(value).is_integer()):
        return f"{value:,.0f}"
    return num(value)
