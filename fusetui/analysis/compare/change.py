"""A measure against the baseline, for rules: change(p99(latency)) < 10%."""

from __future__ import annotations

from dataclasses import replace

from fusetui.analysis.expression.measures import DURATION_FIELDS, Measure
from fusetui.analysis.expression.observe import Observed, observe
from fusetui.analysis.expression.rows import Scope
from fusetui.analysis.intervals import Ratio, mean_ratio_of, needed_n, quantile_ratio, share_ratio


def observe_change(measure: Measure, before: Scope, after: Scope, limit: float) -> Observed:
    """after / before - 1 with its interval; `why` says how many samples would decide about `limit`."""
    plain = replace(measure, change=False)
    old, new = observe(plain, before), observe(plain, after)
    n = min(old.n, new.n)
    if old.value is None or new.value is None:
        whys = [f"{side}: {seen.why}" for side, seen in (("before", old), ("after", new)) if seen.value is None]
        return Observed(None, n, why="; ".join(whys))
    if old.at_least:
        return Observed(None, n, why="before: open work makes it a lower bound")
    ratio = None if new.at_least else _ratio(plain, before, after)
    if ratio is not None and ratio.why:
        return Observed(None, n, why=ratio.why)
    if ratio is None or ratio.ratio is None or ratio.low is None or ratio.high is None:
        if old.value == 0.0:
            return Observed(0.0, n) if new.value == 0.0 else Observed(None, n, why="it was 0 before")
        return Observed(new.value / old.value - 1.0, n, at_least=new.at_least)
    needed = needed_n(n, ratio.low, ratio.high, limit)
    why = f"the interval holds both sides of the limit; about n ≥ {needed:,} tells" if needed and needed > n else ""
    return Observed(ratio.ratio - 1.0, n, ratio.low - 1.0, ratio.high - 1.0, why=why)


def _ratio(measure: Measure, before: Scope, after: Scope) -> Ratio | None:
    """The ratio with an interval, of the measures that have one."""
    if measure.of in DURATION_FIELDS and (measure.q is not None or measure.aggregate == "mean"):
        old, new = before.durations(measure.of)[0], after.durations(measure.of)[0]
        if measure.q is not None:
            return quantile_ratio(old, new, measure.q)
        return mean_ratio_of(old, new)
    if measure.aggregate in ("share", "hit"):
        seen = [observe(measure, scope) for scope in (before, after)]
        hits = [(s.value or 0.0) * s.n for s in seen]
        return share_ratio((hits[0], hits[1]), (seen[0].n, seen[1].n))
    return None
