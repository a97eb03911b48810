"""Contract batches as trace viewers draw them: slices on tracks of processes, arrows, moments and counters.

process   tracks
device    one per stream, more where its executions overlap; work whose device is not known is of "no device"
launch    per stream the launch calls, or from hand-over to start where the call's duration is not known; an arrow
          leads from each to its execution. Later nodes of a graph launch have none: they did not wait for the call
requests  from hand-over (else begin) to end
Open work is not drawn: viewers have no slice without an end that a later row replaces.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fusetui.telemetry.export_lanes import Key, Lanes, Numbers, distinct
from fusetui.telemetry.schema import COUNTER, EXECUTION, MARK, REQUEST
from fusetui.telemetry.tracknames import LAUNCHES, REQUESTS, device_process, on_host

ABSENT: Final = -(1 << 63)
_MOST_ROWS: Final = 65_536

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Track:
    """A line of a viewer: its number, its process's number, both names, and for a counter its unit ("": none)."""

    number: int
    process: int
    process_name: str
    name: str
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class Slices:
    """Events on tracks, shapes (n,): row of the batch, track, begin and end in ns, arrow (0: none)."""

    row: Ints
    track: Ints
    start: Ints
    end: Ints
    arrow: Ints


@dataclass(frozen=True, slots=True)
class Drawn:
    """What one batch draws, and the tracks that it is the first to use. An arrow leads from a launch to execution."""

    tracks: list[Track]
    executions: Slices
    launches: Slices
    requests: Slices
    marks: Slices
    readings: Slices


class Picture:
    """Draws batches one after the other; `rows` counts those drawn, `seen` all."""

    def __init__(self) -> None:
        self.rows = self.seen = 0
        self._lanes = Lanes()
        self._new: list[Track] = []
        self._processes = Numbers(lambda number, key: None)
        self._queues = Numbers(lambda number, key: None)
        self._tracks = Numbers(self._made)
        self._process_of = [0]
        self._arrows = 0

    def of(self, batch: pa.RecordBatch) -> Drawn:
        """One batch."""
        kind = batch.column("kind").cast(pa.utf8())
        start, end, enqueue = (integers(batch, f"{name}_ns") for name in ("start", "end", "enqueue"))
        timed = (start != ABSENT) & (end != ABSENT)

        def rows(of: str, good: Bools = timed) -> Ints:
            return np.flatnonzero(good & pc.equal(kind, of).to_numpy(zero_copy_only=False))

        ran, moments, read = rows(EXECUTION), rows(MARK), rows(COUNTER)
        served = rows(REQUEST, (end != ABSENT) & ((start != ABSENT) | (enqueue != ABSENT)))
        value = batch.column("value")
        known = pc.is_finite(pc.fill_null(value, float("nan"))).to_numpy(zero_copy_only=False)
        read = read[known[read]]
        executions = self._lined_up(batch, ran, start[ran], end[ran], "")
        launches, arrow = self._launches(batch, ran, enqueue[ran], start[ran])
        begun = np.where(enqueue[served] == ABSENT, start[served], enqueue[served])
        drawn = Drawn(
            tracks=[],
            executions=Slices(ran, executions, start[ran], end[ran], arrow),
            launches=launches,
            requests=self._slices(batch, served, begun, end[served], REQUESTS),
            marks=Slices(moments, self._plain(batch, moments, "marks"), end[moments], end[moments], _none(moments)),
            readings=Slices(read, self._counters(batch, read), end[read], end[read], _none(read)),
        )
        drawn.tracks.extend(self._new)
        self._new.clear()
        self.seen += len(batch)
        self.rows += len(ran) + len(served) + len(moments) + len(read)
        return drawn

    def process_of(self, track: Ints) -> Ints:
        """The process of each track, (n,)."""
        return np.array(self._process_of, np.int64)[track]

    def _launches(self, batch: pa.RecordBatch, ran: Ints, enqueue: Ints, start: Ints) -> tuple[Slices, Ints]:
        """Launch calls or waits, and the arrow of every execution."""
        cost, node = integers(batch, "launch_ns")[ran], integers(batch, "node")[ran]
        called = (enqueue != ABSENT) & (node <= 0)
        drawn = np.flatnonzero(called & ((cost >= 0) | (enqueue <= start)))
        arrow = np.zeros(len(ran), np.int64)
        arrow[drawn] = np.arange(len(drawn)) + self._arrows + 1
        self._arrows += len(drawn)
        call = cost[drawn] >= 0
        begun = enqueue[drawn] - np.where(call, cost[drawn], 0)
        done = np.where(call, enqueue[drawn], start[drawn])
        found = self._slices(batch, ran[drawn], begun, done, LAUNCHES)
        return Slices(found.row, found.track, begun, done, arrow[drawn]), arrow

    def _slices(self, batch: pa.RecordBatch, rows: Ints, start: Ints, end: Ints, process: str) -> Slices:
        return Slices(rows, self._lined_up(batch, rows, start, end, process), start, end, _none(rows))

    def _lined_up(self, batch: pa.RecordBatch, rows: Ints, start: Ints, end: Ints, process: str) -> Ints:
        """Tracks of slices that may overlap; `process` "" is that of their device."""
        keys, index = self._keys(batch, rows, process)
        queue = np.array([self._queues.of(key) for key in keys], np.int64)
        lane = self._lanes.of(queue[index], start, end) if len(rows) else _none(rows)
        first, of_lane = distinct(index, lane) if len(rows) else (rows, rows)
        numbers = [self._tracks.of((*keys[index[at]], None, int(lane[at]))) for at in first.tolist()]
        return np.array(numbers, np.int64)[of_lane]

    def _plain(self, batch: pa.RecordBatch, rows: Ints, name: str) -> Ints:
        """Tracks of moments: those of a stream, or `name` where they are of none."""
        keys, index = self._keys(batch, rows, "")
        numbers = [self._tracks.of((process, stream or name, None, 0)) for process, stream in keys]
        return np.array(numbers, np.int64)[index]

    def _counters(self, batch: pa.RecordBatch, rows: Ints) -> Ints:
        keys, index = self._keys(batch, rows, "", column="name")
        unit, units = words(batch, "unit")
        first, of_unit = distinct(index, unit[rows]) if len(rows) else (rows, rows)
        numbers = [
            self._tracks.of((*keys[index[at]], units[unit[rows[at]]] if unit[rows[at]] >= 0 else "", 0))
            for at in first.tolist()
        ]
        return np.array(numbers, np.int64)[of_unit]

    def _keys(
        self, batch: pa.RecordBatch, rows: Ints, process: str, column: str = "stream"
    ) -> tuple[list[tuple[str, str]], Ints]:
        """(process, name) of each group of rows that share a track, and the group of each row."""
        if not len(rows):
            return [], rows
        host, hosts = words(batch, "host")
        stream, streams = words(batch, column)
        device = integers(batch, "device")
        first, index = distinct(host[rows], stream[rows], device[rows] if not process else _none(rows))
        keys = []
        for at in rows[first].tolist():
            of = process or device_process(int(device[at]) if device[at] != ABSENT else None)
            machine = hosts[host[at]] if host[at] >= 0 else ""
            keys.append((on_host(of, machine), streams[stream[at]] if stream[at] >= 0 else ""))
        return keys, index

    def _made(self, number: int, key: Key) -> None:
        process, name, unit, _ = key
        of = self._processes.of((process,))
        self._process_of.append(of)
        self._new.append(Track(number, of, str(process), str(name), None if unit is None else str(unit)))


def few_large(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of some ten thousand: many small ones take much longer to draw."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        if held and sum(map(len, held)) + len(batch) > _MOST_ROWS:
            yield from _one(held)
            held = []
        held.append(batch)
    yield from _one(held)


def _one(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    try:
        return [pa.concat_batches(batches)] if batches else []
    except pa.ArrowException:
        # Together they have more words than a narrow dictionary index can number.
        return batches


def integers(batch: pa.RecordBatch, column: str) -> Ints:
    """An integer column, (rows,) int64, ABSENT where it is null."""
    values: Ints = pc.fill_null(batch.column(column).cast(pa.int64()), ABSENT).to_numpy(zero_copy_only=False)
    return values


def words(batch: pa.RecordBatch, column: str) -> tuple[Ints, list[str]]:
    """Codes of a text column, (rows,) int64, -1 where it is null, and its words."""
    array = batch.column(column)
    codes: Ints = pc.fill_null(array.indices.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
    return codes, array.dictionary.to_pylist()


def _none(rows: Ints) -> Ints:
    return np.zeros(len(rows), np.int64)
