"""Begins and ends of slices paired, however many there are: sorted on disk by track and time, then by level."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from fusetui.importers.rows import Rows
from fusetui.importers.sortedrows import SortedRows, Table, joined

SLICE: Final = np.dtype([("start", "i8"), ("end", "i8"), ("name", "i4"), ("track", "i4")])
EDGE: Final = np.dtype([("time", "i8"), ("name", "i4"), ("track", "i4"), ("begins", "?")])
_LEVELLED: Final = np.dtype([*EDGE.descr, ("level", "i8")])


def paired(edges: Rows, memory_bytes: int, *, by_name: bool) -> Iterator[Table]:
    """Slices out of begins and ends, one end closing the last open begin of its track.

    by_name  the last open one of the same name instead: the slices of a track may overlap
    """
    place = ("track", "name") if by_name else ("track",)
    ordered = SortedRows(EDGE, (*place, "time"), memory_bytes // 2)
    for chunk in edges.chunks():
        ordered.append(chunk)
    levelled = SortedRows(_LEVELLED, (*place, "level"), memory_bytes // 2)
    depth = 0
    for block in ordered.blocks():
        after = depth + np.cumsum(np.where(block["begins"], 1, -1))
        depth = int(after[-1])
        # A begin and its end stand at the same level, and alternate there: also after an end that closes nothing.
        level = np.where(block["begins"], after, after + 1)
        levelled.add(**{name: block[name] for name in EDGE.names or ()}, level=level)
    ordered.clear()
    last = np.empty(0, _LEVELLED)
    for block in levelled.blocks():
        rows = joined([last, block])
        last = rows[-1:]
        first, second = rows[:-1], rows[1:]
        good = first["begins"] & ~second["begins"]
        for key in (*place, "level"):
            good &= first[key] == second[key]
        found = np.empty(int(good.sum()), SLICE)
        found["start"], found["end"] = first["time"][good], second["time"][good]
        found["name"], found["track"] = first["name"][good], first["track"][good]
        yield found
