"""Weights of order statistics: the probability that a Beta variable falls in each of n equal cells of [0, 1]."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from fusetui.analysis.arrays import Floats

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
_REACH: Final = 9.0
"""Standard deviations around the mean beyond which a cell carries nothing."""


def beta_cells(n: int, a: float, b: float) -> tuple[int, Floats]:
    """(first cell, weights (m,) that sum to 1) of Beta(a, b) over n cells; cells outside have no weight.

    By Gauss-Legendre quadrature in each cell of the density, normalised at the end; a, b >= 1.
    """
    mean = a / (a + b)
    deviation = math.sqrt(mean * (1.0 - mean) / (a + b + 1.0))
    first = max(math.floor((mean - _REACH * deviation) * n), 0)
    last = min(math.ceil((mean + _REACH * deviation) * n), n)
    cells = np.arange(first, last)
    x = (cells[:, None] + (1.0 + _NODES) / 2.0) / n
    log_density = (a - 1.0) * np.log(x) + (b - 1.0) * np.log1p(-x)
    weights: Floats = np.exp(log_density - log_density.max()) @ _WEIGHTS
    return first, weights / weights.sum()
