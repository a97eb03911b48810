"""How much neighbours in time resemble each other: a queue makes a thousand waits worth far fewer.

The variance of means of consecutive batches of 1{x > q-quantile}, over what independent values would have
(batch means; Law and Kelton, Simulation Modeling and Analysis). Intervals widen by its square root.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from fusetui.analysis.intervals.values import Values

BATCHES: Final = 20
_LEAST: Final = 200
"""Below this there are too few batches of any length to tell."""


def dependence(values: Values, q: float) -> float:
    """By how much the variance of a quantile grows, at least 1; values (n,) in the order of time."""
    n = values.size
    if n < _LEAST:
        return 1.0
    cut = np.partition(values, int(q * n))[int(q * n)]
    above = (values >= cut).astype(np.float64)
    spread = float(above.var())
    if spread == 0.0:
        return 1.0
    return _growth(above, spread)


def dependence_of_mean(values: Values) -> float:
    """The same of the variance of a mean."""
    spread = float(values.var()) if values.size >= _LEAST else 0.0
    return _growth(values, spread) if spread > 0.0 else 1.0


def _growth(values: Values, spread: float) -> float:
    size = values.size // BATCHES
    means = values[: size * BATCHES].reshape(BATCHES, size).mean(axis=1)
    return max(1.0, float(means.var(ddof=1)) * size / spread)
