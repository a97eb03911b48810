"""Columns of a Chrome trace, filled window by window; times in ns as written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from operator import attrgetter
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fusetui.importers.chrome_pairs import EDGE, SLICE, paired
from fusetui.importers.chrome_requests import Requests
from fusetui.importers.chrome_tracks import Tracks
from fusetui.importers.kineto_stream import EventStream
from fusetui.importers.kineto_times import ABSENT, MAX_NS, NeedsTextError, to_ns
from fusetui.importers.rows import Rows, Words
from fusetui.importers.sortedrows import SortedRows

MARK: Final = np.dtype([("time", "i8"), ("name", "i4"), ("track", "i4")])
READING: Final = np.dtype([("time", "i8"), ("value", "f8"), ("name", "i4"), ("track", "i4")])
_ASYNC: Final = "asynchronous slices"
_KEYS: Final = 64  # series in one counter event
_REASONS: Final = {
    "s": "flows", "t": "flows", "f": "flows", "n": _ASYNC, "S": _ASYNC, "T": _ASYNC, "F": _ASYNC,
}  # fmt: skip

Ints = npt.NDArray[np.int64]

_name: Final = attrgetter("name")
_ph: Final = attrgetter("ph")


class Events:
    """What stands in the file.

    slices   complete events; `edges` are begins and ends that `close` makes slices of
    marks, readings  instants and counters, by time
    requests         asynchronous slices that an export of ours wrote as such
    names, tracks    words behind the codes
    left_out         counts by reason
    seen             all events
    """

    def __init__(self, memory_bytes: int) -> None:
        self.memory_bytes = memory_bytes
        eighth = memory_bytes // 8
        self.slices, self.edges = Rows(SLICE, eighth), Rows(EDGE, eighth)
        self.marks, self.readings = SortedRows(MARK, ("time",), eighth), SortedRows(READING, ("time",), eighth)
        self.requests = Requests(eighth)
        self.names, self.tracks = Words(eighth), Tracks()
        self.left_out: Counter[str] = Counter()
        self.seen = 0

    def take(self, stream: EventStream) -> None:
        """Read all windows of a stream."""
        for window in stream.windows():
            try:
                self._take_window(window)
            except NeedsTextError:
                self._take_window(stream.again_exactly())

    def _take_window(self, events: list[Any]) -> None:
        groups: dict[str, list[Any]] = {}
        for event in events:
            groups.setdefault(event.ph if type(event.ph) is str else "", []).append(event)
        wanted = {phase: groups.get(phase, []) for phase in "XBECiIMbe"}
        # Times first: nothing of a window may be kept when it must be decoded again.
        starts = {phase: to_ns([event.ts for event in chosen]) for phase, chosen in wanted.items() if phase != "M"}
        took = to_ns([event.dur for event in wanted["X"]])
        self.seen += len(events)
        for phase, chosen in groups.items():
            if phase not in wanted:
                reason = _REASONS.get(phase, "of other phases")
                self.left_out[reason] += len(chosen) if phase or any(map(_name, chosen)) else 0
        for event in wanted["M"]:
            self.tracks.name(event)
        self._add_complete(wanted["X"], starts["X"], took)
        self._add_edges(wanted["B"], starts["B"], wanted["E"], starts["E"], events)
        for phase in "iI":
            self._add_marks(wanted[phase], starts[phase])
        self._add_readings(wanted["C"], starts["C"])
        self._add_requests(wanted["b"], starts["b"], wanted["e"], starts["e"])

    def _add_complete(self, events: list[Any], start: Ints, took: Ints) -> None:
        good = (start != ABSENT) & (took >= 0) & (start <= MAX_NS - took) & ((start != 0) | (took != 0))
        empty = (start == 0) & (took == 0)
        self.left_out["with time 0 and duration 0"] += int(empty.sum())
        self.left_out["without usable times"] += int((~good & ~empty).sum())
        if not good.all():
            events = [event for event, keep in zip(events, good.tolist(), strict=True) if keep]
            start, took = start[good], took[good]
        names, tracks = self.names.codes(_names(events)), self.tracks.codes(events)
        self.slices.add(start=start, end=start + took, name=names, track=tracks)

    def _add_edges(self, begins: list[Any], began: Ints, ends: list[Any], ended: Ints, events: list[Any]) -> None:
        if not begins and not ends:
            return
        # Back in file order, which decides between events of one time.
        edges = [event for event in events if event.ph in ("B", "E")]
        first = np.array([event.ph == "B" for event in edges], np.bool_)
        time = np.empty(len(edges), np.int64)
        time[first], time[~first] = began, ended
        good = (time != ABSENT) & (np.abs(time) <= MAX_NS)
        self.left_out["without usable times"] += int((~good).sum())
        edges = [event for event, keep in zip(edges, good.tolist(), strict=True) if keep]
        names, tracks = self.names.codes(_names(edges)), self.tracks.codes(edges)
        self.edges.add(time=time[good], name=names, track=tracks, begins=first[good])

    def _add_marks(self, events: list[Any], time: Ints) -> None:
        good = (time != ABSENT) & (np.abs(time) <= MAX_NS)
        self.left_out["without usable times"] += int((~good).sum())
        events = [event for event, keep in zip(events, good.tolist(), strict=True) if keep]
        self.marks.add(time=time[good], name=self.names.codes(_names(events)), track=self.tracks.codes(events))

    def _add_readings(self, events: list[Any], time: Ints) -> None:
        found = [
            (int(at), name, value, event)
            for event, at in zip(events, time.tolist(), strict=True)
            if at != ABSENT and abs(at) <= MAX_NS
            for name, value in _series(event)
        ]
        self.readings.add(
            time=np.array([at for at, _, _, _ in found], np.int64),
            value=np.array([value for _, _, value, _ in found], np.float64),
            name=self.names.codes([name for _, name, _, _ in found]),
            track=self.tracks.codes([event for _, _, _, event in found]),
        )

    def _add_requests(self, begins: list[Any], began: Ints, ends: list[Any], ended: Ints) -> None:
        names, tracks = self.names.codes(_names(begins)), self.tracks.codes(begins)
        for event, at, name, track in zip(begins, began.tolist(), names.tolist(), tracks.tolist(), strict=True):
            told = event.args if isinstance(event.args, dict) and abs(at) <= MAX_NS else {}
            self.left_out[_ASYNC] += not self.requests.begin(_key(event), at, name, track, told)
        for event, at in zip(ends, ended.tolist(), strict=True):
            self.left_out[_ASYNC] += not self.requests.end(_key(event), at)

    def close(self, *, by_name: bool) -> None:
        """Make slices of begins and ends and count those that have none; for `by_name` see `paired`."""
        before = len(self.slices)
        for part in paired(self.edges, self.memory_bytes // 4, by_name=by_name):
            self.slices.add(**{name: part[name] for name in SLICE.names or ()})
        self.left_out["that begin or end without the other"] += len(self.edges) - 2 * (len(self.slices) - before)


def _key(event: Any) -> int | str | None:
    return event.id if isinstance(event.id, (int, str)) else None


def _names(events: list[Any]) -> list[Any]:
    names = list(map(_name, events))
    return names if set(map(type, names)) <= {str} else ["" if name is None else str(name) for name in names]


def _series(event: Any) -> Iterator[tuple[str, float]]:
    """The readings of one counter event, named like the counter where it has one of its own."""
    args = event.args if isinstance(event.args, dict) else {}
    for key, value in list(args.items())[:_KEYS]:
        number = _number(value)
        if number is not None:
            plain = key in ("value", event.name) or (len(args) == 1 and not key)
            yield (str(event.name) if plain else f"{event.name} {key}"), number


def _number(value: Any) -> float | None:
    try:
        number = float(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else None
    except (ValueError, OverflowError):
        return None
    return number if number is not None and abs(number) < float("inf") else None
