"""Durations as series of windows of equally many items: what the detectors look at."""

from __future__ import annotations

import math

import numpy as np

from fusetui.analysis.arrays import Floats
from fusetui.analysis.intervals.values import Values


def nearest_rank_of(items: Values, q: float) -> float:
    """The nearest-rank quantile q of items (n,), n > 0."""
    rank = max(math.ceil(q * items.size - 1e-9), 1) - 1
    return float(np.partition(items, rank)[rank])


def in_windows(items: Values, per: int) -> Values:
    """Items (n,) as windows (n // per, per); the last ones that fill none are left out."""
    whole = items.size // per
    return items[: whole * per].reshape(whole, per)


def log_p95(items: Values, per: int) -> Floats:
    """Log of the nearest-rank p95 of each window, (n // per,); less than 1 ns counts as 1."""
    rank = max(math.ceil(0.95 * per - 1e-9), 1) - 1
    found: Floats = np.log(np.maximum(np.partition(in_windows(items, per), rank, axis=1)[:, rank], 1.0))
    return found


def tail_share(items: Values, per: int, cut: float) -> Floats:
    """The share of each window above `cut`, (n // per,)."""
    found: Floats = (in_windows(items, per) > cut).mean(axis=1)
    return found
