"""What a measure is over rows: its value, its interval where it has one, and why it cannot be told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from fusetui.analysis.changepoint.changes import changes_of
from fusetui.analysis.expression.burst import burst_of
from fusetui.analysis.expression.measures import DURATION_FIELDS, Measure
from fusetui.analysis.expression.rows import Scope
from fusetui.analysis.intervals import quantile_interval, share_interval, too_small
from fusetui.analysis.intervals.values import Values
from fusetui.analysis.quantiles import kaplan_meier, nearest_rank
from fusetui.telemetry.schema import MAPPINGS

MIN_MEAN: Final = 5


@dataclass(frozen=True, slots=True)
class Observed:
    """value None: not known, see `why`. n: what it is over; low, high: 95 % interval, None: it has none.

    at_least  open work makes the value a lower bound
    """

    value: float | None
    n: int
    low: float | None = None
    high: float | None = None
    at_least: bool = False
    why: str = ""


def observe(measure: Measure, scope: Scope) -> Observed:
    """The measure over the rows of `scope`; a `change` is of `analysis.compare`."""
    if measure.q is not None:
        return _quantile(measure, measure.q, scope)
    if measure.of and measure.aggregate in ("mean", "min", "max", "sum"):
        return _statistic(measure, scope)
    if measure.aggregate in ("count", "rate"):
        return _counted(measure, scope)
    if measure.aggregate in ("share", "hit"):
        return _share(measure.of or "planned", scope)
    if measure.aggregate == "burst":
        traffic = scope.traffic
        value = burst_of(*traffic)
        return Observed(value, len(traffic[2]), why="" if value is not None else "no execution says its dram_bytes")
    if measure.aggregate == "changes":
        items = scope.items
        changes, why = changes_of(items.rows.end, items.latency)
        rose = sum(1 for change in changes if change.after_ns > change.before_ns)
        return Observed(None if why else float(rose), len(items), why=why)
    return _whole(measure.aggregate, scope)


def _quantile(measure: Measure, q: float, scope: Scope) -> Observed:
    if measure.of not in DURATION_FIELDS:
        numbers = scope.numbers(measure.of)
        why = _lacks(measure.of, numbers.size) or too_small(q, numbers.size)
        if why:
            return Observed(None, numbers.size, why=why)
        return Observed(float(np.quantile(numbers, q, method="inverted_cdf")), numbers.size)
    values, ages = scope.durations(measure.of)
    n = values.size + ages.size
    why = _lacks(measure.of, n) or too_small(q, n)
    if why:
        return Observed(None, n, why=why)
    if not ages.size:
        interval = quantile_interval(values, q) or (None, None)
        return Observed(float(nearest_rank(values, [q])[0]), n, *interval)
    times, where = np.unique(np.concatenate([values, ages]), return_inverse=True)
    ended = np.bincount(where[: values.size], minlength=times.size)
    still = np.bincount(where[values.size :], minlength=times.size)
    ((value, reached),) = kaplan_meier(times, ended, still, [q])
    return Observed(float(value), n, at_least=not reached)


def _statistic(measure: Measure, scope: Scope) -> Observed:
    values: Values
    open_n, oldest = 0, 0
    if measure.of in DURATION_FIELDS:
        values, ages = scope.durations(measure.of)
        open_n, oldest = ages.size, int(ages.max(initial=0))
    else:
        values = scope.numbers(measure.of)
    n = values.size
    why = _lacks(measure.of, n)
    if not why and measure.aggregate == "mean" and n < MIN_MEAN:
        why = f"a mean needs n ≥ {MIN_MEAN}, have {n}"
    if why:
        return Observed(None, n, why=why)
    if measure.aggregate == "mean":
        mean, wide = float(values.mean()), 1.96 * float(values.std(ddof=1)) / n**0.5
        return Observed(mean, n, mean - wide, mean + wide, at_least=open_n > 0)
    if measure.aggregate == "max":
        return Observed(float(max(values.max(), oldest)), n + open_n, at_least=oldest > values.max())
    if measure.aggregate == "min":
        return Observed(float(values.min()), n)
    return Observed(float(values.sum()), n, at_least=open_n > 0)


def _counted(measure: Measure, scope: Scope) -> Observed:
    snapshot = scope.snapshot
    counts = {
        "requests": snapshot.requests, "executions": snapshot.executions, "marks": snapshot.marks_n,
        "recompiles": snapshot.mapping_detail.totals.compiles,
        "open": (snapshot.open_waiting or 0) + (snapshot.open_running or 0),
    }  # fmt: skip
    n = counts[measure.of or f"{scope.latency_of}s"]
    if measure.aggregate == "count":
        if not len(scope.columns):
            return Observed(None, 0, why="no rows")
        return Observed(float(n), n)
    span = scope.span_ns
    if not span:
        return Observed(None, n, why="no work, so no span to count over")
    return Observed(n / span * 1e9, n)


def _share(mapping: str, scope: Scope) -> Observed:
    codes = scope.executions.rows.mapping
    known = int((codes >= 0).sum())
    if not known:
        return Observed(None, 0, why="no execution carries a mapping")
    hits = int((codes == MAPPINGS.index(mapping)).sum())
    return Observed(hits / known, known, *share_interval(hits, known))


def _whole(name: str, scope: Scope) -> Observed:
    """Measures that the snapshot has."""
    s = scope.snapshot
    totals, drift = s.mapping_detail.totals, s.mapping_detail.drift
    busy = s.busy_ns / s.span_ns if s.busy_ns is not None and s.span_ns else None
    ran = s.executions
    found: dict[str, tuple[float | None, int, str]] = {
        "padding": (totals.padding, totals.padding_n, "no row tells what was asked for"),
        "busy": (busy, ran, "no executions"),
        "imbalance": (s.cores.imbalance.lambda_, ran, s.cores.imbalance.why),
        "fairness": (s.fairness.jain, ran, s.fairness.why),
        "depth": (s.depth.mean, ran, "no execution says when it was enqueued"),
        "stall": (totals.stall_ns, totals.compiles, "no recompile says how long it took"),
        "exposed": (s.launch.exposed_ns, s.launch.joined, "no execution knows its launch"),
        "drift": (None if drift is None else drift.index, 0 if drift is None else drift.seen_n, "no shapes to compare"),
        "accuracy": (totals.accuracy, totals.accuracy_n, "no work ran in several ways"),
    }
    value, n, why = found[name]
    return Observed(value, n, why="" if value is not None else why or "not known")


def _lacks(field: str, n: int) -> str:
    return "" if n else f"no row has a {field}"
