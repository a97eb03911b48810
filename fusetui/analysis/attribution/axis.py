"""Intervals of many owners laid end to end on one axis, so that one sorted pass does for all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusetui.analysis.arrays import Ints


@dataclass(frozen=True, slots=True)
class Tiled:
    """Intervals in the order of their begins; arrays (m,).

    order   index of each in the arrays they were made from
    begin   where it begins on the axis; reached: how far the ones before it had come
    new     ns it covers that none before it did; gap: ns before it that none covers
    """

    order: Ints
    begin: Ints
    reached: Ints
    new: Ints
    gap: Ints


def tiled(begin: Ints, end: Ints, floor: Ints) -> Tiled:
    """Intervals on an axis; floor (m,): where their owner's time begins to count, below all later owners' intervals."""
    order = np.argsort(begin, kind="stable")
    a, b, low = begin[order], end[order], floor[order]
    before = np.empty_like(b)
    before[:1] = low[:1]
    np.maximum.accumulate(b[:-1], out=before[1:])
    reached = np.maximum(before, low)
    return Tiled(order, a, reached, np.maximum(b - np.maximum(a, reached), 0), np.maximum(a - reached, 0))
