"""Measures of the whole trace before and after: one number each, so without intervals unless they are shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fusetui.analysis.expression.measures import Measure
from fusetui.analysis.expression.observe import Observed, observe
from fusetui.analysis.expression.rows import Scope

MEASURES: Final = (
    Measure("rate"), Measure("mean", "latency"), Measure("busy"), Measure("count", "executions"),
    Measure("count", "requests"), Measure("count", "recompiles"), Measure("stall"), Measure("exposed"),
    Measure("share", "fallback"), Measure("share", "adapted"), Measure("padding"), Measure("imbalance"),
    Measure("fairness"), Measure("burst"), Measure("depth"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Total:
    """A measure on both sides."""

    measure: Measure
    before: Observed
    after: Observed

    @property
    def ratio(self) -> float | None:
        """after / before, None where either is not known or before is 0."""
        if self.before.value is None or self.after.value is None or self.before.value <= 0.0:
            return None
        return self.after.value / self.before.value


def totals_of(before: Scope, after: Scope) -> dict[str, Total]:
    """By the name of the measure; those that neither side knows, or that are 0 on both, are left out."""
    found = [Total(measure, observe(measure, before), observe(measure, after)) for measure in MEASURES]
    return {t.measure.name: t for t in found if t.before.value or t.after.value}
