"""Device work joined with the launch calls that enqueued it, however much there is of both: sorted on disk by
correlation, joined group by group (`kineto_join`), sorted on disk by end time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fusetui.importers.kineto_batches import ABSENT, Columns, Stream
from fusetui.importers.kineto_join import graph_nodes, launch_of, step_of
from fusetui.importers.sortedrows import SortedRows, Table, Upto, whole_groups
from fusetui.telemetry.schema import EXECUTION

Ints = npt.NDArray[np.int64]

_TIMES: Final = [("start", "i8"), ("end", "i8")]
_PLACE: Final = [("device", "i4"), ("stream", "i4"), ("name", "i4")]
_SPANS: Final = np.dtype([*_TIMES, ("device", "i4"), ("stream", "i4")])


class LaunchJoin:
    """Work and calls of one capture; times are int64 ns on one clock.

    Before `join`: pieces (of work), calls, keyed (work with a correlation key).
    After it: together (work with its call), first_call (earliest start of a call that launched something, None for no
    such call), clipped (work that began before its call returned), wrong (before it began), in_graphs, overlapping.
    """

    def __init__(
        self, extra: Sequence[tuple[str, str]], memory_bytes: int, *, of_call: Sequence[tuple[str, str]] = ()
    ) -> None:
        """extra    further fields of work, of which nothing is asked here
        of_call  signed fields of calls, which the work of a call takes over; negative in work without one
        """
        row = [("row", "i8")]
        self._work = SortedRows(
            np.dtype([*_TIMES, *row, *_PLACE, *extra, ("correlation", "i8")]), ("correlation", "row"), memory_bytes // 3
        )
        self._ready = SortedRows(
            np.dtype([*_TIMES, *row, *_PLACE, *extra, *of_call, ("called", "i8"), ("returned", "i8"), ("node", "i4")]),
            ("end", "row"),
            memory_bytes // 3,
        )
        calls = np.dtype([*_TIMES, ("correlation", "i8"), *of_call])
        self._calls = SortedRows(calls, ("correlation", "start"), memory_bytes // 6)
        self._spans = SortedRows(_SPANS, ("start", "end"), memory_bytes // 6)
        self._extra, self._of_call = [name for name, _ in extra], [name for name, _ in of_call]
        self.pieces = self.calls = self.keyed = 0
        self.together = self.clipped = self.wrong = self.in_graphs = self.overlapping = 0
        self.first_call: int | None = None

    def add_work(
        self, start: Ints, end: Ints, *, correlation: Any, stream: Any, row: Ints | None = None, **columns: Any
    ) -> None:
        """Pieces of work, shapes (rows,) or single values: device, name and the extra fields too.

        correlation  0 for none;  stream  negative for none
        row          what orders work that ends at one time, when it is not the order in which it is added
        """
        rows = np.arange(self.pieces, self.pieces + len(start)) if row is None else row
        self.pieces += len(start)
        queued = np.broadcast_to(stream, start.shape) >= 0
        span = {"start": start, "end": end, "device": columns["device"], "stream": stream}
        self._spans.add(**_where(queued, span))
        every = {**columns, "start": start, "end": end, "row": rows, "stream": stream}
        keyed = np.broadcast_to(correlation, start.shape) != 0
        self.keyed += int(keyed.sum())
        self._work.add(**_where(keyed, {**every, "correlation": correlation}))
        # What nobody launched need not be looked up.
        alone = {"called": ABSENT, "returned": ABSENT, "node": -1, **dict.fromkeys(self._of_call, -1)}
        self._ready.add(**_where(~keyed, {**every, **alone}))

    def add_calls(self, start: Ints, end: Ints, correlation: Ints, **columns: Any) -> None:
        """Launch calls, shapes (rows,), with the fields of calls."""
        self.calls += len(start)
        self._calls.add(start=start, end=end, correlation=correlation, **columns)

    def join(self, look: Callable[[Ints], None] | None = None) -> None:
        """Find the call of each piece of work; nothing can be added after that.

        look  is given the sorted correlations of the work as it goes, a value never in two portions
        """
        calls = Upto(self._calls)
        for work in whole_groups(self._work):
            correlation = np.ascontiguousarray(work["correlation"])
            self._join(work, calls.rows(correlation))
            if look:
                look(correlation)
        self._work.clear()
        self._calls.clear()
        self.overlapping = _overlaps(self._spans.blocks())
        self._spans.clear()

    def _join(self, work: Table, calls: Table) -> None:
        launch = launch_of(work, calls)
        nodes = graph_nodes(work, launch)
        hit = launch >= 0
        by, start = calls[launch[hit]], work["start"][hit]
        self.together += len(by)
        # Later nodes of a graph do not wait for the call.
        self.clipped += int(((nodes[hit] <= 0) & (start < by["end"])).sum())
        self.wrong += int((start < by["start"]).sum())
        self.in_graphs += int(np.count_nonzero(nodes >= 0))
        if len(by):
            first = int(calls["start"].min())
            self.first_call = first if self.first_call is None else min(first, self.first_call)
        ready = np.empty(len(work), self._ready.dtype)
        for name in ("start", "end", "row", "device", "stream", "name", *self._extra):
            ready[name] = work[name]
        ready["called"] = ready["returned"] = ABSENT
        ready["called"][hit], ready["returned"][hit], ready["node"] = by["start"], by["end"], nodes
        for name in self._of_call:
            ready[name] = -1
            ready[name][hit] = by[name]
        self._ready.append(ready)

    def section(self, shift: int, steps: Table, more: Callable[[Table], Columns] | None = None) -> Stream:
        """Executions in order of end time, `shift` ns later; what `more` says of the rows is added or put instead.

        steps  of `start`, `end`, `number`: work is of the step in which it was called, else began
        """

        def blocks() -> Iterator[tuple[Ints, Columns]]:
            for rows in self._ready.blocks():
                columns = {**_columns(rows, shift, steps), **(more(rows) if more else {})}
                yield columns["end_ns"], columns

        return Stream(EXECUTION, blocks)


def _columns(rows: Table, shift: int, steps: Table) -> dict[str, Any]:
    called, returned = rows["called"], rows["returned"]
    known = called != ABSENT
    return {
        "name": rows["name"],
        "enqueue_ns": np.where(known, returned + shift, ABSENT),
        "start_ns": rows["start"] + shift,
        "end_ns": rows["end"] + shift,
        "launch_ns": np.where(known, returned - called, ABSENT),
        "node": absent(rows["node"]),
        "device": absent(rows["device"]),
        "stream": rows["stream"],
        "request": absent(step_of(np.where(known, called, rows["start"]), steps)),
    }


def _overlaps(blocks: Iterator[Table]) -> int:
    """How many rows start before the one before them on their device and stream ended; rows come in order of start."""
    last: dict[int, int] = {}
    count = 0
    for rows in blocks:
        place = (rows["device"].astype(np.int64) << 32) | rows["stream"]
        order = np.argsort(place, kind="stable")
        place, start, end = place[order], rows["start"][order], rows["end"][order]
        new = np.flatnonzero(np.append(True, place[1:] != place[:-1]))
        before = np.empty_like(end)
        before[1:] = end[:-1]
        before[new] = [last.get(key, ABSENT) for key in place[new].tolist()]
        count += int((start < before).sum())
        final = np.append(new[1:], len(rows)) - 1
        last.update(zip(place[final].tolist(), end[final].tolist(), strict=True))
    return count


def _where(keep: npt.NDArray[np.bool_], columns: dict[str, Any]) -> dict[str, Any]:
    if keep.all():
        return columns
    return {name: value[keep] if isinstance(value, np.ndarray) else value for name, value in columns.items()}


def absent(values: npt.NDArray[Any]) -> Ints:
    """Null where negative, shape (rows,)."""
    return np.where(values < 0, ABSENT, values.astype(np.int64))
