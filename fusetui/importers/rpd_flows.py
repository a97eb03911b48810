"""Calls and operations of an RPD trace joined along its flow arrows."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fusetui.importers.devicework import Ints
from fusetui.importers.rows import Rows, Words

Table = npt.NDArray[Any]

_WORK: Final = np.dtype(
    [(name, "i8") for name in ("start", "end", "correlation")] + [(name, "i4") for name in ("device", "stream", "name")]
)
_CALLS: Final = np.dtype([("start", "i8"), ("end", "i8"), ("correlation", "i8"), ("track", "i4")])
_OUT: Final = np.dtype([("time", "i8"), ("id", "i4"), ("track", "i4")])
_INTO: Final = np.dtype([("time", "i8"), ("id", "i4"), ("device", "i4"), ("stream", "i4")])
_NESTING: Final = 8
_SHARE: Final = 16 << 20


class Flows:
    """Slices and arrows of one trace.

    An arrow leaves a call that holds its time, on the thread of the arrow, and ends at the operation that starts at
    its time on the queue of the arrow; of several, in the order of the file.
    """

    def __init__(self) -> None:
        self.ids, self.tracks = Words(4 * _SHARE), Words(_SHARE)
        self._work, self._calls = Rows(_WORK, _SHARE), Rows(_CALLS, _SHARE)
        self._out, self._into = Rows(_OUT, _SHARE), Rows(_INTO, _SHARE)

    def add_work(self, start: Ints, end: Ints, *, device: Ints, stream: Any, name: Any) -> None:
        self._work.add(start=start, end=end, correlation=np.zeros(len(start)), device=device, stream=stream, name=name)

    def add_calls(self, start: Ints, end: Ints, track: Any) -> None:
        self._calls.add(start=start, end=end, correlation=np.zeros(len(start)), track=track)

    def add_out(self, time: Ints, number: Any, track: Any) -> None:
        self._out.add(time=time, id=number, track=track)

    def add_into(self, time: Ints, number: Any, device: Ints, stream: Any) -> None:
        self._into.add(time=time, id=number, device=device, stream=stream)

    def joined(self) -> tuple[Table, Table]:
        """Operations, and the calls that launched one; equal correlations belong together, 0 is none."""
        work, calls = self._work.table().copy(), self._calls.table().copy()
        into = self._into.table()
        call = _calls_of(self._out.table(), calls, len(self.ids))
        operation = _operations_of(into, work)
        good = operation >= 0
        launched = call[into["id"][good]] if len(call) else np.empty(0, np.int64)
        work["correlation"][operation[good]] = launched + 1
        calls["correlation"] = np.arange(1, len(calls) + 1)
        return work, calls[np.isin(calls["correlation"], work["correlation"])]


def _calls_of(out: Table, calls: Table, ids: int) -> Ints:
    """Row in `calls` of each arrow id, -1 for none. Shape (ids,)."""
    found = np.full(ids, -1, np.int64)
    if not len(out) or not len(calls):
        return found
    order = np.lexsort((calls["start"], calls["track"]))
    tracks, starts, ends = (calls[name][order] for name in ("track", "start", "end"))
    _, dense = np.unique(np.concatenate([starts, out["time"]]), return_inverse=True)
    width = np.int64(len(dense) + 1)
    keys = tracks.astype(np.int64) * width + dense[: len(starts)]
    at = np.searchsorted(keys, out["track"].astype(np.int64) * width + dense[len(starts) :], "right") - 1
    row = np.full(len(out), -1, np.int64)
    for up in range(_NESTING):
        place = np.maximum(at - up, 0)
        fits = (row < 0) & (at - up >= 0) & (tracks[place] == out["track"]) & (ends[place] >= out["time"])
        row[fits] = place[fits]
    hit = row >= 0
    found[out["id"][hit]] = order[row[hit]]
    return found


def _operations_of(into: Table, work: Table) -> Ints:
    """Row in `work` at which each arrow ends, -1 for none. Shape (arrows,)."""
    places = np.concatenate(
        [
            np.stack([work["device"].astype(np.int64), work["stream"].astype(np.int64), work["start"]]),
            np.stack([into["device"].astype(np.int64), into["stream"].astype(np.int64), into["time"]]),
        ],
        axis=1,
    )
    _, place = np.unique(places, axis=1, return_inverse=True)
    place = place.ravel()
    turn = np.concatenate([_turns(place[: len(work)]), _turns(place[len(work) :])])
    key = place * np.int64(len(place) + 1) + turn
    ours, theirs = key[: len(work)], key[len(work) :]
    found = np.full(len(into), -1, np.int64)
    if len(ours):
        order = np.argsort(ours)
        at = np.minimum(np.searchsorted(ours[order], theirs), len(ours) - 1)
        hit = ours[order][at] == theirs
        found[hit] = order[at[hit]]
    return found


def _turns(keys: Ints) -> Ints:
    """How many earlier rows have the same key. Shape (rows,)."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    position = np.arange(len(keys))
    new = np.ones(len(keys), np.bool_)
    new[1:] = ordered[1:] != ordered[:-1]
    turns = np.empty(len(keys), np.int64)
    turns[order] = position - np.maximum.accumulate(np.where(new, position, 0))
    return turns
