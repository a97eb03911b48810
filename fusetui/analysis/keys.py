"""Tuples of small integers, as (host, device, core), become small ids."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from fusetui.analysis.arrays import Codes, repeated


class Keys:
    """Tuples of small integers to dense ids, first come first kept; later ones share the last id."""

    def __init__(self, limit: int) -> None:
        self.keys: list[tuple[int, ...]] = []
        self._ids: dict[tuple[int, ...], int] = {}
        # The ids of all keys within some bounds, -1 for those that have not come yet.
        self._bounds: list[tuple[int, int]] = []
        self._table: Codes = np.zeros(0, np.int32)
        self._in_order = False
        self._limit = limit
        self.overflowed = False

    def ids(self, *columns: Codes) -> Codes:
        """The id of each row of the columns, all (n,)."""
        n = len(columns[0])
        if n == 0:
            return np.zeros(0, np.int32)
        bounds = [_bounds(column) for column in columns]
        if all(low == high for low, high in bounds):
            return repeated(self._id(tuple(low for low, _ in bounds)), n, np.int32)
        together = [(min(a, c), max(b, d)) for (a, b), (c, d) in zip(bounds, self._bounds or bounds, strict=True)]
        if together != self._bounds:
            most = max(4096, 4 * n)
            self._bounds = together if _cells(together) <= most else bounds
            if _cells(self._bounds) > most:
                self._bounds = []
                rows, where = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
                return np.array([self._id(tuple(map(int, row))) for row in rows], np.int32)[where.reshape(-1)]
            self._table = np.full(_cells(self._bounds), -1, np.int32)
            self._in_order = False
        packed = self._packed(columns)
        ids: Codes
        if self._in_order:
            ids = packed + self._table[0]
            return ids
        ids = self._table.take(packed)
        if int(ids.min()) < 0:
            self._learn(packed[ids < 0])
            ids = self._table.take(packed)
        return ids

    def _packed(self, columns: Sequence[Codes]) -> Codes:
        """The cell of each row: its keys as the digits of one number."""
        packed: Codes | None = None
        for column, (low, high) in zip(columns, self._bounds, strict=True):
            if high > low:
                digit = column - low if low else column
                packed = digit if packed is None else packed * np.int64(high - low + 1) + digit
        assert packed is not None
        return packed

    def _learn(self, cells: Codes) -> None:
        for cell in np.flatnonzero(np.bincount(cells)).tolist():
            rest, key = cell, []
            for low, high in reversed(self._bounds):
                rest, digit = divmod(rest, high - low + 1)
                key.append(low + digit)
            self._table[cell] = self._id(tuple(reversed(key)))
        self._in_order = bool((np.diff(self._table) == 1).all()) and int(self._table[0]) >= 0

    def _id(self, key: tuple[int, ...]) -> int:
        found = self._ids.get(key)
        if found is not None:
            return found
        if len(self.keys) >= self._limit:
            self.overflowed = True
            return self._limit
        self._ids[key] = len(self.keys)
        self.keys.append(key)
        return len(self.keys) - 1


def _cells(bounds: Sequence[tuple[int, int]]) -> int:
    return prod(high - low + 1 for low, high in bounds)


def _bounds(column: Codes) -> tuple[int, int]:
    if column.strides == (0,):
        return int(column[0]), int(column[0])
    return int(column.min()), int(column.max())
