"""Points in time as reports write them: UTC with seconds, so that two people mean the same moment."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from fusetui.analysis import fmt
from fusetui.telemetry.header import Clock

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_S: Final = 253_402_300_799
"""The last second of the year 9999: later times are no dates."""


def utc(ns: int | None, clock: Clock) -> str:
    """`2026-03-01 03:10:41.250Z`; on a clock that counts from the begin of the trace `+20.9 s`."""
    if ns is None:
        return fmt.DASH
    seconds, part_ns = divmod(ns, 10**9)
    if clock == "trace" or not 0 <= seconds <= _MAX_S:
        return fmt.relative(ns)
    when = _EPOCH + timedelta(seconds=seconds)
    return f"{when:%Y-%m-%d %H:%M:%S}.{part_ns // 10**6:03d}Z"


def position(ns: int, first_ns: int, *, up: bool = False) -> str:
    """As `--from` and `--to` take it: seconds since the first event, `12.5s`; a microsecond more where `up`."""
    us = max(ns - first_ns, 0)
    us = -(-us // 1000) if up else us // 1000
    text = f"{us // 10**6}.{us % 10**6:06d}".rstrip("0").rstrip(".")
    return f"{text}s"
