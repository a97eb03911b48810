"""What a bucket histogram proves of a quantile: the bucket that holds it, and nothing finer."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_RANK_SLACK: Final = 1e-9
_SUM_SLACK: Final = 1e-6


class Bracket(NamedTuple):
    """The quantile lies in (lo, hi]; hi is infinite in the last bucket: all that is known is `≥ lo`."""

    lo: float
    hi: float


def quantile_bracket(bounds: Floats, counts: Floats, q: float) -> Bracket | None:
    """The bucket of the nearest-rank quantile, rank ceil(q·n − 1e-9); None without observations.

    bounds  upper bounds [buckets], ascending, the last one infinite
    counts  observations in each bucket [buckets], not cumulative
    """
    below = np.cumsum(counts)
    n = float(below[-1]) if below.size else 0.0
    if not 0 < n < np.inf:
        return None
    rank = min(n, max(1.0, float(np.ceil(q * n - _RANK_SLACK))))
    at = int(np.searchsorted(below, rank - _RANK_SLACK))
    return Bracket(_lower(bounds)[at], float(bounds[at]))


def mean_bounds(bounds: Floats, counts: Floats) -> Bracket | None:
    """Where sum ÷ count must lie if the buckets are right; None without observations."""
    n = float(counts.sum())
    if not 0 < n < np.inf:
        return None
    filled = counts > 0
    lo = float((_lower(bounds)[filled] * counts[filled]).sum()) / n
    return Bracket(lo, float((bounds[filled] * counts[filled]).sum()) / n)


def mean_fits(mean: float, within: Bracket) -> bool:
    """Whether an exporter's sum agrees with its buckets, but for rounding."""
    slack = _SUM_SLACK * max(abs(mean), abs(within.lo))
    return within.lo - slack <= mean <= within.hi + slack


def _lower(bounds: Floats) -> Floats:
    # What is measured here is never negative: a first bucket up to 0 holds zeros.
    return np.concatenate([[min(0.0, float(bounds[0]))], bounds[:-1]])
