"""Rings of time slots holding log histograms: adding is counting, forgetting a slot is clearing a row."""

from __future__ import annotations

import numpy as np

from fusetui.analysis.arrays import Codes, Floats, Ints
from fusetui.analysis.groups import Groups
from fusetui.analysis.loghist import BUCKETS, REPRESENTATIVE, bucket_of, rank_buckets
from fusetui.analysis.slots import RingSlots

_ONE = np.int32(1)


class HistogramRing:
    """Log histograms per key (a stream, a kind) and slot.

    counts    [K, S, BUCKETS] int32, memory only where touched
    total     [K, BUCKETS] int64: the sum over the slots
    n, sum_ns, max_ns  [K, S]
    """

    def __init__(self, keys: int, slots: int) -> None:
        self.keys, self.slots = keys, slots
        self.used = 0
        self.counts = np.zeros((keys, slots, BUCKETS), np.int32)
        self.total = np.zeros((keys, BUCKETS), np.int64)
        self.n = np.zeros((keys, slots), np.int64)
        self.sum_ns = np.zeros((keys, slots), np.float64)
        self.max_ns = np.zeros((keys, slots), np.int64)
        self._low, self._high = BUCKETS, 0
        self._dirty = np.zeros(slots, np.bool_)
        self._p50, self._p95, self._p99 = (np.full((keys, slots), np.nan) for _ in range(3))
        self._all = [np.full(slots, np.nan) for _ in range(3)]

    def add(self, groups: Groups, where: RingSlots, values: Ints) -> None:
        """Count values (n,) of their groups' keys in their ring slots."""
        if values.size == 0:
            return
        self.used = max(self.used, int(groups.key.max()) + 1)
        bucket = bucket_of(values)
        low, high = int(bucket.min()), int(bucket.max()) + 1
        self._low, self._high = min(self._low, low), max(self._high, high)
        cells, slot = where.cells(groups)
        if where.only is not None and len(groups.key) * (high - low) <= 2 * values.size:
            self._count_in_slot(where.only, groups, bucket, low, high)
        else:
            row = cells.per_row(cells.key.astype(np.int64) * self.slots + slot) * BUCKETS
            np.add.at(self.counts.reshape(-1), row + bucket, _ONE)
            np.add.at(self.total.reshape(-1), cells.per_row(cells.key.astype(np.int64)) * BUCKETS + bucket, 1)
        cell = cells.key * self.slots + slot
        np.add.at(self.n.reshape(-1), cell, cells.size)
        np.add.at(self.sum_ns.reshape(-1), cell, cells.sums(values))
        np.maximum.at(self.max_ns.reshape(-1), cell, cells.maxima(values))
        self._dirty[slot] = True

    def _count_in_slot(self, slot: int, groups: Groups, bucket: Codes, low: int, high: int) -> None:
        """All of a large batch in one slot: count it once, in the buckets that occur, and add it twice."""
        keys, wide = len(groups.key), high - low
        first = np.arange(keys, dtype=np.int32) * np.int32(wide) - np.int32(low)
        fresh = np.bincount(bucket + groups.per_row(first), minlength=keys * wide).reshape(keys, wide)
        self.counts[groups.key, slot, low:high] += fresh.astype(np.int32)
        self.total[groups.key, low:high] += fresh

    def clear(self, slots: Ints) -> None:
        """Forget some ring slots."""
        keys = slice(0, self.used)
        low, high = min(self._low, self._high), self._high
        for slot in slots.tolist():
            self.total[keys, low:high] -= self.counts[keys, slot, low:high]
            self.counts[keys, slot, low:high] = 0
        for array in (self.n, self.sum_ns, self.max_ns):
            array[keys, slots] = 0
        self._dirty[slots] = True

    def series(self, key: int) -> tuple[Floats, Floats, Floats]:
        """p50, p95, p99 per ring slot of one key, [S]; by nearest rank: p99 of fewer than 100 is the maximum."""
        self._refresh()
        return self._p50[key], self._p95[key], self._p99[key]

    def series_of_all(self) -> tuple[Floats, Floats, Floats]:
        """The same over all keys together."""
        self._refresh()
        return self._all[0], self._all[1], self._all[2]

    def heat(self, key: int) -> Floats:
        """p99 per ring slot, NaN where it has no samples; [S]."""
        return self.series(key)[2]

    def _refresh(self) -> None:
        """Quantiles of the slots that changed since the last look."""
        dirty = np.flatnonzero(self._dirty)
        if dirty.size == 0 or self.used == 0:
            return
        low, high = min(self._low, self._high), self._high
        counts = self.counts[: self.used, dirty, low:high]
        flat = counts.reshape(-1, high - low)
        shape = (self.used, dirty.size)
        largest = self.max_ns[: self.used, dirty]
        for cache, together, q in zip((self._p50, self._p95, self._p99), self._all, (0.5, 0.95, 0.99), strict=True):
            cache[: self.used, dirty] = _quantiles(flat, q, low, largest.reshape(-1)).reshape(shape)
            merged = counts.sum(axis=0, dtype=np.int64)
            together[dirty] = _quantiles(merged, q, low, largest.max(axis=0))
        self._dirty[:] = False


def _quantiles(counts: Codes, q: float, low: int, largest: Ints) -> Floats:
    found = rank_buckets(counts, q)
    values = np.minimum(REPRESENTATIVE[np.maximum(found, 0) + low], largest)
    return np.where(counts.sum(axis=1) > 0, values, np.nan)
