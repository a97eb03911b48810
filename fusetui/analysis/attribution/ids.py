"""Dense ids, by counting where values lie close together: sorting 100,000 of them costs ten times as much."""

from __future__ import annotations

import numpy as np

from fusetui.analysis.arrays import Codes, Ints


def ids_of(values: Codes) -> Ints:
    """(n,) 0, 1, … in the order of the values; none for n = 0."""
    if not len(values):
        return np.zeros(0, np.int64)
    low, high = int(values.min()), int(values.max())
    if high - low > max(4 * len(values), 1 << 16):
        return np.unique(values, return_inverse=True)[1].reshape(-1)
    offset = values.astype(np.int64) - low
    used = np.zeros(high - low + 1, np.int64)
    used[offset] = 1
    return (np.cumsum(used) - 1)[offset]


def distinct(ids: Ints) -> Ints:
    """The distinct values of small ids (n,), ascending."""
    return np.flatnonzero(np.bincount(ids)) if len(ids) else np.zeros(0, np.int64)
