"""Quantiles by nearest rank, x[ceil(q n - 1e-9) - 1] on sorted x, exact or from log histograms, open work included.

Work that is still open enters as a right-censored age: all that is known is that it will take at least that long.
With open work the quantile is the Kaplan-Meier one, the smallest t with S(t) <= 1 - q, where
S(t) = product over event times t_i <= t of (1 - d_i / n_i), d_i the events at t_i and n_i the work not yet ended
or censored before t_i. Where S never falls that far the largest age is a lower bound (`at_least`).
Without open work this is the nearest rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Final

import numpy as np

from fusetui.analysis.arrays import Floats, Ints
from fusetui.analysis.loghist import BUCKETS, REPRESENTATIVE, bucket_of, nearest_rank_index
from fusetui.analysis.snapshot import Tail

LEVELS: Final = (("p50", 0.5, 1), ("p95", 0.95, 1), ("p99", 0.99, 100), ("p999", 0.999, 1000))
"""Name, q and the smallest n for which the quantile is given."""
_NONE: Final[Ints] = np.zeros(0, np.int64)


def nearest_rank(values: Ints, quantiles: Sequence[float]) -> list[int]:
    """Exact nearest-rank quantiles of values (n,), n > 0."""
    ranks = [nearest_rank_index(values.size, q) for q in quantiles]
    part = np.partition(values, sorted(set(ranks)))
    return [int(part[rank]) for rank in ranks]


def kaplan_meier(
    times: Ints | Floats, events: Ints, censored: Ints, quantiles: Sequence[float]
) -> list[tuple[int | float, bool]]:
    """Quantiles of right-censored durations.

    times     distinct times in ascending order, (n,)
    events    how many ended at each time; censored: how many were still open at that age, (n,)
    Returns (value, reached) per quantile; not reached: the value is the largest time, a lower bound.
    """
    leaving = events + censored
    at_risk = leaving[::-1].cumsum()[::-1]
    survival = np.cumprod(1.0 - events / np.maximum(at_risk, 1))
    found: list[tuple[int | float, bool]] = []
    for q in quantiles:
        hit = int(np.argmax(survival <= 1.0 - q + 1e-9))
        reached = bool(survival[hit] <= 1.0 - q + 1e-9)
        found.append((times[hit if reached else -1].item(), reached))
    return found


def tail_of(values: Ints, open_ages: Ints = _NONE) -> Tail:
    """Exact tail of durations (n,) in ns with the ages of open work (m,) in ns."""
    n = values.size + open_ages.size
    if n == 0:
        return Tail(why="no samples")
    wanted, why = _allowed(n)
    quantiles = [q for _, q in wanted]
    at_least: set[str] = set()
    if open_ages.size == 0:
        found = nearest_rank(values, quantiles)
    else:
        times, where = np.unique(np.concatenate([values, open_ages]), return_inverse=True)
        events = np.bincount(where[: values.size], minlength=times.size)
        censored = np.bincount(where[values.size :], minlength=times.size)
        reached = kaplan_meier(times, events, censored, quantiles)
        found = [int(value) for value, _ in reached]
        at_least = {name for (name, _), (_, ok) in zip(wanted, reached, strict=True) if not ok}
    mean = float(values.mean()) if values.size else None
    return _tail(n, wanted, found, why, values.max(initial=-1).item(), mean, open_ages, at_least, exact=True)


def tail_of_counts(counts: Ints, total_ns: float, max_ns: int, open_ages: Ints = _NONE) -> Tail:
    """Tail from a log histogram.

    counts    [BUCKETS] of the work that ended; total_ns: the sum of its durations; max_ns: the largest of them
    open_ages ages of open work (m,) in ns
    """
    ended = int(counts.sum())
    n = ended + open_ages.size
    if n == 0:
        return Tail(why="no samples", exact=False)
    wanted, why = _allowed(n)
    quantiles = [q for _, q in wanted]
    at_least: set[str] = set()
    ages = np.bincount(bucket_of(open_ages), minlength=BUCKETS) if open_ages.size else np.zeros(BUCKETS, np.int64)
    used = np.flatnonzero(counts + ages)
    reached = kaplan_meier(REPRESENTATIVE[used], counts[used], ages[used], quantiles)
    found = []
    for (name, _), (value, ok) in zip(wanted, reached, strict=True):
        found.append(min(round(value), max_ns) if ok else int(open_ages.max()))
        if not ok:
            at_least.add(name)
    # A bucket's value and an open age of the same bucket may lie the wrong way round.
    found = list(accumulate(found, max))
    mean = total_ns / ended if ended else None
    return _tail(n, wanted, found, why, max_ns if ended else -1, mean, open_ages, at_least, exact=False)


def _allowed(n: int) -> tuple[list[tuple[str, float]], str]:
    """The quantiles that n samples carry, and why the others are refused."""
    wanted = [(name, q) for name, q, least in LEVELS if n >= least]
    refused = [f"{name} needs n ≥ {least}, have {n}" for name, _, least in LEVELS if n < least]
    return wanted, "; ".join(refused)


def _tail(
    n: int,
    wanted: Sequence[tuple[str, float]],
    found: Sequence[int],
    why: str,
    max_ended: int,
    mean: float | None,
    open_ages: Ints,
    at_least: set[str],
    *,
    exact: bool,
) -> Tail:
    by_name = dict(zip((name for name, _ in wanted), found, strict=True))
    oldest = int(open_ages.max()) if open_ages.size else -1
    if oldest > max_ended:
        at_least.add("max")
    return Tail(
        n=n,
        p50_ns=by_name.get("p50"),
        p95_ns=by_name.get("p95"),
        p99_ns=by_name.get("p99"),
        p999_ns=by_name.get("p999"),
        max_ns=max(max_ended, oldest),
        mean_ns=mean,
        open_n=open_ages.size,
        at_least=frozenset(at_least),
        exact=exact,
        why=why,
    )
