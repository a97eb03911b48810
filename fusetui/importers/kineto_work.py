"""What a Kineto capture ran, put together on disk: device work with its operator's shape and its launch call, or the
outermost host operators.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fusetui.importers.kineto_events import DEVICE, Events
from fusetui.importers.sortedrows import SortedRows, Table, Upto, joined

Ints = npt.NDArray[np.int64]

_NO_SHAPE: Final = -1
_NUMBERED: Final = np.dtype([*DEVICE.descr, ("row", np.int64)])


class Replays:
    """Graph launches by correlation: how many there are, and how many left work in the capture."""

    def __init__(self, launches: SortedRows) -> None:
        self.count = 0
        self.answered = 0
        last = None
        for block in launches.blocks():
            found = np.unique(block["correlation"])
            self.count += len(found) - (int(found[0]) == last)
            last = int(found[-1])
        self._launches = Upto(launches)

    def look(self, correlation: Ints) -> None:
        """Take in the sorted correlations of work, a value never in two portions."""
        if self.count:
            self.answered += len(np.unique(self._launches.rows(correlation)["correlation"]))


def join_device(events: Events, memory_bytes: int) -> Replays:
    """Fill and make the join of `events` from its other tables.

    Dialects of 2022 and 2023 repeat the correlation id as the external id; then it names no operator.
    """
    shapes = events.shapes_known and bool(len(events.operators))
    waiting = SortedRows(_NUMBERED, ("external",), memory_bytes)
    first = 0
    for chunk in events.device.chunks():
        row = np.arange(first, first + len(chunk))
        first += len(chunk)
        asks = (chunk["external"] != 0) & shapes
        _add(events, chunk[~asks], row[~asks], _NO_SHAPE)
        part = chunk[asks]
        waiting.add(**{name: part[name] for name in DEVICE.names or ()}, row=row[asks])
    for block, shape in _with_shapes(waiting, events.operators):
        _add(events, block, block["row"], shape)
    replays = Replays(events.graph_launches)
    events.join.join(replays.look)
    return replays


def _add(events: Events, work: Table, row: Ints, shape: Any) -> None:
    if len(work):
        columns = {name: work[name] for name in ("start", "end", "correlation", "name", "stream", "device")}
        events.join.add_work(**columns, row=row, shape=shape)


def _with_shapes(device: SortedRows, operators: SortedRows) -> Iterator[tuple[Table, Ints]]:
    """Device work by external id, with the shape code of the first operator that has the id, -1 for none."""
    ahead = Upto(operators)
    held = np.empty(0, operators.dtype)
    for block in device.blocks():
        external = np.ascontiguousarray(block["external"])
        # The id with which the portion before ended may go on.
        known = joined([held, ahead.rows(external)])
        shape = np.full(len(block), _NO_SHAPE, np.int64)
        if len(known):
            ids = np.ascontiguousarray(known["external"])
            at = np.minimum(np.searchsorted(ids, external, "left"), len(ids) - 1)
            hit = ids[at] == external
            shape[hit] = known["shape"][at[hit]]
            held = known[at[-1:]] if hit[-1] else known[:0]
        yield block, shape
