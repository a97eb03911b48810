"""A comparison as plain data; absent is None, nothing is NaN."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import Any

from fusetui.analysis.compare.comparison import Comparison
from fusetui.analysis.compare.moves import level_name
from fusetui.analysis.expression.judge import Outcome


def comparison_plain(made: Comparison) -> dict[str, Any]:
    """Every field; quantiles named p50, p99.9; times in ns, ratios after/before."""
    shown: dict[str, Any] = {f.name: getattr(made, f.name) for f in fields(made)}
    shown["shift"] = [{"quantile": level_name(q), **asdict(ratio)} for q, ratio in made.shift]
    shown["moves"] = [
        {"of": move.field, "quantile": level_name(move.q), "moved": move.moved, **asdict(move.ratio)}
        for move in made.moves
    ]
    shown["totals"] = [
        {"measure": name, "before": asdict(t.before), "after": asdict(t.after), "ratio": t.ratio}
        for name, t in made.totals.items()
    ]
    found: dict[str, Any] = plain(shown)
    return found


def outcome_plain(outcome: Outcome) -> dict[str, Any]:
    """A rule with its verdict and what each of its comparisons observed."""
    return {
        "rule": outcome.rule.text,
        "verdict": outcome.verdict,
        "comparisons": [
            {
                "text": part.comparison.text,
                "measure": part.comparison.measure.name,
                "op": part.comparison.op,
                "limit": part.comparison.limit,
                "where": [only.text for only in part.comparison.where],
                "verdict": part.verdict,
                "note": part.note,
                **plain(asdict(part.observed)),
            }
            for part in outcome.parts
        ],
    }


def plain(value: Any) -> Any:
    """The same of dicts, lists, text and numbers only; a number that is not finite is absent."""
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
