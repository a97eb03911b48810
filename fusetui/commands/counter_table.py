"""Counters as text: what is in flight, the brackets that quantiles lie in, rates and shares, with their units."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from fusetui.analysis.fmt import count, duration, number, percent, size

_LO, _HI, _N = " lo", " hi", " n"
_SECONDS: Final = {"s": 1e9, "ms": 1e6, "us": 1e3, "µs": 1e3, "ns": 1.0}
_MOST: Final = 40
_ENDED_NS: Final = 3 * 10**9
_TAILS: Final = ("p99", "p95", "p50")

Counter = Mapping[str, Any]


def counter_lines(counters: Sequence[Counter], slot_ns: int) -> Iterator[str]:
    """One line a counter or bracket, the most telling first; brackets that ended before the others are left out."""
    newest_ns = min((one["age_ns"] for one in counters if one["age_ns"] is not None), default=0)
    oldest_ns = newest_ns + max(_ENDED_NS, 3 * slot_ns)
    now = {(one["name"], one["device"]): one for one in counters if _lasts(one, oldest_ns)}
    lines = []
    for (name, device), one in now.items():
        if name.endswith(_LO):
            lines.append((1, *_order(name), f"{_named(name.removesuffix(_LO), device)}{_bracket(one, now)}"))
        elif not (name.endswith((_HI, _N)) and _told_beside(name, device, now)):
            lines.append((_rank(one), *_order(name), f"{_named(name, device)}{_value(one['last'], one['unit'])}"))
    lines.sort()
    for at, line in enumerate(lines[:_MOST]):
        yield f"{'counters' if not at else '':13}{line[-1]}"
    if len(lines) > _MOST:
        yield f"{'':13}and {len(lines) - _MOST} more: --json has all"


def _lasts(one: Counter, oldest_ns: int) -> bool:
    """Whether it is to be shown: a plain counter always, a part of a bracket while it is told."""
    if not one["name"].endswith((_LO, _HI, _N)):
        return True
    return one["age_ns"] is not None and one["age_ns"] <= oldest_ns


def _bracket(low: Counter, now: Mapping[tuple[str, str], Counter]) -> str:
    """`[100 ms, 250 ms], n 340`, or `≥ 30.0 s` in the last bucket, which has no end; an `hi` of before is none."""
    base, device, unit = low["name"].removesuffix(_LO), low["device"], low["unit"]
    high, n = now.get((f"{base}{_HI}", device)), now.get((f"{base.rpartition(' ')[0]}{_N}", device))
    least = _value(low["last"], unit) if low["last"] else "0"
    still = high is not None and high["age_ns"] <= low["age_ns"]
    text = f"[{least}, {_value(high['last'], unit)}]" if high is not None and still else f"≥ {least}"
    return text if n is None or n["last"] is None else f"{text}, n {n['last']:,.0f}"


def _named(name: str, device: str) -> str:
    return f"{f'{name} [{device}]' if device else name:44}  "


def _value(value: float | None, unit: str) -> str:
    if value is None:
        return number(None).strip()
    if unit in _SECONDS:
        return duration(value * _SECONDS[unit]).strip()
    if unit == "B":
        return size(value).strip()
    if unit == "B/s":
        return f"{size(value).strip()}/s"
    if unit == "%":
        return percent(value / 100).strip()
    if not unit and abs(value) < 1e15 and value == int(value):
        return f"{value:,.0f}"
    text = count(value).strip() if abs(value) >= 1000 else number(value).strip()
    return f"{text}{unit}" if unit.startswith("/") else f"{text} {unit}".strip()


def _told_beside(name: str, device: str, now: Mapping[tuple[str, str], Counter]) -> bool:
    if name.endswith(_HI):
        return (f"{name.removesuffix(_HI)}{_LO}", device) in now
    return any((f"{name.removesuffix(_N)} {q}{_LO}", device) in now for q in _TAILS)


def _rank(one: Counter) -> int:
    """0 requests in flight, 1 brackets, 2 rates, 3 shares, 4 others."""
    if one["name"].startswith("requests") and not one["unit"]:
        return 0
    return 2 if one["unit"].endswith("/s") else 3 if one["unit"] == "%" else 4


def _order(name: str) -> tuple[bool, str, int, str]:
    """End to end before its parts, p99 before p50."""
    words = name.removesuffix(_LO).split(" ")
    tail = _TAILS.index(words[-1]) if words[-1] in _TAILS else len(_TAILS)
    return not name.startswith(("e2e", "ttft")), " ".join(words[:-1]) if tail < len(_TAILS) else name, tail, name
