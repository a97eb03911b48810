"""Numbers in sentences."""

from __future__ import annotations

from fusetui.analysis import fmt
from fusetui.telemetry.text import safe_text
from fusetui.triage.measures import Measures


def ns(value: float | None) -> str:
    """A duration: `41.2 ms`."""
    return fmt.duration(value).strip()


def pct(share: float | None) -> str:
    """A share: `41 %`."""
    return fmt.percent(share).strip()


def num(value: float | None) -> str:
    """At most three significant digits."""
    return fmt.number(value).strip()


def many(value: float | None) -> str:
    """A count: `12.4k`."""
    return fmt.count(value).strip()


def name(text: str) -> str:
    """A name from data in a sentence."""
    return safe_text(text, 48)


def since(measures: Measures, at_ns: int | None) -> str:
    """` since …`, "" where it is not known."""
    return "" if at_ns is None else f" since {fmt.moment(at_ns, 3600e9, measures.header.clock)}"


def tail_text(measures: Measures) -> str:
    """`p99 41 ms`, or the highest quantile that is known."""
    latency = measures.snapshot.latency
    for label, value in (("p99", latency.p99_ns), ("p95", latency.p95_ns), ("p50", latency.p50_ns)):
        if value is not None:
            return f"{label} {'≥ ' if label in latency.at_least else ''}{ns(value)}"
    return "the tail"
