"""What an alert observed, in a line."""

from __future__ import annotations

from fusetui.analysis import fmt
from fusetui.analysis.expression.judge import Judged, Outcome

_PLAIN = 1e6


def judged_text(outcome: Outcome) -> str:
    """`p99(queue_wait) 7.20 ms, n 1,204; imbalance — (no cores)`: every comparison with its value, or why not."""
    return "; ".join(_told(part) for part in outcome.parts)


def _told(part: Judged) -> str:
    seen, name = part.observed, part.comparison.measure.name
    where = "".join(f" where {only.text}" for only in part.comparison.where)
    if seen.value is None:
        return f"{name}{where} {fmt.DASH} ({part.note or 'no data'})"
    short = f" ({part.note})" if part.verdict == "not enough data" and part.note else ""
    return f"{name}{where} {'≥ ' if seen.at_least else ''}{_value(part, seen.value)}, n {seen.n:,}{short}"


def _value(part: Judged, value: float) -> str:
    kind = part.comparison.measure.kind
    if kind == "duration":
        return fmt.duration(value).strip()
    if kind == "share":
        return fmt.percent(value).strip()
    if kind == "size":
        return fmt.size(value).strip()
    return f"{value:,.0f}" if value.is_integer() and abs(value) < _PLAIN else fmt.count(value).strip()
