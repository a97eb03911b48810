"""Rings of time slots holding log histograms: adding is counting, forgetting a slot is clearing a row."""

from __future__ import annotations

import numpy as np

from fusetui.analysis.arrays import Codes, Floats, Ints
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

    def add(self, key: Codes | int, where: RingSlots, values: Ints) -> None:
        """Count values (n,) of their keys in their ring slots; one key for all may be given as such."""
        if values.size == 0:
            return
        self.used = max(self.used, (key if isinstance(key, int) else int(key.max())) + 1)
        bucket = bucket_of(values)
        self._low = min(self._low, int(bucket.min()))
        self._high = max(self._high, int(bucket.max()) + 1)
        if where.only is not None and isinstance(key, int):
            self._add_one(where.only, key, bucket, values)
        elif where.only is not None and self.used * BUCKETS <= 2 * values.size:
            self._add_to_slot(where.only, key, bucket, values)
        else:
            self._add_to_slots(where.slot, np.asarray(key, np.int64), bucket, values)

    def _add_one(self, slot: int, key: int, bucket: Ints, values: Ints) -> None:
        fresh = np.bincount(bucket, minlength=BUCKETS)
        self.counts[key, slot] += fresh.astype(np.int32)
        self.total[key] += fresh
        self.n[key, slot] += values.size
        self.sum_ns[key, slot] += values.sum(dtype=np.float64)
        self.max_ns[key, slot] = max(self.max_ns[key, slot], values.max())
        self._dirty[slot] = True

    def _add_to_slot(self, slot: int, key: Codes | int, bucket: Ints, values: Ints) -> None:
        """All of a large batch in one slot: count it once, add it twice."""
        used = self.used
        wide = np.asarray(key, np.int64)
        fresh = np.bincount(wide * BUCKETS + bucket, minlength=used * BUCKETS).reshape(used, BUCKETS)
        self.counts[:used, slot] += fresh.astype(np.int32)
        self.total[:used] += fresh
        self.n[:used, slot] += fresh.sum(axis=1)
        self.sum_ns[:used, slot] += np.bincount(wide, weights=values, minlength=used)
        np.maximum.at(self.max_ns[:, slot], wide, values)
        self._dirty[slot] = True

    def _add_to_slots(self, slot: Ints, key: Ints, bucket: Ints, values: Ints) -> None:
        cell = key * self.slots + slot
        key = np.broadcast_to(key, cell.shape)
        np.add.at(self.counts.reshape(-1), cell * BUCKETS + bucket, _ONE)
        np.add.at(self.total.reshape(-1), key * BUCKETS + bucket, 1)
        np.add.at(self.n.reshape(-1), cell, 1)
        np.add.at(self.sum_ns.reshape(-1), cell, values.astype(np.float64))
        np.maximum.at(self.max_ns.reshape(-1), cell, values)
        self._dirty[slot] = True

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
