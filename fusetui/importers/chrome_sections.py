"""Chrome tables turned into executions, marks and counters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fusetui.importers.chrome_events import Events
from fusetui.importers.kineto_batches import ABSENT, Columns, Section
from fusetui.telemetry.header import Clock
from fusetui.telemetry.schema import COUNTER, EXECUTION, MARK, REQUEST
from fusetui.telemetry.tracknames import NO_STREAM

_EPOCH_SINCE_NS: Final = 10**17
"""March 1973: a later time counts from the epoch, an earlier one from a boot or a profiler start."""

Ints = npt.NDArray[np.int64]
Table = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Found:
    """What a trace holds.

    words        text of each code per dictionary column
    host_slices  slices left out because other tracks are a device's
    nested       slices left out because they lie in others of their thread
    overlapping  slices that begin before an earlier one of their track ends
    """

    sections: Sequence[Section]
    words: Mapping[str, Sequence[str | None]]
    clock: Clock
    host_slices: int
    nested: int
    overlapping: int


def found_in(events: Events, *, flat: bool = False, base_ns: int | None = None) -> Found:
    """Executions, marks and counters of a trace; no sections when it holds nothing with a time.

    base_ns  what the times count from, ns since 1970, where the trace says so
    flat     slices do not nest: a begin belongs to the end of the same name, and all slices are shown, but only once
    """
    slices, marks, readings = _slices(events, flat=flat), events.marks.table(), events.readings.table()
    devices = events.tracks.devices()
    kept, queues = slices, (devices >= 0) | events.tracks.work()
    if queues.any():
        on_device = queues[slices["track"]]
        kept = slices[on_device] if on_device.any() else slices
    host_slices = len(slices) - len(kept)
    whole, overlapping = visible(kept, all_rows=queues[kept["track"]] | flat)
    work = kept[whole]
    requests = events.requests.table()
    times = [work["start"], marks["time"], readings["time"], requests["begin"]]
    shift, clock = time_base([int(part.min()) for part in times if len(part)])
    if base_ns is not None:
        shift, clock = base_ns, "epoch"
    sections = _sections(work, marks, readings, devices, shift)
    labels = events.tracks.labels()
    if len(requests):
        sections.append(_served(requests, len(labels), shift))
    queues_served = [None if name == NO_STREAM else name for name in events.tracks.threads()]
    words: dict[str, Sequence[str | None]] = {
        "name": events.names.texts(), "stream": [*labels, *queues_served], "shape": events.requests.shapes.texts()
    }  # fmt: skip
    return Found(sections, words, clock, host_slices, len(kept) - len(work), overlapping)


def _slices(events: Events, *, flat: bool) -> Table:
    slices = events.slices.table()
    if len(events.edges):
        paired = events.paired(by_name=flat)
        slices = np.concatenate([slices, paired]) if len(slices) else paired
    if flat:
        once = np.unique(slices)
        events.left_out["that are written twice"] += len(slices) - len(once)
        slices = once
    return slices


def visible(rows: Table, *, all_rows: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.bool_], int]:
    """Which rows lie in no other of their track, shape (rows,), and how many of those overlap an earlier one.

    all_rows  rows that are kept even so: a queue of a device does not nest, a row inside another has a wrong time
    """
    order = np.lexsort((-rows["end"], rows["start"], rows["track"]))
    track, start, end = (rows[key][order] for key in ("track", "start", "end"))
    reach = np.empty(len(rows), np.int64)
    bounds = [0, *(np.flatnonzero(np.diff(track)) + 1).tolist(), len(rows)]
    for low, high in pairwise(bounds):
        if low < high:
            reach[low] = np.iinfo(np.int64).min
            reach[low + 1 : high] = np.maximum.accumulate(end[low : high - 1])
    keep = (start >= reach) | (end > reach) | all_rows[order]
    result = np.empty(len(rows), np.bool_)
    result[order] = keep
    return result, int((keep & (start < reach)).sum())


def time_base(earliest: Sequence[int]) -> tuple[int, Clock]:
    """What to add to the times as written, and the clock that makes, from the earliest times of each kind."""
    if not earliest:
        return 0, "trace"
    first = min(earliest)
    return (0, "epoch") if first >= _EPOCH_SINCE_NS else (-first, "trace")


def _served(requests: Table, first_stream: int, shift: int) -> Section:
    """Requests; the codes of their streams follow those of the tracks."""

    def columns(rows: Ints) -> Columns:
        row = requests[rows]
        begin, waited = row["begin"] + shift, row["wait"] != ABSENT
        return {
            "name": row["name"],
            "enqueue_ns": np.where(waited, begin, ABSENT),
            "start_ns": np.where(waited, begin + np.where(waited, row["wait"], 0), begin),
            "end_ns": row["end"] + shift,
            "stream": row["track"].astype(np.int64) + first_stream,
            "request": row["request"],
            "shape": row["shape"],
        }

    return Section(REQUEST, np.ascontiguousarray(requests["end"]), columns)


def _sections(work: Table, marks: Table, readings: Table, devices: Ints, shift: int) -> list[Section]:
    def placed(track: npt.NDArray[Any]) -> dict[str, Ints]:
        device = devices[track]
        return {"stream": track.astype(np.int64), "device": np.where(device < 0, ABSENT, device)}

    def ran(rows: Ints) -> Columns:
        row = work[rows]
        return {
            "name": row["name"], "start_ns": row["start"] + shift, "end_ns": row["end"] + shift, **placed(row["track"])
        }  # fmt: skip

    def marked(rows: Ints) -> Columns:
        row = marks[rows]
        time = row["time"] + shift
        return {"name": row["name"], "start_ns": time, "end_ns": time, **placed(row["track"])}

    def counted(rows: Ints) -> Columns:
        row = readings[rows]
        time = row["time"] + shift
        device = placed(row["track"])["device"]
        return {"name": row["name"], "start_ns": time, "end_ns": time, "value": row["value"], "device": device}

    found = [
        Section(EXECUTION, np.ascontiguousarray(work["end"]), ran),
        Section(MARK, np.ascontiguousarray(marks["time"]), marked),
        Section(COUNTER, np.ascontiguousarray(readings["time"]), counted),
    ]
    return [section for section in found if len(section.end)]
