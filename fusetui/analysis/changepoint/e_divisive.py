"""Offline change points by energy statistics (Matteson and James, JASA 109, 2014), own vectorised implementation.

Of a cut of n values into X (m) and Y (k): Q = m k / (m + k) · (2 mean|X - Y| - mean|X - X'| - mean|Y - Y'|), means of
pairs of different values. The cut with the largest Q is tested against the largest Q of permutations of the values,
in blocks so that neighbours stay alike; where it is significant both parts are searched on. Of the right end only the
segment's own is tried.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from fusetui.analysis.arrays import Floats, Ints

MIN_PART: Final = 5
PERMUTATIONS: Final = 199
MAX_VALUES: Final = 400
"""Longer series are refused: a test costs PERMUTATIONS · n²."""
_TOGETHER: Final = 4_000_000


def change_points(
    values: Floats, *, p: float = 0.01, block: int = 1, seed: int = 0, permutations: int = PERMUTATIONS
) -> list[tuple[int, float]]:
    """(first index of the new part, p-value) of each change in values (n,), in order; parts have >= MIN_PART values.

    Raises ValueError for more than MAX_VALUES.
    """
    if values.size > MAX_VALUES:
        raise ValueError(f"at most {MAX_VALUES} values, have {values.size}")
    distance = np.abs(values[:, None] - values[None, :])
    rng = np.random.default_rng(seed)
    found = []
    waiting = [(0, values.size)]
    while waiting:
        begin, end = waiting.pop()
        if end - begin < 2 * MIN_PART:
            continue
        part = distance[begin:end, begin:end]
        cut, best = _best_cut(part[None])
        if best[0] <= 0.0:
            continue
        at_chance = _by_chance(part, block, permutations, rng)
        significance = (1 + int((at_chance >= best[0]).sum())) / (permutations + 1)
        if significance <= p:
            middle = begin + int(cut[0])
            found.append((middle, significance))
            waiting += [(begin, middle), (middle, end)]
    return sorted(found)


def _by_chance(distance: Floats, block: int, permutations: int, rng: np.random.Generator) -> Floats:
    """The largest Q of each of `permutations` orders of the blocks of a segment, (permutations,)."""
    n = distance.shape[0]
    best = np.empty(permutations)
    each = max(1, _TOGETHER // (n * n))
    number = np.arange(n) // block
    for first in range(0, permutations, each):
        many = min(each, permutations - first)
        keys = rng.random((many, number[-1] + 1))
        order = np.argsort(keys[:, number], axis=1, kind="stable")
        shuffled = distance[order[:, :, None], order[:, None, :]]
        best[first : first + many] = _best_cut(shuffled)[1]
    return best


def _best_cut(distance: Floats) -> tuple[Ints, Floats]:
    """The best cut of each of several orders: distance (orders, n, n) -> (cuts (orders,), Q (orders,))."""
    n = distance.shape[1]
    below = np.tril(distance, -1).sum(axis=2)
    left = below.cumsum(axis=1)
    rows = distance.sum(axis=2).cumsum(axis=1)
    total = left[:, -1:]
    cut = np.arange(MIN_PART, n - MIN_PART + 1)
    inside = left[:, cut - 1]
    between = rows[:, cut - 1] - 2.0 * inside
    outside = total - inside - between
    m, k = cut, n - cut
    q = 2.0 * between / (m * k) - 2.0 * inside / (m * (m - 1)) - 2.0 * outside / (k * (k - 1))
    q *= m * k / n
    chosen = q.argmax(axis=1)
    return cut[chosen], q[np.arange(len(q)), chosen]
