"""Where slices are drawn: viewers allow no two slices on one line to overlap, so a busy queue takes several lines."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Key = tuple[str | int | None, ...]


class Lanes:
    """The lanes of many queues, each a line on which no slice begins before the one before it has ended."""

    def __init__(self) -> None:
        self._free: dict[int, list[tuple[int, int]]] = {}  # per queue (end of its last slice, lane), sorted

    def of(self, queue: Ints, start: Ints, end: Ints) -> Ints:
        """The lane of each slice, from 0. Shapes (n,); rows are taken in the order they come, best by their ends."""
        lane = np.zeros(len(queue), np.int64)
        order = np.argsort(queue, kind="stable")
        bounds = [0, *(np.flatnonzero(np.diff(queue[order])) + 1).tolist(), len(queue)]
        for low, high in pairwise(bounds):
            if low < high:
                rows = order[low:high]
                lane[rows] = self._of_one(int(queue[rows[0]]), start[rows], end[rows])
        return lane

    def _of_one(self, queue: int, start: Ints, end: Ints) -> Ints | int:
        free = self._free.setdefault(queue, [])
        if bool((start[1:] >= end[:-1]).all()):
            return self._take(free, int(start[0]), int(end[-1]))
        pairs = zip(start.tolist(), end.tolist(), strict=True)
        return np.array([self._take(free, begun, done) for begun, done in pairs], np.int64)

    @staticmethod
    def _take(free: list[tuple[int, int]], start: int, end: int) -> int:
        """The lane that ended last before `start`, else a new one; it is taken until `end`."""
        at = bisect_right(free, start, key=lambda lane: lane[0])
        lane = free.pop(at - 1)[1] if at else len(free)
        insort(free, (end, lane))
        return lane


class Numbers:
    """Numbers from 1 for keys in the order they come; `made` is told of each new one."""

    def __init__(self, made: Callable[[int, Key], None]) -> None:
        self._numbers: dict[Key, int] = {}
        self._made = made

    def of(self, key: Key) -> int:
        """The number of a key."""
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self._numbers) + 1
            self._made(found, key)
        return found


def distinct(*columns: Ints) -> tuple[Ints, Ints]:
    """One row of each combination of values that occurs, (k,), and the number of each row's combination, (n,)."""
    code = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        values, index = np.unique(column, return_inverse=True)
        # At most n combinations so far: numbered anew, the product stays small.
        _, code = np.unique(code * len(values) + index.reshape(-1), return_inverse=True)
        code = code.reshape(-1).astype(np.int64)
    _, first = np.unique(code, return_index=True)
    return first.astype(np.int64), code
