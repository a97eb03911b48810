"""Work of an XProf profile, without the operations that contain others, joined with its launch calls."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fusetui.importers.launchjoin import LaunchJoin
from fusetui.importers.sortedrows import SortedRows, Table, joined
from fusetui.importers.xprof_rows import ROW, Line

_NUMBER = re.compile(r":(\d{1,6})\b")
_PLAIN: Final = np.dtype([*((name, ROW[name]) for name in ROW.names or ()), ("row", "i8"), ("down", "i8")])


class Work:
    """Rows of ROW that are work; they may contain others of their line unless they have a launch call.

    seen        rows added
    containers  of those, how many contain others and so are no work of their own
    first       the earliest start of what is work or a call, None when there is nothing
    """

    def __init__(self, lines: Sequence[Line], memory_bytes: int) -> None:
        self.seen = self.containers = 0
        self.first: int | None = None
        self._join = LaunchJoin([("plan", "i4")], memory_bytes // 2)
        self._plain = SortedRows(_PLAIN, ("stream", "start", "down"), memory_bytes // 4)
        numbers = [int(match[1]) if (match := _NUMBER.search(line.plane)) else -1 for line in lines]
        self._devices = np.array(numbers, np.int32)

    def add(self, rows: Table) -> None:
        """Pieces of work."""
        number = np.arange(self.seen, self.seen + len(rows))
        self.seen += len(rows)
        plain = rows["correlation"] == 0
        columns = {name: rows[name][plain] for name in ROW.names or ()}
        self._plain.add(**columns, row=number[plain], down=-rows["end"][plain])
        self._take(rows[~plain], number[~plain])  # kernels do not nest

    def add_calls(self, rows: Table) -> None:
        """Launch calls of the host."""
        self._see(rows["start"])
        self._join.add_calls(rows["start"], rows["end"], rows["correlation"])

    def joined(self) -> LaunchJoin:
        """The work with its calls; nothing can be added after that."""
        for rows, holds in _nested(self._plain.blocks()):
            self.containers += int(holds.sum())
            self._take(rows[~holds], rows["row"][~holds])
        self._plain.clear()
        self._join.join()
        return self._join

    def _take(self, rows: Table, number: npt.NDArray[np.int64]) -> None:
        if not len(rows):
            return
        self._see(rows["start"])
        device = self._devices[rows["stream"]]
        self._join.add_work(
            rows["start"],
            rows["end"],
            correlation=rows["correlation"],
            row=number,
            device=np.where(device >= 0, device, rows["device"]),
            stream=rows["stream"],
            name=rows["name"],
            plan=rows["plan"],
        )

    def _see(self, starts: npt.NDArray[np.int64]) -> None:
        if len(starts):
            first = int(starts.min())
            self.first = first if self.first is None else min(first, self.first)


def _nested(blocks: Iterator[Table]) -> Iterator[tuple[Table, npt.NDArray[np.bool_]]]:
    """Rows by line and start, and which of them hold the next row of their line."""
    held: list[Any] = []
    for block in blocks:
        rows = joined([*held, block])
        yield rows[:-1], _holds(rows[:-1], rows[1:])
        held = [rows[-1:]]
    for rows in held:
        yield rows, np.zeros(len(rows), np.bool_)


def _holds(rows: Table, following: Table) -> npt.NDArray[np.bool_]:
    same = rows["stream"] == following["stream"]
    holds = same & (following["start"] < rows["end"]) & (following["end"] <= rows["end"])
    # Two operations of one time are a tie of the clock, not a loop and its body.
    found: npt.NDArray[np.bool_] = holds & ((following["start"] > rows["start"]) | (following["end"] < rows["end"]))
    return found
