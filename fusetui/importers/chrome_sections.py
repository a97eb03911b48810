"""Chrome tables turned into executions, marks and counters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from fusetui.importers.chrome_events import Events
from fusetui.importers.chrome_pairs import SLICE
from fusetui.importers.kineto_batches import ABSENT, Block, Section, Stream
from fusetui.importers.nesting import by_begin, by_end, keep_rows
from fusetui.importers.rows import Rows
from fusetui.importers.sortedrows import SortedRows, Table
from fusetui.telemetry.header import Clock
from fusetui.telemetry.schema import COUNTER, EXECUTION, MARK, REQUEST
from fusetui.telemetry.tracknames import NO_STREAM

_EPOCH_SINCE_NS: Final = 10**17
"""March 1973: a later time counts from the epoch, an earlier one from a boot or a profiler start."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Found:
    """What a trace holds.

    words        text of each code per dictionary column
    host_slices  slices left out because other tracks are a device's
    nested       slices left out because they lie in others of their thread
    overlapping  slices that begin before an earlier one of their track ends
    """

    sections: Sequence[Section | Stream]
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
    devices = events.tracks.devices()
    queues = (devices >= 0) | events.tracks.work()
    slices = _slices(events, flat=flat)
    on_device = sum(int(queues[part["track"]].sum()) for part in slices.chunks()) if queues.any() else 0
    parts = (part[queues[part["track"]]] for part in slices.chunks()) if on_device else slices.chunks()
    shown = _visible(parts, all_rows=queues | flat, memory_bytes=events.memory_bytes // 2)
    kept, requests = on_device or len(slices), events.requests.ended()
    firsts = [shown.first_ns, _first_ns(events.marks), _first_ns(events.readings), events.requests.first_ns]
    shift, clock = time_base([time for time in firsts if time is not None])
    if base_ns is not None:
        shift, clock = base_ns, "epoch"
    labels = events.tracks.labels()
    sections = _sections(shown.rows, events, devices, shift)
    if len(requests):
        sections.append(Stream(REQUEST, lambda: _served(requests, len(labels), shift)))
    queues_served = [None if name == NO_STREAM else name for name in events.tracks.threads()]
    words: dict[str, Sequence[str | None]] = {
        "name": events.names.texts(), "stream": [*labels, *queues_served], "shape": events.requests.shapes.texts()
    }  # fmt: skip
    return Found(sections, words, clock, len(slices) - kept, kept - len(shown.rows), shown.overlapping)


def _slices(events: Events, *, flat: bool) -> Rows:
    if len(events.edges):
        events.close(by_name=flat)
    if not flat:
        return events.slices
    names = SLICE.names or ()
    ordered = SortedRows(SLICE, names, events.memory_bytes // 4)
    for part in events.slices.chunks():
        ordered.append(part)
    once = Rows(SLICE, events.memory_bytes // 8)
    last = np.empty(0, SLICE)
    for block in ordered.blocks():
        new = np.append(np.array([True] if not len(last) else last != block[:1]), block[1:] != block[:-1])
        once.add(**{name: block[name][new] for name in names})
        last = block[-1:]
    events.left_out["that are written twice"] += len(events.slices) - len(once)
    return once


@dataclass(slots=True)
class _Shown:
    """Slices by end time, the earliest start, and how many begin before an earlier one of their track ends."""

    rows: SortedRows
    first_ns: int | None = None
    overlapping: int = 0


def _visible(parts: Iterable[Table], *, all_rows: npt.NDArray[np.bool_], memory_bytes: int) -> _Shown:
    """The slices that lie in no other of their track.

    all_rows  [tracks] those of which all rows are kept: a queue of a device does not nest, a row inside another has a
              wrong time
    """
    shown = _Shown(by_end(SLICE, memory_bytes // 2))
    for block, reach in by_begin(parts, SLICE, "track", memory_bytes // 2):
        start = block["start"]
        first = int(start.min())
        shown.first_ns = first if shown.first_ns is None else min(first, shown.first_ns)
        keep = (start >= reach) | (block["end"] > reach) | all_rows[block["track"]]
        shown.overlapping += int((keep & (start < reach)).sum())
        keep_rows(shown.rows, block, keep)
    return shown


def _first_ns(rows: SortedRows) -> int | None:
    block = next(rows.blocks(), None)
    return int(block["time"][0]) if block is not None and len(block) else None


def time_base(earliest: Sequence[int]) -> tuple[int, Clock]:
    """What to add to the times as written, and the clock that makes, from the earliest times of each kind."""
    if not earliest:
        return 0, "trace"
    first = min(earliest)
    return (0, "epoch") if first >= _EPOCH_SINCE_NS else (-first, "trace")


def _served(requests: SortedRows, first_stream: int, shift: int) -> Iterator[Block]:
    """Requests; the codes of their streams follow those of the tracks."""
    for row in requests.blocks():
        begin, end, waited = row["begin"] + shift, row["end"] + shift, row["wait"] != ABSENT
        yield (
            end,
            {
                "name": row["name"],
                "enqueue_ns": np.where(waited, begin, ABSENT),
                "start_ns": np.where(waited, begin + np.where(waited, row["wait"], 0), begin),
                "end_ns": end,
                "stream": row["track"].astype(np.int64) + first_stream,
                "request": row["request"],
                "shape": row["shape"],
            },
        )


def _sections(work: SortedRows, events: Events, devices: Ints, shift: int) -> list[Section | Stream]:
    places = np.where(devices < 0, ABSENT, devices)

    def ran() -> Iterator[Block]:
        for row in work.blocks():
            start, end, track = row["start"] + shift, row["end"] + shift, row["track"]
            yield (
                end,
                {"name": row["name"], "start_ns": start, "end_ns": end, "stream": track, "device": places[track]},
            )

    def marked() -> Iterator[Block]:
        for row in events.marks.blocks():
            time, track = row["time"] + shift, row["track"]
            yield (
                time,
                {"name": row["name"], "start_ns": time, "end_ns": time, "stream": track, "device": places[track]},
            )

    def counted() -> Iterator[Block]:
        for row in events.readings.blocks():
            time = row["time"] + shift
            told = {"name": row["name"], "value": row["value"], "device": places[row["track"]]}
            yield time, {**told, "start_ns": time, "end_ns": time}

    found = [(work, Stream(EXECUTION, ran)), (events.marks, Stream(MARK, marked))]
    found.append((events.readings, Stream(COUNTER, counted)))
    return [stream for rows, stream in found if len(rows)]
