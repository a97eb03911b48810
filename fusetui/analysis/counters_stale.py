"""Which counters have ended: nothing came for longer than it usually takes, or a bound stopped where the other goes on.

A quantile known from the buckets of a histogram comes as two counters, `… lo` and `… hi`. In the last bucket there is
no upper bound: `… hi` ends while `… lo` goes on, and its last value no longer holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from fusetui.analysis.arrays import Bools, Floats

MISSED: Final = 3
"""Readings that must be missing before a counter counts as stale."""
_LO, _HI = " lo", " hi"


def stale_of(keys: Sequence[tuple[str, str]], filled: Bools) -> Bools:
    """Whether each counter has ended, [n].

    keys    (name, device) of each; filled: [n, S], whether a slot has a reading, in time order
    Overdue is counted from the newest reading of the same device.
    """
    if not keys:
        return np.zeros(0, np.bool_)
    last = np.where(filled.any(axis=1), filled.shape[1] - 1 - filled[:, ::-1].argmax(axis=1), -1).tolist()
    at = dict(zip(keys, last, strict=True))
    newest: dict[str, int] = {}
    for (_, device), slot in at.items():
        newest[device] = max(newest.get(device, -1), slot)
    found = []
    for (name, device), slot, gap in zip(keys, last, _usual_gap(filled).tolist(), strict=True):
        lower = at.get((name.removesuffix(_HI) + _LO, device)) if name.endswith(_HI) else None
        # Without a usual gap (NaN) nothing is overdue.
        found.append(slot < lower if lower is not None else newest[device] - slot > MISSED * gap)
    return np.array(found, np.bool_)


def _usual_gap(filled: Bools) -> Floats:
    """Median slots between two readings, [n]; NaN with fewer than three readings."""
    line, slot = np.nonzero(filled)
    same = line[1:] == line[:-1]
    gap, of = np.diff(slot)[same], line[1:][same]
    gap = gap[np.lexsort((gap, of))]
    n = np.bincount(of, minlength=len(filled))
    begin = np.cumsum(n) - n
    known = n > 1
    low, high = begin[known] + (n[known] - 1) // 2, begin[known] + n[known] // 2
    median = np.full(len(filled), np.nan)
    median[known] = (gap[low] + gap[high]) / 2
    return median
