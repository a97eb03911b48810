"""Means and shares before and after."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Final

import numpy as np

from fusetui.analysis.intervals.dependence import BATCHES, dependence_of_mean
from fusetui.analysis.intervals.ratio import Ratio
from fusetui.analysis.intervals.student import t_reach
from fusetui.analysis.intervals.values import Values

_NORMAL: Final = NormalDist()
MIN_ITEMS: Final = 5
"""Below this a mean has no error worth the name."""
SKEWED_N: Final = 30
LOPSIDED: Final = 0.4
"""Skewness over sqrt(n): from there on fewer than about six values make up a mean, and intervals miss it too often."""


def mean_ratio(
    n: tuple[int, int],
    total: tuple[float, float],
    squares: tuple[float, float],
    *,
    level: float = 0.95,
    worth: tuple[float, float] = (1.0, 1.0),
) -> Ratio:
    """The ratio of two means from counts, sums and sums of squares, on the log scale for the ratio.

    Welch's errors and degrees of freedom (Biometrika 34, 1947): five values say little of their own spread.

    worth  how many values an independent one is worth, by side (see `dependence_of_mean`)
    Sides of one value throughout (a count that never varies) have an interval of no width: they are known exactly.
    """
    if not all(n):
        return Ratio(*n, why="no samples")
    before, after = (t / k for t, k in zip(total, n, strict=True))
    ratio = after / before if before > 0.0 else None
    if min(n) < MIN_ITEMS:
        return Ratio(*n, before, after, ratio, why=f"a mean needs n ≥ {MIN_ITEMS}, have {n[0]} and {n[1]}")
    errors = [
        math.sqrt(max(s / k - (t / k) ** 2, 0.0) / (k - 1) * w)
        for k, t, s, w in zip(n, total, squares, worth, strict=True)
    ]
    free = [_freedom(k, w) for k, w in zip(n, worth, strict=True)]
    shift, wide = after - before, _reach(level, errors, free)
    low = high = None
    if ratio is not None and after > 0.0:
        reach = _reach(level, [errors[0] / before, errors[1] / after], free)
        low, high = ratio * math.exp(-min(reach, 700.0)), ratio * math.exp(min(reach, 700.0))
    return Ratio(*n, before, after, ratio, low, high, shift - wide, shift + wide, max(worth))


def _freedom(n: int, worth: float) -> float:
    """Of one side's error; what is known from batches has one less than there are batches."""
    return max(min(n / worth, BATCHES) - 1.0 if worth > 1.0 else n - 1.0, 1.0)


def _reach(level: float, errors: Sequence[float], freedom: Sequence[float]) -> float:
    squares = [error * error for error in errors]
    spread = sum(square * square / free for square, free in zip(squares, freedom, strict=True))
    if spread <= 0.0:
        return 0.0
    return t_reach(level, sum(squares) ** 2 / spread) * math.sqrt(sum(squares))


def mean_ratio_of(
    before: Values, after: Values, *, level: float = 0.95, worth: tuple[float, float] | None = None
) -> Ratio:
    """`mean_ratio` of two samples in the order of time, (n,) and (m,): neighbours that are alike count.

    worth  None: worked out of the values
    """
    old, new = before.astype(np.float64), after.astype(np.float64)
    if any(side.size >= SKEWED_N and lopsided(side) for side in (old, new)):
        was, now = (float(side.mean()) if side.size else None for side in (old, new))
        ratio = now / was if was and now is not None else None
        return Ratio(old.size, new.size, was, now, ratio, why="a few of the largest values make up the mean")
    return mean_ratio(
        (old.size, new.size),
        (float(old.sum()), float(new.sum())),
        (float(old @ old), float(new @ new)),
        level=level,
        worth=worth or (dependence_of_mean(old), dependence_of_mean(new)),
    )


def lopsided(values: Values) -> bool:
    """Whether a mean rests on a few values: k of them that outweigh all others have a skewness of about sqrt(n / k)."""
    left = values - values.mean()
    squares = float(left @ left)
    return squares > 0.0 and abs(float(left @ (left * left))) > LOPSIDED * squares**1.5


def share_interval(hits: float, n: int, *, level: float = 0.95) -> tuple[float, float]:
    """Wilson's interval of a share (JASA 22, 1927), n > 0."""
    z = _NORMAL.inv_cdf((1.0 + level) / 2.0)
    share, room = hits / n, z * z / n
    centre = (share + room / 2.0) / (1.0 + room)
    wide = z / (1.0 + room) * math.sqrt(share * (1.0 - share) / n + room / (4.0 * n))
    return max(centre - wide, 0.0), min(centre + wide, 1.0)


def share_ratio(hits: tuple[float, float], n: tuple[int, int], *, level: float = 0.95) -> Ratio:
    """Shares before and after: Newcombe's interval of the difference (1998, method 10), Katz's of the ratio."""
    if not all(n):
        return Ratio(*n, why="no samples")
    old, new = (h / k for h, k in zip(hits, n, strict=True))
    (old_low, old_high), (new_low, new_high) = (share_interval(h, k, level=level) for h, k in zip(hits, n, strict=True))
    shift = new - old
    low_shift = shift - math.hypot(new - new_low, old_high - old)
    high_shift = shift + math.hypot(new_high - new, old - old_low)
    low = high = None
    if min(hits) > 0:
        error = math.sqrt(sum((1.0 - h / k) / h for h, k in zip(hits, n, strict=True)))
        reach = _NORMAL.inv_cdf((1.0 + level) / 2.0) * error
        low, high = new / old * math.exp(-reach), new / old * math.exp(reach)
    return Ratio(*n, old, new, new / old if old > 0.0 else None, low, high, low_shift, high_shift)
