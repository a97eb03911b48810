"""Rows in the order of a key and, within a key, of time: sums and maxima per key are those of stretches of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from fusetui.analysis.arrays import Bools, Codes, Floats, Ints, Order

_SAFE = 1 << 62
_Values = TypeVar("_Values", bound="np.ndarray[Any, Any]")


@dataclass(slots=True)
class Groups:
    """Stretches of rows (n,), n >= 1, that have their key in common, arrays of shape (g,).

    key          ascending
    first, size  where a stretch begins, how many rows it has
    n            all rows
    """

    key: Codes
    first: Ints
    size: Ints
    n: int

    @classmethod
    def one(cls, key: int, n: int) -> Groups:
        """All n rows have the same key."""
        return cls(np.array([key]), np.zeros(1, np.int64), np.array([n]), n)

    @classmethod
    def of(cls, key: Codes) -> Groups:
        """Those of keys (n,) in ascending order; equal keys that are not next to each other make several."""
        if key[0] == key[-1]:
            return cls.one(int(key[0]), len(key))
        first = np.append(0, np.flatnonzero(key[1:] != key[:-1]) + 1)
        return cls(key[first], first, np.diff(first, append=len(key)), len(key))

    def cut(self, at: Ints) -> Groups:
        """The same, cut in two at some rows."""
        first = np.union1d(self.first, at)
        key = self.key[np.searchsorted(self.first, first, side="right") - 1]
        return Groups(key, first, np.diff(first, append=self.n), self.n)

    def take(self, chosen: Bools) -> Groups:
        """The groups of some of the rows, at least one."""
        if len(self.key) == 1:
            return Groups.one(int(self.key[0]), int(np.count_nonzero(chosen)))
        return Groups.of(np.repeat(self.key, self.size)[chosen])

    def per_row(self, values: _Values) -> _Values:
        """A value per stretch (g,) for each of its rows, (n,); (1,) when there is but one stretch."""
        return values if len(self.first) == 1 else np.repeat(values, self.size)  # type: ignore[return-value]

    def sums(self, values: Ints) -> Floats:
        """Sums of values (n,), none negative, per stretch, (g,)."""
        if int(values.max()) * self.n < _SAFE:
            return np.add.reduceat(values, self.first).astype(np.float64)
        return np.add.reduceat(values.astype(np.float64), self.first)

    def maxima(self, values: Ints) -> Ints:
        """The largest of values (n,) in each stretch, (g,)."""
        found: Ints = np.maximum.reduceat(values, self.first)
        return found


def grouped(key: Codes) -> tuple[Order, Groups]:
    """The order that puts rows (n,) in order of their key >= 0 and otherwise leaves them as they are; the groups."""
    if key.strides == (0,):
        return slice(None), Groups.one(int(key[0]), len(key))
    count = np.bincount(key)
    present = np.flatnonzero(count)
    if len(present) == 1:
        return slice(None), Groups.one(int(present[0]), len(key))
    size = count[present]
    # Stable sorting of integers of up to 16 bits takes linear time.
    narrow = np.uint8 if len(count) <= 1 << 8 else np.uint16 if len(count) <= 1 << 16 else np.int64
    order = np.argsort(key.astype(narrow), kind="stable")
    return order, Groups(present, np.cumsum(size) - size, size, len(key))
