"""Bootstrap of a quantile without resampling: the order statistic of a resample has a known rank.

The k-th smallest of n draws with replacement from n ascending values is x_(J), J = ceil(n U), U ~ Beta(k, n - k + 1):
U is the k-th smallest of n uniform draws. So B resamples cost B Beta draws, whatever n, and are exactly those of the
percentile bootstrap (Efron and Tibshirani 1993, ch. 13). Values worth fewer (see `dependence`) draw as n_eff would.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from fusetui.analysis.arrays import Floats
from fusetui.analysis.intervals.values import Values
from fusetui.analysis.loghist import nearest_rank_index

RESAMPLES: Final = 4000


def resampled(
    ordered: Values, q: float, rng: np.random.Generator, worth: float = 1.0, resamples: int = RESAMPLES
) -> Floats:
    """The nearest-rank quantile q of `resamples` resamples of ascending values (n,), (resamples,).

    worth  n over the number of independent values, at least 1
    """
    n = ordered.size
    rank = nearest_rank_index(n, q) + 1
    u = rng.beta(rank / worth, (n - rank + 1) / worth, resamples)
    drawn: Floats = ordered[np.clip(np.ceil(n * u).astype(np.int64) - 1, 0, n - 1)].astype(np.float64)
    return drawn
