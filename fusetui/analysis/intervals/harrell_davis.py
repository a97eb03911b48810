"""Quantiles as weighted sums of all order statistics, with their standard errors: quick enough for every tick.

Harrell and Davis (Biometrika 69, 1982): Q = Σ w_i x_(i), w_i = I(i/n) - I((i-1)/n) of Beta((n+1) q, (n+1)(1-q)).
Maritz and Jarrett (JASA 73, 1978): the variance of the order statistic x_(m), m = [q n + 0.5], is
Σ v_i x_(i)² - (Σ v_i x_(i))² with v_i of Beta(m, n - m + 1); here of log x, so that it is that of a log quantile.
"""

from __future__ import annotations

import numpy as np

from fusetui.analysis.intervals.beta import beta_cells
from fusetui.analysis.intervals.values import Values


def harrell_davis(ordered: Values, q: float) -> float:
    """The quantile q of ascending values (n,)."""
    n = ordered.size
    first, weights = beta_cells(n, (n + 1) * q, (n + 1) * (1.0 - q))
    return float(weights @ ordered[first : first + weights.size])


def log_error(ordered: Values, q: float) -> float:
    """The standard error of the log of the quantile q of ascending values (n,) in ns; less than 1 ns counts as 1."""
    n = ordered.size
    m = min(max(int(q * n + 0.5), 1), n)
    first, weights = beta_cells(n, m, n - m + 1)
    logs = np.log(np.maximum(ordered[first : first + weights.size], 1.0))
    centre = float(weights @ logs)
    return float(np.sqrt(max(float(weights @ (logs - centre) ** 2), 0.0)))
