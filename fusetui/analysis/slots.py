"""The window's time slots: their width, and lengths of intervals spread over them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from fusetui.analysis.arrays import Bools, Codes, Floats, Ints, Order, repeated
from fusetui.analysis.groups import Groups

SLOTS: Final = 120


def ladder(smallest: int) -> int:
    """The smallest of 1, 2, 5, 10, 20, 50, … that is at least `smallest`."""
    for step in _steps():
        if step >= smallest:
            return step
    raise AssertionError("the ladder has no end")


def ladder_below(largest: int) -> int:
    """The largest of 1, 2, 5, 10, 20, 50, … that is at most `largest`, at least 1."""
    found = 1
    for step in _steps():
        if step > largest:
            break
        found = step
    return found


def _steps() -> Iterator[int]:
    power = 1
    while True:
        yield from (power, 2 * power, 5 * power)
        power *= 10


@dataclass(frozen=True, slots=True)
class Grid:
    """Slots of `width` ns counted from `origin`; the window holds `count` of them."""

    width: int
    count: int
    origin: int = 0

    @classmethod
    def of_window(cls, window_ns: int) -> Grid:
        """About 120 slots of a round width; together they are at least window_ns wide."""
        width = ladder(max(1, -(-window_ns // SLOTS)))
        return cls(width, max(1, -(-window_ns // width)))

    @classmethod
    def of_span(cls, first_ns: int, last_ns: int) -> Grid:
        """At most 120 slots that begin with the first and hold the last event of a trace, round where that is near."""
        span = last_ns - first_ns + 1
        width = max(1, -(-span // SLOTS))
        digits = 10 ** max(0, len(str(width)) - 2)
        width = -(-width // digits) * digits
        return cls(width, -(-span // width), first_ns)

    def slot_of(self, times: Ints) -> Ints:
        """The number of the slot that holds each time; shape of `times`."""
        return (times - self.origin) // self.width

    def start_of(self, slot: int) -> int:
        """Where a slot begins, ns."""
        return self.origin + slot * self.width


class RingSlots:
    """The ring slot of each row, (n,); `only` is the slot when it is the same for all, which most batches are."""

    __slots__ = ("only", "slot")

    def __init__(self, slot: Ints, only: int | None) -> None:
        self.slot, self.only = slot, only

    @classmethod
    def of(cls, times: Ints, grid: Grid) -> RingSlots:
        """Where rows with these event times belong; at least one row."""
        first, last = (int(grid.slot_of(t)) for t in (times.min(), times.max()))
        if first == last:
            only = first % grid.count
            return cls(repeated(only, times.size, np.int64), only)
        return cls(grid.slot_of(times) % grid.count, None)

    def take(self, chosen: Bools | Order) -> RingSlots:
        """Those of some of the rows, none twice, in any order."""
        return RingSlots(self.slot[chosen], self.only)

    def cells(self, groups: Groups) -> tuple[Groups, Ints]:
        """The groups cut where the slot changes, and the ring slot of each piece; groups of these very rows."""
        if self.only is not None:
            return groups, self.slot[: len(groups.key)]
        changes = np.flatnonzero(self.slot[1:] != self.slot[:-1]) + 1
        pieces = groups.cut(changes)
        return pieces, self.slot[pieces.first]

    def count(self, into: Ints, chosen: Bools | None = None) -> None:
        """Count the rows, or those chosen, in their slots of `into` [S]."""
        if self.only is not None:
            into[self.only] += self.slot.size if chosen is None else np.count_nonzero(chosen)
        else:
            into += np.bincount(self.slot if chosen is None else self.slot[chosen], minlength=into.size)


def spread(key: Codes, begin: Ints, end: Ints, keys: int, grid: Grid, first: int, slots: int) -> Floats:
    """How much of the intervals [begin, end) of each key lies in each slot.

    key, begin, end  (n,), end >= begin; first, slots: the range of slots looked at
    Returns [keys, slots] float64, ns.

    A time t fills the slots before its own in full and its own up to t: an interval is the filling of its end
    less that of its begin.
    """
    low = grid.start_of(first)
    high = low + slots * grid.width
    if slots == 1:
        inside = np.minimum(end, high) - np.maximum(begin, low)
        return np.bincount(key, weights=np.maximum(inside, 0), minlength=keys).reshape(keys, 1).astype(np.float64)
    cells = slots + 1
    partial = np.zeros(keys * cells, np.float64)
    full = np.zeros(keys * cells, np.int64)
    row = key.astype(np.int64) * cells
    for times, sign in ((end, 1), (begin, -1)):
        inside = np.minimum(np.maximum(times, low), high) - low
        slot = inside // grid.width
        at = row + slot
        partial += sign * np.bincount(at, weights=inside - slot * grid.width, minlength=keys * cells)
        full += sign * np.bincount(at, minlength=keys * cells)
    before = full.reshape(keys, cells)[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:]
    return partial.reshape(keys, cells)[:, :slots] + before * float(grid.width)
