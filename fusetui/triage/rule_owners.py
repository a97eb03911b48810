"""Who owns a rule of a guardrail: the class that its measure is of, and the stream that it is limited to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from fusetui.triage.owners import Owners, unowned

if TYPE_CHECKING:
    from fusetui.analysis.expression.judge import Outcome
    from fusetui.analysis.expression.measures import Measure

_CLASSES: Final = {
    "latency": "tail", "rate": "tail", "changes": "tail", "queue_wait": "queueing", "depth": "queueing",
    "open": "queueing", "service": "compute", "launch": "launch", "exposed": "launch", "imbalance": "imbalance",
    "fairness": "fairness", "fallback": "fallback", "adapted": "fallback", "planned": "fallback",
    "padding": "fallback", "stall": "fallback", "recompiles": "fallback", "burst": "memory burst",
    "dram_bytes": "DRAM bandwidth", "sram_bytes": "on-chip bandwidth", "busy": "device", "value": "device",
    "hit": "fallback", "drift": "fallback", "accuracy": "compute",
}  # fmt: skip
_STREAM: Final = re.compile(r"\bstream\s*[=~]\s*(?:\"([^\"]+)\"|'([^']+)'|([\w.:/-]+))")


def class_of(measure: Measure) -> str:
    """The bottleneck class, or the topic, that a measure is of."""
    return next((_CLASSES[word] for word in (measure.of, measure.aggregate) if word in _CLASSES), "tail")


def owner_of(outcome: Outcome, owners: Owners, plans: Sequence[str] = ()) -> str:
    """The owner by the first comparison that does not hold, else by the first; or the lines to add."""
    parts = sorted(outcome.parts, key=lambda part: part.verdict == "holds")
    if not parts:
        return unowned("tail")
    asked = parts[0].comparison
    found = next((match for only in asked.where for match in _STREAM.finditer(only.text)), None)
    stream = "" if found is None else next(group for group in found.groups() if group)
    of_class = class_of(asked.measure)
    return owners.of(of_class, "stream" if stream else "", stream, plans) or unowned(of_class)
