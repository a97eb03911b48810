"""Rules judged: holds, breached, or not enough data, which is never a pass.

A comparison is judged by its value; by its interval where it is of a change, and where a share has too few items to
resolve the limit. `and`, `or`, `not` are Kleene's: not enough data stays that unless the other side decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from fusetui.analysis.expression.observe import Observed
from fusetui.analysis.expression.rule import Comparison, Joined, Node, Rule

Verdict = Literal["holds", "breached", "not enough data"]
HOLDS: Final = "holds"
BREACHED: Final = "breached"
SHORT: Final = "not enough data"
Observe = Callable[[Comparison], Observed]
_SHARE_ITEMS: Final = 3


@dataclass(frozen=True, slots=True)
class Judged:
    """One comparison with what was observed; note: what the verdict leaves open."""

    comparison: Comparison
    observed: Observed
    verdict: Verdict
    note: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A rule with its verdict and those of its comparisons."""

    rule: Rule
    verdict: Verdict
    parts: tuple[Judged, ...]


def judge(rule: Rule, observe: Observe, min_n: int = 0) -> Outcome:
    """The verdict of a rule; min_n: with fewer items a comparison is not enough data, whatever its value."""
    parts: list[Judged] = []
    verdict = _judge(rule.node, observe, min_n, parts)
    return Outcome(rule, verdict, tuple(parts))


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    """Breached before not enough data before holds."""
    return next((v for v in (BREACHED, SHORT) if v in verdicts), HOLDS)


def _judge(node: Node, observe: Observe, min_n: int, parts: list[Judged]) -> Verdict:
    if isinstance(node, Comparison):
        judged = _compare(node, observe(node), min_n)
        parts.append(judged)
        return judged.verdict
    if isinstance(node, Joined):
        left, right = (_judge(each, observe, min_n, parts) for each in (node.left, node.right))
        decides = BREACHED if node.word == "and" else HOLDS
        if decides in (left, right):
            return decides
        return SHORT if SHORT in (left, right) else left
    inner = _judge(node.inner, observe, min_n, parts)
    return {HOLDS: BREACHED, BREACHED: HOLDS, SHORT: SHORT}[inner]  # type: ignore[return-value]


def _compare(comparison: Comparison, seen: Observed, min_n: int) -> Judged:
    measure, limit, op = comparison.measure, comparison.limit, comparison.op
    if seen.value is None:
        return Judged(comparison, seen, SHORT, seen.why)
    if seen.n < min_n and measure.aggregate not in ("count", "rate"):
        return Judged(comparison, seen, SHORT, f"n is {seen.n:,}, at least {min_n:,} are asked for")
    low, high = seen.low, seen.high
    few = measure.kind == "share" and 0.0 < limit < 1.0 and seen.n * min(limit, 1.0 - limit) < _SHARE_ITEMS
    if seen.at_least:
        verdict = _by_range(op, seen.value, float("inf"), limit)
        return Judged(comparison, seen, verdict, "open work makes it a lower bound")
    if low is None or high is None:
        return Judged(comparison, seen, _verdict(_true(op, seen.value, limit)), seen.why)
    if measure.change or few:
        verdict = _by_range(op, low, high, limit)
        return Judged(comparison, seen, verdict, seen.why if verdict == SHORT else "")
    holds = _true(op, seen.value, limit)
    crosses = low < limit < high
    return Judged(comparison, seen, _verdict(holds), "its 95 % interval holds the limit" if crosses else "")


def _by_range(op: str, low: float, high: float, limit: float) -> Verdict:
    """The verdict that every value from low to high gives."""
    if op in ("=", "!="):
        if low == high:
            return _verdict(_true(op, low, limit))
        return _verdict(op == "!=") if not low <= limit <= high else SHORT
    ends = {_true(op, low, limit), _true(op, high, limit)}
    return _verdict(ends.pop()) if len(ends) == 1 else SHORT


def _true(op: str, value: float, limit: float) -> bool:
    if op in ("<", "<="):
        return value < limit or (op == "<=" and value == limit)
    if op in (">", ">="):
        return value > limit or (op == ">=" and value == limit)
    return (value == limit) == (op == "=")


def _verdict(holds: bool) -> Verdict:
    return HOLDS if holds else BREACHED
