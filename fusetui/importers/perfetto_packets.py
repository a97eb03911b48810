"""Packets of a Perfetto trace, in order, with what each sequence of them has said before.

A sequence has default clocks and tracks, interned names, and may have clocks of its own that count on from packet to
packet; all that is forgotten when it says that its state was cleared.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from fusetui.importers.chrome_events import Events
from fusetui.importers.kineto_times import MAX_NS
from fusetui.importers.perfetto_tracks import Descriptors, Message
from fusetui.importers.protowire import FIXED64, LENGTH, VARINT, fields_of

_SNAPSHOT, _TIME, _SEQUENCE, _EVENT, _INTERNED, _FLAGS = 6, 8, 10, 11, 12, 13
_COMPRESSED, _CLOCK, _DEFAULTS, _DESCRIPTOR = 50, 58, 59, 60
_TYPE, _NAME_ID, _TRACK, _NAME, _WHOLE, _REAL = 9, 10, 11, 23, 30, 44
_BEGIN, _END, _INSTANT, _COUNTER = 1, 2, 3, 4
_ANNOTATION, _INT, _TEXT_ID = 4, 4, 17
_EVENT_NAMES, _ANNOTATION_NAMES, _ANNOTATION_TEXTS = 2, 3, 29
_INTERNED_TEXTS: Final = (_EVENT_NAMES, _ANNOTATION_NAMES, _ANNOTATION_TEXTS)
_REALTIME, _BOOTTIME, _OWN_CLOCKS = 1, 6, 64
_MOST_NAMES: Final = 1 << 18
_MOST_SEQUENCES: Final = 1 << 14
_EPOCH_SINCE_NS: Final = 10**17


@dataclass(slots=True)
class _Sequence:
    clock: int = _BOOTTIME
    track: int = 0
    names: dict[int, str] = field(default_factory=dict)
    details: dict[tuple[int, int], str] = field(default_factory=dict)
    now_ns: dict[int, int] = field(default_factory=dict)
    counts_on: dict[int, tuple[bool, int]] = field(default_factory=dict)


class Packets:
    """Takes packets into `events`; `left_out` counts what was not, by reason."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._tracks = Descriptors(events.tracks)
        self._sequences: dict[int, _Sequence] = {}
        self._names = 0
        self._shift: int | None = None
        self.left_out: Counter[str] = Counter()
        self.broken = 0

    def take(self, data: bytes, starts: list[int], sizes: list[int]) -> None:
        """Packets by their places in `data`."""
        messages, broken = _messages(data, starts, sizes)
        self.broken += broken
        edges: list[tuple[int, str, int, bool]] = []
        marks: list[tuple[int, str, int]] = []
        readings: list[tuple[int, float, str, int]] = []
        for message in messages:
            number = {n: v for n, wire, v, _ in message if wire == VARINT}
            content = {n: c for n, wire, _, c in message if wire == LENGTH}
            sequence = self._sequence(number)
            self._state(sequence, content)
            if _EVENT in content:
                self._event(sequence, number, _one(content[_EVENT]), edges, marks, readings)
        events = self._events
        events.seen += len(edges) + len(marks) + len(readings)
        events.edges.add(
            time=_numbers(e[0] for e in edges), name=events.names.codes([e[1] for e in edges]),
            track=_numbers(e[2] for e in edges), begins=np.array([e[3] for e in edges], np.bool_),
        )  # fmt: skip
        events.marks.add(
            time=_numbers(m[0] for m in marks), name=events.names.codes([m[1] for m in marks]),
            track=_numbers(m[2] for m in marks),
        )  # fmt: skip
        events.readings.add(
            time=_numbers(r[0] for r in readings), value=np.array([r[1] for r in readings], np.float64),
            name=events.names.codes([r[2] for r in readings]), track=_numbers(r[3] for r in readings),
        )  # fmt: skip

    def _sequence(self, number: dict[int, int]) -> _Sequence:
        key = number.get(_SEQUENCE, 0)
        if number.get(_FLAGS, 0) & 1 and key in self._sequences:
            gone = self._sequences.pop(key)
            self._names -= len(gone.names) + len(gone.details)
        if key not in self._sequences and len(self._sequences) >= _MOST_SEQUENCES:
            return _Sequence()
        return self._sequences.setdefault(key, _Sequence())

    def _state(self, sequence: _Sequence, content: dict[int, bytes]) -> None:
        if _DESCRIPTOR in content:
            message = _one(content[_DESCRIPTOR])
            inner = {n: _one(c) for n, wire, _, c in message if wire == LENGTH and n in (3, 4)}
            self._tracks.take(message, inner)
        if _DEFAULTS in content:
            for n, wire, value, raw in _one(content[_DEFAULTS]):
                if (n, wire) == (_CLOCK, VARINT):
                    sequence.clock = value
                elif (n, wire) == (_EVENT, LENGTH):
                    sequence.track = next((v for m, w, v, _ in _one(raw) if (m, w) == (_TRACK, VARINT)), 0)
        if _INTERNED in content:
            for n, wire, _, raw in _one(content[_INTERNED]):
                if n in _INTERNED_TEXTS and wire == LENGTH and self._names < _MOST_NAMES:
                    entry = {m: (v, c) for m, _, v, c in _one(raw)}
                    number, text = entry.get(1, (0, b""))[0], entry.get(2, (0, b""))[1].decode("utf-8", "replace")
                    if n == _EVENT_NAMES:
                        sequence.names[number] = text
                    else:
                        sequence.details[n, number] = text
                    self._names += 1
        if _SNAPSHOT in content:
            self._snapshot(sequence, _one(content[_SNAPSHOT]))
        if _COMPRESSED in content:
            self.left_out["compressed packets"] += 1

    def _snapshot(self, sequence: _Sequence, message: Message) -> None:
        clocks = {}
        for n, wire, _, raw in message:
            if (n, wire) == (1, LENGTH):
                clock = {m: v for m, w, v, _ in _one(raw) if w == VARINT}
                clocks[clock.get(1, 0)] = clock
        boot = clocks.get(_BOOTTIME, {}).get(2)
        real = clocks.get(_REALTIME, {}).get(2)
        for key, clock in clocks.items():
            if key >= _OWN_CLOCKS:
                counts_on, unit = bool(clock.get(3, 0)), clock.get(4, 1) or 1
                sequence.counts_on[key] = counts_on, unit
                # A clock of a sequence is told beside the trace's own: from there on both run alike.
                sequence.now_ns[key] = boot if counts_on and boot is not None else clock.get(2, 0) * unit
        if self._shift is None and not self._events.seen and boot is not None and real is not None:
            self._shift = real - boot if real >= _EPOCH_SINCE_NS else None

    def _time(self, sequence: _Sequence, number: dict[int, int]) -> int | None:
        time, clock = number.get(_TIME), number.get(_CLOCK, sequence.clock)
        if time is None:
            return None
        if clock >= _OWN_CLOCKS:
            counts_on, unit = sequence.counts_on.get(clock, (False, 1))
            time = time * unit + (sequence.now_ns.get(clock, 0) if counts_on else 0)
            sequence.now_ns[clock] = time
        time += self._shift or 0
        return time if time <= MAX_NS else None

    def _event(
        self, sequence: _Sequence, packet: dict[int, int], message: Message, edges: list[tuple[int, str, int, bool]],
        marks: list[tuple[int, str, int]], readings: list[tuple[int, float, str, int]],
    ) -> None:  # fmt: skip
        number = {n: v for n, wire, v, _ in message if wire in (VARINT, FIXED64)}
        time = self._time(sequence, packet)
        if time is None:
            self.left_out["events without usable times"] += 1
            return
        uuid = number.get(_TRACK, sequence.track)
        track, kind = self._tracks.code(uuid), number.get(_TYPE, 0)
        given = next((c.decode("utf-8", "replace") for n, w, _, c in message if (n, w) == (_NAME, LENGTH)), None)
        name = given if given is not None else sequence.names.get(number.get(_NAME_ID, 0), "")
        if kind in (_BEGIN, _END) and self._tracks.serves(uuid):
            self._request(kind == _BEGIN, uuid, time, name, _told(sequence, message))
        elif kind in (_BEGIN, _END):
            edges.append((time, name, track, kind == _BEGIN))
        elif kind == _INSTANT:
            marks.append((time, name, track))
        elif kind == _COUNTER and (value := _value(number)) is not None:
            readings.append((time, value, self._tracks.name(uuid) or name or "counter", track))
        else:
            self.left_out["events of another kind"] += 1

    def _request(self, begins: bool, uuid: int, time: int, name: str, told: dict[str, int | str]) -> None:
        requests, events = self._events.requests, self._events
        if begins:
            events.seen += 1
            good = requests.begin(uuid, time, events.names[name], self._tracks.code(uuid), told)
        else:
            good = requests.end(uuid, time)
        if not good:
            self.left_out["slices of requests that tell no row"] += 1


def _told(sequence: _Sequence, message: Message) -> dict[str, int | str]:
    """What the annotations of an event say in whole numbers and interned texts."""
    found: dict[str, int | str] = {}
    for n, wire, _, raw in message:
        if (n, wire) == (_ANNOTATION, LENGTH):
            entry = {m: v for m, w, v, _ in _one(raw) if w == VARINT}
            name = sequence.details.get((_ANNOTATION_NAMES, entry.get(1, 0)), "")
            if _INT in entry:
                value = entry[_INT]
                found[name] = value - (1 << 64) if value >= 1 << 63 else value
            elif _TEXT_ID in entry:
                found[name] = sequence.details.get((_ANNOTATION_TEXTS, entry[_TEXT_ID]), "")
    return found


def _value(number: dict[int, int]) -> float | None:
    if _WHOLE in number:
        value = number[_WHOLE]
        return float(value - (1 << 64) if value >= 1 << 63 else value)
    if _REAL in number:
        (real,) = struct.unpack("<d", struct.pack("<Q", number[_REAL]))
        return float(real) if abs(real) < float("inf") else None
    return None


def _numbers(values: Iterable[int]) -> npt.NDArray[np.int64]:
    return np.array(list(values), np.int64)


def _messages(data: bytes, starts: list[int], sizes: list[int]) -> tuple[list[Message], int]:
    """The fields of each message, and how many messages ended badly."""
    fields = fields_of(np.frombuffer(data, np.uint8), np.array(starts, np.int64), np.array(sizes, np.int64))
    found: list[Message] = [[] for _ in starts]
    rows = zip(fields.owner.tolist(), fields.number.tolist(), fields.wire.tolist(), fields.value.tolist(),
               fields.size.tolist(), strict=True)  # fmt: skip
    for owner, number, wire, value, size in rows:
        content = data[value : value + size] if wire == LENGTH else b""
        found[owner].append((number, wire, 0 if wire == LENGTH else value, content))
    return found, int(fields.broken.sum())


def _one(data: bytes) -> Message:
    """The fields of one small message."""
    found: Message = []
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        wire, number, size = tag & 7, tag >> 3, {FIXED64: 8, 5: 4}.get(tag & 7, 0)
        if wire in (VARINT, LENGTH):
            value, at = _varint(data, at)
            size = value if wire == LENGTH else 0
        elif not size:
            break
        if at + size > len(data) or not number:
            break
        content = data[at : at + size]
        if wire == LENGTH:
            value = 0
        elif size:
            value = int.from_bytes(content, "little")
        found.append((number, wire, value, content if wire == LENGTH else b""))
        at += size
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place, byte in enumerate(data[at : at + 10]):
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at + place + 1
    return 0, len(data) + 1
