"""A bounded number of buckets for keys of any number."""

from __future__ import annotations

from typing import Final

import numpy as np

from fusetui.analysis.arrays import Bools, Codes, Ints
from fusetui.analysis.keys import Keys
from fusetui.analysis.mapping import MAX_BUCKETS

_MAX_KEYS: Final = 1 << 16
_OTHERS: Final = MAX_BUCKETS - 1


class Buckets:
    """Keys of any number to at most 63 buckets, those first that have most rows when they come; others share one.

    key  [63] dense key of each bucket, -1: free
    """

    def __init__(self) -> None:
        self.keys = Keys(_MAX_KEYS)
        self.key = np.full(_OTHERS, -1, np.int64)
        self._bucket = np.full(_MAX_KEYS + 1, -1, np.int64)

    def of(self, *columns: Codes) -> Ints:
        """The bucket of each row (n,), new ones made while there is room."""
        dense = self.keys.ids(*columns)
        if len(dense) == 0:
            return np.zeros(0, np.int64)
        found = self._bucket[dense]
        if int(found.min()) < 0:
            self._make(dense[found < 0])
            found = self._bucket[dense]
        return np.where(found < 0, _OTHERS, found)

    def _make(self, dense: Codes) -> None:
        counts = np.bincount(dense)
        counts[_MAX_KEYS:] = 0  # too many keys: that id stands for several
        new = np.flatnonzero(counts)
        free = np.flatnonzero(self.key < 0)
        chosen = new[np.argsort(-counts[new], kind="stable")][: len(free)]
        self.key[free[: len(chosen)]] = chosen
        self._bucket[chosen] = free[: len(chosen)]

    def free(self, empty: Bools) -> None:
        """Give back buckets [63] without any work left."""
        gone = empty & (self.key >= 0)
        self._bucket[self.key[gone]] = -1
        self.key[gone] = -1

    def look_up(self, *columns: Codes) -> Ints:
        """The bucket of each row (n,), (others) for keys without one."""
        found = self._bucket[self.keys.ids(*columns)]
        return np.where(found < 0, _OTHERS, found)
