"""The interval of one quantile."""

from __future__ import annotations

import numpy as np

from fusetui.analysis.intervals.dependence import dependence
from fusetui.analysis.intervals.ordered import resampled
from fusetui.analysis.intervals.size import too_small
from fusetui.analysis.intervals.values import Values


def quantile_interval(values: Values, q: float, *, level: float = 0.95, seed: int = 0) -> tuple[float, float] | None:
    """Percentile bootstrap of the nearest-rank quantile; values (n,) in the order of time. None: n too small."""
    if values.size == 0 or too_small(q, values.size):
        return None
    draws = resampled(np.sort(values), q, np.random.default_rng(seed), dependence(values, q))
    low, high = np.quantile(draws, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    return float(low), float(high)
