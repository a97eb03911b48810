"""Contract batches as a Perfetto trace: a protobuf stream of packets with track events, which ui.perfetto.dev opens.

Field numbers are those of Perfetto's trace_packet.proto, track_event.proto, track_descriptor.proto,
debug_annotation.proto, interned_data.proto and clock_snapshot.proto. Names are written once and referred to by number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import IO, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fusetui.telemetry import wire
from fusetui.telemetry.export_chrome import DAY_NS, NUMBERS, TEXTS
from fusetui.telemetry.export_lanes import Numbers
from fusetui.telemetry.export_picture import ABSENT, Picture, Slices, Track, few_large, integers, words
from fusetui.telemetry.header import Header
from fusetui.telemetry.tracknames import NO_STREAM

Ints = npt.NDArray[np.int64]

_PACKET: Final = 1
_SNAPSHOT, _TIME, _SEQUENCE, _EVENT, _INTERNED, _FLAGS, _TRACK = 6, 8, 10, 11, 12, 13, 60
_ANNOTATION, _TYPE, _NAME, _UUID, _REAL, _FLOW, _FLOW_END = 4, 9, 10, 11, 44, 47, 48
_BEGIN, _END, _INSTANT, _COUNTER = 1, 2, 3, 4
_CLEARED, _NEEDS_STATE = 1, 2
_EVENT_NAMES, _ANNOTATION_NAMES, _TEXTS = 2, 3, 29
_REALTIME, _BOOTTIME = 1, 6
_INT, _DOUBLE, _TEXT_ID = 4, 5, 17
_ONE_SEQUENCE: Final = wire.number(_SEQUENCE, 1)
_PROCESS_UUID: Final = 1 << 32


def write_perfetto(sink: IO[bytes], header: Header, batches: Iterable[pa.RecordBatch]) -> int:
    """A Perfetto trace; returns the rows drawn: open work is left out."""
    picture = Picture()
    names = _Names(_Interned(_EVENT_NAMES), _Interned(_ANNOTATION_NAMES), _Interned(_TEXTS))
    known: set[int] = set()
    shift: int | None = None
    sink.write(_packet(wire.number(_FLAGS, _CLEARED | _NEEDS_STATE)))
    for batch in few_large(batches):
        if shift is None:
            shift = _shift(header, batch)
            sink.write(_clocks(header, batch))
        packets = _Packets(picture, batch, shift, names)
        body = packets.all()
        # What the packets refer to comes before them.
        sink.write(b"".join(_descriptors(packets.drawn.tracks, known)) + names.packets())
        sink.write(body)
    return picture.rows


def _shift(header: Header, batch: pa.RecordBatch) -> int:
    """What makes times of a trace's own clock positive: a packet cannot have another."""
    earliest = min((pc.min(batch.column(name)).as_py() or 0 for name in ("enqueue_ns", "start_ns")), default=0)
    earliest -= pc.max(batch.column("launch_ns")).as_py() or 0
    return DAY_NS if header.clock == "trace" and earliest < 0 else 0


def _clocks(header: Header, batch: pa.RecordBatch) -> bytes:
    """Says that the trace's clock is the time since 1970, where it is."""
    if header.clock != "epoch":
        return b""
    now = pc.max(batch.column("end_ns")).as_py() or 0
    clocks = [wire.number(1, clock) + wire.number(2, now) for clock in (_REALTIME, _BOOTTIME)]
    return _packet(wire.content(_SNAPSHOT, b"".join(wire.content(1, clock) for clock in clocks)))


def _packet(fields: bytes) -> bytes:
    return wire.content(_PACKET, fields + _ONE_SEQUENCE)


def _descriptors(tracks: Sequence[Track], known: set[int]) -> list[bytes]:
    """Packets that name tracks, and their processes when these are new."""
    found = []
    for track in tracks:
        if track.process not in known:
            known.add(track.process)
            process = wire.number(1, track.process) + wire.content(6, track.process_name)
            found.append(wire.number(1, _PROCESS_UUID + track.process) + wire.content(3, process))
        line = wire.number(1, track.number) + wire.content(2, track.name or NO_STREAM)
        line += wire.number(5, _PROCESS_UUID + track.process)
        if track.unit is not None:
            line += wire.content(8, wire.content(6, track.unit) if track.unit else b"")
        found.append(line)
    return [_packet(wire.content(_TRACK, line)) for line in found]


class _Interned:
    """Texts of one kind and their numbers; `packet` tells the new ones."""

    def __init__(self, kind: int) -> None:
        self._kind = kind
        self._new: list[bytes] = []
        self._numbers = Numbers(
            lambda number, key: self._new.append(wire.number(1, number) + wire.content(2, str(key[0])))
        )

    def of(self, text: str) -> int:
        """The number of a text."""
        return self._numbers.of((text,))

    def packet(self) -> bytes:
        """A packet with the texts since the last one, b"" without any."""
        if not self._new:
            return b""
        entries = b"".join(wire.content(self._kind, entry) for entry in self._new)
        self._new.clear()
        return _packet(wire.content(_INTERNED, entries) + wire.number(_FLAGS, _NEEDS_STATE))


@dataclass(frozen=True, slots=True)
class _Names:
    events: _Interned
    annotations: _Interned
    texts: _Interned

    def packets(self) -> bytes:
        return self.events.packet() + self.annotations.packet() + self.texts.packet()


class _Packets:
    """The track events of one batch."""

    def __init__(self, picture: Picture, batch: pa.RecordBatch, shift: int, names: _Names) -> None:
        self._batch, self._shift, self._names = batch, shift, names
        self._first = picture.seen
        self.drawn = picture.of(batch)

    def all(self) -> bytes:
        """One packet for the beginning and one for the end of each slice, one for each moment and reading."""
        drawn = self.drawn
        launch = np.full(len(drawn.launches.row), self._names.events.of("launch"), np.int64)
        return b"".join(
            (
                self._slices(drawn.launches, launch, _FLOW),
                self._slices(drawn.executions, self._named(drawn.executions), _FLOW_END),
                self._slices(drawn.requests, self._named(drawn.requests), 0),
                self._moments(drawn.marks),
                self._readings(drawn.readings),
            )
        )

    def _slices(self, of: Slices, name: Ints, flow: int) -> bytes:
        if not len(of.row):
            return b""
        head = [wire.numbers(_TYPE, _full(of, _BEGIN)), wire.numbers(_UUID, of.track), wire.numbers(_NAME, name)]
        if flow:
            head.append(wire.fixed(flow, of.arrow).where(of.arrow > 0))
        begin = self._events(of.start, [*head, *self._details(of.row)])
        end = self._events(of.end, [wire.numbers(_TYPE, _full(of, _END)), wire.numbers(_UUID, of.track)])
        return wire.side_by_side([begin, end]).tobytes()

    def _moments(self, of: Slices) -> bytes:
        if not len(of.row):
            return b""
        kind = wire.numbers(_TYPE, _full(of, _INSTANT))
        return self._events(
            of.end, [kind, wire.numbers(_UUID, of.track), wire.numbers(_NAME, self._named(of))]
        ).tobytes()

    def _readings(self, of: Slices) -> bytes:
        if not len(of.row):
            return b""
        value = self._batch.column("value").take(pa.array(of.row)).to_numpy(zero_copy_only=False)
        kind = wire.numbers(_TYPE, _full(of, _COUNTER))
        return self._events(of.end, [kind, wire.numbers(_UUID, of.track), wire.doubles(_REAL, value)]).tobytes()

    def _events(self, time: Ints, fields: Sequence[wire.Ragged]) -> wire.Ragged:
        """A packet each; none at a time before 0, which no packet can have."""
        rows = len(time)
        parts = [
            wire.numbers(_TIME, time + self._shift),
            wire.messages(_EVENT, fields),
            wire.numbers(_SEQUENCE, np.ones(rows, np.int64)),
            wire.numbers(_FLAGS, np.full(rows, _NEEDS_STATE)),
        ]
        return wire.messages(_PACKET, parts).where(time + self._shift >= 0)

    def _named(self, of: Slices) -> Ints:
        return self._numbers("name", self._names.events)[of.row]

    def _numbers(self, column: str, interned: _Interned) -> Ints:
        """The number of each row's text, 0 where it is null."""
        codes, known = words(self._batch, column)
        used = np.unique(codes[codes >= 0])
        numbers = np.zeros(len(known) + 1, np.int64)
        numbers[used] = [interned.of(known[code]) for code in used.tolist()]
        return numbers[codes]

    def _details(self, rows: Ints) -> list[wire.Ragged]:
        """An annotation for every column that some row has a value in."""
        enqueue, start = (integers(self._batch, name)[rows] for name in ("enqueue_ns", "start_ns"))
        waited = np.where((start == ABSENT) | (enqueue == ABSENT), ABSENT, start - enqueue)
        columns = {"capture_row": rows + self._first, "wait_ns": waited}
        columns |= {name: integers(self._batch, name)[rows] for name in NUMBERS if name != "flops"}
        found = [
            self._annotation(name, wire.numbers(_INT, values), values != ABSENT) for name, values in columns.items()
        ]
        flops = self._batch.column("flops").take(pa.array(rows))
        work = pc.fill_null(flops, float("nan")).to_numpy(zero_copy_only=False)
        found.append(self._annotation("flops", wire.doubles(_DOUBLE, work), ~np.isnan(work)))
        for name in TEXTS:
            numbers = self._numbers(name, self._names.texts)[rows]
            found.append(self._annotation(name, wire.numbers(_TEXT_ID, numbers), numbers > 0))
        return [part for part in found if part is not None]

    def _annotation(self, name: str, value: wire.Ragged, present: npt.NDArray[np.bool_]) -> wire.Ragged | None:
        if not present.any():
            return None
        label = np.full(len(present), self._names.annotations.of(name), np.int64)
        return wire.messages(_ANNOTATION, [wire.numbers(1, label), value]).where(present)


def _full(of: Slices, value: int) -> Ints:
    return np.full(len(of.row), value, np.int64)
