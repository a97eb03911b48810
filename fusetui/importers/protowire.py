"""The protobuf wire format, read without a schema and never trusted: many messages at once, or spans of a file.

`fields_of` parses thousands of small messages in step with numpy; `Spans` walks the fields of one message of any size
and leaves what it contains where it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final

import numpy as np
import numpy.typing as npt

from fusetui.telemetry.wire import FIXED32, FIXED64, LENGTH, MAX_TAG, VARINT

__all__ = ["FIXED32", "FIXED64", "LENGTH", "VARINT", "Fields", "Spans", "fields_of", "pieces", "varints"]

_MOST_FIELDS: Final = 4096  # of one message that is parsed in step with others

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Fields:
    """Fields of many messages, shape (fields,) each; those of one message keep their order.

    owner   number of the message
    number  of the field
    wire    wire type
    value   the varint or fixed bits as uint64; for LENGTH the offset of the content in the bytes
    size    bytes of the content of LENGTH, else 0
    broken  messages that ended badly, shape (messages,); the fields before are kept
    """

    owner: Ints
    number: Ints
    wire: npt.NDArray[np.int8]
    value: npt.NDArray[np.uint64]
    size: Ints
    broken: npt.NDArray[np.bool_]

    def only(self, number: int, wire: int) -> tuple[Ints, npt.NDArray[np.uint64], Ints]:
        """Owner, value and size of the fields with that number and wire type."""
        chosen = (self.number == number) & (self.wire == wire)
        return self.owner[chosen], self.value[chosen], self.size[chosen]

    def last(self, number: int, wire: int, absent: int = 0) -> npt.NDArray[np.uint64]:
        """Per message the last value of a field, as protobuf has it; shape (messages,)."""
        owner, value, _ = self.only(number, wire)
        found = np.full(len(self.broken), absent, np.uint64)
        found[owner] = value
        return found


def varints(data: npt.NDArray[np.uint8], at: Ints, end: Ints) -> tuple[npt.NDArray[np.uint64], Ints]:
    """The varints at `at`, which must end before `end`, and where they end; -1 for one that does not. Shapes alike."""
    value = np.zeros(len(at), np.uint64)
    after = np.full(len(at), -1, np.int64)
    open_rows = np.flatnonzero(at < end)
    for place in range(10):
        position = at[open_rows] + place
        byte = data[position]
        value[open_rows] |= (byte & 0x7F).astype(np.uint64) << np.uint64(7 * place)
        done = byte < 0x80
        after[open_rows[done]] = position[done] + 1
        open_rows = open_rows[~done & (position + 1 < end[open_rows])]
        if not len(open_rows):
            break
    return value, after


def fields_of(data: npt.NDArray[np.uint8], start: Ints, size: Ints) -> Fields:
    """The fields of the messages data[start : start + size], which lie within `data`."""
    end = start + size
    at, active = start.copy(), np.flatnonzero(size > 0)
    broken = np.zeros(len(start), np.bool_)
    parts: list[tuple[npt.NDArray[np.generic], ...]] = []
    for _ in range(_MOST_FIELDS):
        if not len(active):
            break
        tag, after = varints(data, at[active], end[active])
        wire = (tag & np.uint64(7)).astype(np.int8)
        number = (np.minimum(tag >> np.uint64(3), np.uint64(MAX_TAG + 1))).astype(np.int64)
        value, extent, after = _contents(data, wire, after, end[active])
        good = (after >= 0) & (number > 0) & (number <= MAX_TAG)
        broken[active[~good]] = True
        active = active[good]
        parts.append((active, number[good], wire[good], value[good], extent[good]))
        at[active] = after[good]
        active = active[at[active] < end[active]]
    broken[active] = True
    if not parts:
        nothing = np.zeros(0, np.int64)
        return Fields(nothing, nothing, nothing.astype(np.int8), nothing.astype(np.uint64), nothing, broken)
    owner, number, wire, value, extent = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Fields(owner, number, wire, value, extent, broken)


def _contents(
    data: npt.NDArray[np.uint8], wire: npt.NDArray[np.int8], at: Ints, end: Ints
) -> tuple[npt.NDArray[np.uint64], Ints, Ints]:
    """Values, sizes and ends of the contents at `at` (-1: none) by wire type; an end of -1 marks a broken one."""
    value, size = np.zeros(len(at), np.uint64), np.zeros(len(at), np.int64)
    after = np.full(len(at), -1, np.int64)
    rows = np.flatnonzero((at >= 0) & ((wire == VARINT) | (wire == LENGTH)))
    value[rows], after[rows] = varints(data, at[rows], end[rows])
    held = rows[(wire[rows] == LENGTH) & (after[rows] >= 0)]
    room = (end[held] - after[held]).astype(np.uint64)
    fits = value[held] <= room
    size[held] = np.where(fits, np.minimum(value[held], room).astype(np.int64), 0)
    value[held] = after[held].astype(np.uint64)
    after[held] = np.where(fits, after[held] + size[held], -1)
    for kind, width in ((FIXED64, 8), (FIXED32, 4)):
        rows = np.flatnonzero((at >= 0) & (wire == kind) & (at + width <= end))
        octets = data[at[rows, None] + np.arange(width)].astype(np.uint64) if len(rows) else np.zeros((0, width), "u8")
        value[rows] = (octets << (np.arange(width, dtype=np.uint64) * np.uint64(8))).sum(axis=1, dtype=np.uint64)
        after[rows] = at[rows] + width
    return value, size, after


class Spans:
    """Fields of a message in a file, one by one; contents are not read, only their place is told."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._window = b""
        self._at = 0
        self.clamped = False

    def bytes_at(self, start: int, size: int) -> bytes:
        """Bytes of the file, fewer at its end."""
        if start < self._at or start + size > self._at + len(self._window):
            self._file.seek(start)
            self._at, self._window = start, self._file.read(max(size, 1 << 16))
        return self._window[start - self._at : start - self._at + size]

    def fields(self, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
        """(number, wire type, value or start, size) of each field; ends at the first that is broken.

        Content that claims to reach beyond `end` is given out up to there, and `clamped` is set.
        """
        at = start
        while at < end:
            tag, at = self._varint(at, end)
            wire, number = tag & 7, tag >> 3
            if at < 0 or not 0 < number <= MAX_TAG or wire not in (VARINT, FIXED64, LENGTH, FIXED32):
                return
            value, size = at, {FIXED64: 8, FIXED32: 4}.get(wire, 0)
            if wire in (VARINT, LENGTH):
                value, at = self._varint(at, end)
                if at < 0:
                    return
            if wire == LENGTH:
                claimed = value
                value, size = at, min(value, end - at)
                self.clamped |= claimed > size
            yield number, wire, value, size
            at += size

    def _varint(self, at: int, end: int) -> tuple[int, int]:
        """The varint at `at` and where it ends, -1 when it does not."""
        value = 0
        for place, byte in enumerate(self.bytes_at(at, min(10, end - at))):
            value |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:
                return value & 0xFFFFFFFFFFFFFFFF, at + place + 1
        return 0, -1


def pieces(data: bytes, number: int, last: bool) -> tuple[list[int], list[int], int]:
    """Contents of the fields `number` of a message that `data` is a part of: starts, sizes, and the bytes used.

    Other fields are passed over. A field that is cut is left for more bytes; when it is the `last` part, or broken
    beyond reading, everything counts as used.
    """
    starts: list[int] = []
    sizes: list[int] = []
    wanted = number << 3 | LENGTH
    at, end = 0, len(data)
    while at < end:
        if data[at] == wanted and at + 1 < end and data[at + 1] < 0x80:  # by far the commonest: one byte each
            content, size = at + 2, data[at + 1]
        else:
            tag, content = _plain_varint(data, at)
            if tag & 7 == LENGTH:
                size, content = _plain_varint(data, content)
            elif tag & 7 == VARINT:
                size, (_, content) = 0, _plain_varint(data, content)
            else:
                size = {FIXED64: 8, FIXED32: 4}.get(tag & 7, -1)
            if size < 0 or content > end + 10:
                return starts, sizes, end
            if tag != wanted and content + size <= end:
                at = content + size
                continue
        if content + size > end:
            return starts, sizes, end if last else at
        starts.append(content)
        sizes.append(size)
        at = content + size
    return starts, sizes, at


def _plain_varint(data: bytes, at: int) -> tuple[int, int]:
    """The varint at `at` and where it ends: behind the data when it is cut, far behind when it is too long."""
    value = 0
    for place in range(10):
        if at + place >= len(data):
            return value, len(data) + 1
        byte = data[at + place]
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value, at + place + 1
    return value, len(data) + 100
