"""How many samples a statement about a quantile needs."""

from __future__ import annotations

import math
from typing import Final

TAIL_SAMPLES: Final = 3
"""Samples beyond the quantile from which intervals hold what they promise: n (1 - q) >= 3, and n q >= 3 below."""

ALIKE: Final = 3.0
"""`worth` that no independent values reach."""


def least_n(q: float) -> int:
    """The smallest n for which the quantile q gets an interval."""
    return math.ceil(TAIL_SAMPLES / min(q, 1.0 - q) - 1e-6)


def too_small(q: float, *sizes: int) -> str:
    """Why samples of these sizes say nothing about the quantile q; "" when they do."""
    least = least_n(q)
    if min(sizes) >= least:
        return ""
    return f"p{100 * q:g} needs n ≥ {least:,}, have {' and '.join(f'{n:,}' for n in sizes)}"


def worth_too_little(q: float, worth: float, *sizes: int) -> str:
    """Why samples that are alike in time say nothing about q: few runs of large values stand for all of them."""
    tail = min(sizes) * min(q, 1.0 - q) / worth
    if worth <= ALIKE or tail >= 2 * TAIL_SAMPLES:
        return ""
    told = f"neighbours are alike: {min(sizes):,} are worth about {min(sizes) / worth:,.0f}"
    return f"{told}, p{100 * q:g} needs about n ≥ {round(2 * least_n(q) * worth, -2):,.0f}"


def needed_n(n: int, low: float, high: float, change: float) -> int | None:
    """Samples per side that would tell a ratio of 1 + change from 1, from an interval (low, high) found with n.

    The width of an interval of log ratios falls with the square root of n.
    """
    if not 0.0 < low < high < math.inf or change in (0.0, -1.0):
        return None
    half = math.log(high / low) / 2.0
    return math.ceil(n * (half / abs(math.log1p(change))) ** 2 - 1e-9)
