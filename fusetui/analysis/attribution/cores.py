"""Cores over time: how long each ran, how many ran at once, and when one of several stood idle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusetui.analysis.arrays import Floats, Ints
from fusetui.analysis.attribution.axis import Tiled, tiled


@dataclass(frozen=True, slots=True)
class Cores:
    """Executions of each core in the order of their begins, on one axis.

    place   (m,) of each execution, as in the rows; from_ns, length: the axis holds each place's time from from_ns on
    tiles   see `axis.Tiled`; sums [m + 1]: time covered by the first so many
    """

    from_ns: int
    length: int
    tiles: Tiled
    sums: Ints

    def at(self, place: Ints, time: Ints) -> Ints:
        """(q,) positions on the axis."""
        return place * self.length + np.clip(time - self.from_ns, 0, self.length - 1)

    def busy_until(self, at: Ints) -> Ints:
        """(q,) time covered by executions before each position; differences on one place count."""
        tiles = self.tiles
        piece = np.searchsorted(tiles.begin, at, side="right") - 1
        known = np.maximum(piece, 0)
        since = np.maximum(at - np.maximum(tiles.begin[known], tiles.reached[known]), 0)
        covered: Ints = self.sums[known] + np.minimum(since, tiles.new[known])
        return np.where(piece < 0, 0, covered)


def cores_of(place: Ints, start: Ints, end: Ints) -> Cores:
    """From executions (m,), at least one; ends are at or after starts."""
    from_ns = int(start.min())
    length = int(end.max()) - from_ns + 2
    begin = place * length + (start - from_ns)
    tiles = tiled(begin, begin + (end - start), place * length)
    return Cores(from_ns, length, tiles, np.concatenate([[0], np.cumsum(tiles.new)]))


def busy_edges(cores: Cores) -> tuple[Ints, Ints]:
    """(times, +1 or -1 per execution that covered anything): begins then ends, of disjoint intervals per place."""
    tiles = cores.tiles
    some = tiles.new > 0
    begin = np.maximum(tiles.begin, tiles.reached)[some]
    return begin % cores.length + cores.from_ns, begin % cores.length + cores.from_ns + tiles.new[some]


def running_between(begin: Ints, end: Ints, from_ns: Ints, to_ns: Ints) -> Floats:
    """(q,) mean number of the intervals [begin, end) that ran between from and to; 0 of no time."""
    if not len(begin):
        return np.zeros(len(from_ns))
    times = np.concatenate([begin, end])
    order = np.argsort(times, kind="stable")
    times = times[order]
    running = np.cumsum(np.where(order < len(begin), 1, -1))
    area = np.concatenate([[0], np.cumsum(np.diff(times) * running[:-1])])

    def until(at: Ints) -> Ints:
        piece = np.searchsorted(times, at, side="right") - 1
        known = np.maximum(piece, 0)
        reached: Ints = area[known] + running[known] * (at - times[known])
        return np.where(piece < 0, 0, reached)

    took = to_ns - from_ns
    found: Floats = np.divide(until(to_ns) - until(from_ns), took, out=np.zeros(len(took)), where=took > 0)
    return found


def idle_between(begin: Ints, end: Ints, cores: int, from_ns: Ints, to_ns: Ints) -> Ints:
    """(q,) ns between from and to in which fewer than `cores` of the disjoint intervals per core ran."""
    if not len(begin):
        return to_ns - from_ns
    times = np.concatenate([begin, end])
    order = np.argsort(times, kind="stable")
    times = times[order]
    idle = np.cumsum(np.where(order < len(begin), 1, -1)) < cores
    area = np.concatenate([[0], np.cumsum(np.diff(times) * idle[:-1])])

    def until(at: Ints) -> Ints:
        piece = np.searchsorted(times, at, side="right") - 1
        known = np.maximum(piece, 0)
        reached: Ints = area[known] + idle[known] * (at - times[known])
        return np.where(piece < 0, at - times[0], reached)

    found: Ints = until(to_ns) - until(from_ns)
    return found
