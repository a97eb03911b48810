"""Times, durations and sizes as people type them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ns|us|µs|ms|s|m|min|h|d)?\s*\Z")
_UNIT_NS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "min": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86400 * 10**9,
}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*\Z", re.IGNORECASE)
_CLOCK_TIME = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?Z?\Z")
_ISO = re.compile(r"(\d{4}-\d{2}-\d{2})[T ](\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)Z?\Z")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_NS: Final = _UNIT_NS["d"]


def parse_duration_ns(text: str, default_unit: str = "s") -> int:
    """`10s`, `2.5ms`, `90` (in `default_unit`) as ns. Raises ValueError with the accepted forms."""
    match = _DURATION.match(text)
    if match is None:
        raise ValueError(f"{text!r} is not a duration; try 500ms, 10s or 2m")
    return round(float(match[1]) * _UNIT_NS[match[2] or default_unit])


def parse_bytes(text: str) -> int:
    """`512MiB`, `1G`, `4096` as bytes; k, M, G, T are powers of 1024. Raises ValueError."""
    match = _SIZE.match(text)
    if match is None:
        raise ValueError(f"{text!r} is not a size; try 512MiB or 2G")
    power: int = 1024 ** " kmgt".index(match[2].lower() or " ")
    return round(float(match[1]) * power)


def parse_position_ns(text: str, start_ns: int, end_ns: int, now_ns: int, clock: str = "epoch") -> int:
    """A place in a trace, as ns on its clock, clamped to it.

    `03:10:41.2` (UTC, on the day that puts it inside the trace, else nearest), `2026-11-30T03:10:41`,
    `+10s` and `-500ms` from now_ns, `37%` of the span, `12.5s` since the start, `start`, `end`.
    Raises ValueError with the accepted forms.
    """
    word = text.strip()
    if word in ("start", "end"):
        place = start_ns if word == "start" else end_ns
    elif word.endswith("%"):
        place = start_ns + round(_percent(word) * (end_ns - start_ns))
    elif word[:1] in "+-" and len(word) > 1:
        place = now_ns + (1 if word[0] == "+" else -1) * parse_duration_ns(word[1:])
    elif iso := _ISO.match(word):
        day = datetime.fromisoformat(iso[1]).replace(tzinfo=UTC)
        place = (day - _EPOCH) // timedelta(days=1) * _DAY_NS + _clock_time_ns(iso[2])
    elif _CLOCK_TIME.match(word):
        place = (
            _on_a_day(_clock_time_ns(word), start_ns, end_ns) if clock == "epoch" else start_ns + _clock_time_ns(word)
        )
    else:
        try:
            place = start_ns + parse_duration_ns(word)
        except ValueError:
            raise ValueError(f"{word!r} is not a time; try 03:10:41.2, -10s, 37% or 12.5s") from None
    return min(max(place, start_ns), end_ns)


def _percent(word: str) -> float:
    try:
        share = float(word[:-1]) / 100
    except ValueError:
        raise ValueError(f"{word!r} is not a percentage; try 37%") from None
    return min(max(share, 0.0), 1.0) if share == share else 0.0


def _clock_time_ns(word: str) -> int:
    match = _CLOCK_TIME.match(word)
    if match is None:
        raise ValueError(f"{word!r} is not a time of day; try 03:10:41.2")
    hours, minutes, seconds = int(match[1]), int(match[2]), int(match[3] or 0)
    if hours > 23 or minutes > 59 or seconds > 60:
        raise ValueError(f"{word!r} is not a time of day; try 03:10:41.2")
    return (hours * 3600 + minutes * 60 + seconds) * 10**9 + int((match[4] or "0").ljust(9, "0"))


def _on_a_day(time_ns: int, start_ns: int, end_ns: int) -> int:
    first_day = start_ns // _DAY_NS
    candidates = [(first_day + k) * _DAY_NS + time_ns for k in (-1, 0, 1)]
    candidates.append(end_ns // _DAY_NS * _DAY_NS + time_ns)
    return min(candidates, key=lambda t: max(start_ns - t, t - end_ns, 0))
