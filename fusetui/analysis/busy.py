"""Busy time: the length of the union of intervals, per key (a core, a stream) or over everything, bounded in memory."""

from __future__ import annotations

from typing import Final

import numpy as np

from fusetui.analysis.arrays import Codes, Ints, Order, repeated
from fusetui.analysis.groups import Groups

_SAFE: Final = 1 << 62


def by_key_and_end(key: Codes, end: Ints) -> Order:
    """The order of rows (n,) by key, then by end, as an index. Fast for rows that come in completion order."""
    if key.strides == (0,):
        return slice(None) if bool((end[1:] >= end[:-1]).all()) else np.argsort(end)
    order = np.argsort(key.astype(np.uint16) if _one_word(key) else key, kind="stable")
    sorted_key, sorted_end = key[order], end[order]
    if ((sorted_end[1:] < sorted_end[:-1]) & (sorted_key[1:] == sorted_key[:-1])).any():
        return np.lexsort((end, key))
    return order


def disjoint(key: Codes, start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Cut intervals so that none of a key overlap and their union stays the same.

    key, start, end  (n,), in the order of `by_key_and_end`
    Returns (begin, stop) per row; stop <= begin where nothing is left of it.

    Read from the back, an interval keeps what lies before the earliest start of those that ended after it.
    """
    if start.size == 0:
        return start, end
    if key[0] == key[-1]:
        return start, _cut(start, end)
    base = int(start.min())
    span = int(end.max()) - base + 1
    if (int(key[-1]) - int(key[0]) + 1) * span < _SAFE:
        offset = (key.astype(np.int64) - int(key[0])) * span - base
        return start, _cut(start + offset, end + offset) - offset
    # Too far apart for one number per (key, time): work with the ranks of the times.
    times, rank = np.unique(np.concatenate([start, end]), return_inverse=True)
    _, dense = np.unique(key, return_inverse=True)
    offset = dense.astype(np.int64) * times.size
    cut = _cut(rank[: start.size] + offset, rank[start.size :] + offset) - offset
    return start, times[cut]


def _cut(start: Ints, end: Ints) -> Ints:
    earliest_later = np.minimum.accumulate(start[::-1])[::-1]
    stop = end.copy()
    np.minimum(stop[:-1], earliest_later[1:], out=stop[:-1])
    return np.maximum(stop, start)


def newly_covered(groups: Groups, start: Ints, end: Ints, last_end: Ints) -> tuple[Ints, Ints]:
    """The pieces of time that intervals cover beyond what was covered before.

    groups      of intervals (n,) in the order of key, then end; start, end (n,)
    last_end    [keys]: until when time counts as covered before; moved on to the latest end
    Returns (begin, stop) per row, stop >= begin: pieces of a key do not overlap.

    An interval adds what lies between the end of the one before and its own, from the earliest start on that it or
    any later one has: the latter reaches at least to its end, too.
    """
    floor, final = last_end[groups.key], end[groups.first + groups.size - 1]
    last_end[groups.key] = np.maximum(floor, final)
    if (floor > end[groups.first]).any():
        row = groups.per_row(floor)
        start, end = np.maximum(start, row), np.maximum(end, row)
    span = int(end.max()) - int(start.min()) + 1
    if len(groups.key) * span >= _SAFE:
        begin, stop = disjoint(groups.per_row(groups.key), start, end)
        begin = np.maximum(begin, groups.per_row(floor))
        return begin, np.maximum(stop, begin)
    apart = groups.per_row(np.arange(len(groups.key)) * span)
    begin = start + apart
    np.minimum.accumulate(begin[::-1], out=begin[::-1])
    begin -= apart
    first = np.maximum(begin[groups.first], floor)
    np.maximum(begin[1:], end[:-1], out=begin[1:])
    begin[groups.first] = first
    return np.minimum(begin, end, out=begin), end


def _one_word(key: Codes) -> bool:
    return key.size > 0 and int(key.min()) >= 0 and int(key.max()) < 1 << 16


def union_ns(start: Ints, end: Ints) -> int:
    """Length of the union of intervals (n,), ns."""
    key = repeated(0, start.size, np.int64)
    order = by_key_and_end(key, end)
    begin, stop = disjoint(key, start[order], end[order])
    return int((stop - begin).sum())


def union_by_key_ns(key: Codes, start: Ints, end: Ints, keys: int) -> Ints:
    """Length of the union per key, (keys,) int64, for keys 0..keys-1."""
    order = by_key_and_end(key, end)
    begin, stop = disjoint(key[order], start[order], end[order])
    total = np.zeros(keys, np.int64)
    np.add.at(total, key[order], stop - begin)
    return total


class IntervalUnion:
    """The union of intervals that come in batches, exact while it has at most `limit` gaps.

    Beyond that its older half is closed: only its length is kept, and what later reaches back into it is cut off
    (`exact` turns False then).
    """

    def __init__(self, limit: int = 4_000_000, pending_limit: int = 1 << 18) -> None:
        self.exact = True
        self._limit, self._pending_limit = limit, pending_limit
        self._pending: list[tuple[Ints, Ints]] = []
        self._pending_n = 0
        self._start: Ints = np.zeros(0, np.int64)
        self._end: Ints = np.zeros(0, np.int64)
        self._closed_ns = 0
        self._floor: int | None = None

    def add(self, start: Ints, end: Ints) -> None:
        """Take in intervals (n,), end >= start, in any order."""
        if self._floor is not None and start.size and int(start.min()) < self._floor:
            self.exact = False
            start, end = np.maximum(start, self._floor), np.maximum(end, self._floor)
        self._pending.append((start, end))
        self._pending_n += start.size
        if self._pending_n > self._pending_limit:
            self._merge()

    def total_ns(self) -> int:
        """Length of the union, ns."""
        self._merge()
        return self._closed_ns + int((self._end - self._start).sum())

    def _merge(self) -> None:
        if not self._pending:
            return
        start = np.concatenate([s for s, _ in self._pending])
        end = np.concatenate([e for _, e in self._pending])
        self._pending, self._pending_n = [], 0
        if start.size == 0:
            return
        # What ended before all of these began stays as it is: of work in order that is nearly all.
        low = int(np.searchsorted(self._end, start.min(), "left"))
        start, end = np.concatenate([self._start[low:], start]), np.concatenate([self._end[low:], end])
        order = np.argsort(start, kind="stable")
        start, reach = start[order], np.maximum.accumulate(end[order])
        first = np.flatnonzero(np.concatenate([[True], start[1:] > reach[:-1]]))
        self._start = np.concatenate([self._start[:low], start[first]])
        self._end = np.concatenate([self._end[:low], reach[np.append(first[1:], start.size) - 1]])
        if self._start.size > self._limit:
            half = self._start.size // 2
            self._closed_ns += int((self._end[:half] - self._start[:half]).sum())
            self._floor = int(self._end[half - 1])
            self._start, self._end = self._start[half:], self._end[half:]
