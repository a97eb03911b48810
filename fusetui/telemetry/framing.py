"""The frames of an Arrow IPC stream: what a message says about itself, checked before anything decodes it.

Encapsulated message (Arrow columnar format, "IPC"): FF FF FF FF, int32 metadata length (0: end of stream),
metadata (a flatbuffer `Message`), body of `bodyLength` bytes. Only the few fields that bound the cost of
decoding are read here; Arrow itself verifies the rest.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.guard import Limits
from fusetui.telemetry.stamp import MAX_BYTES, STAMP_KEY

PREFIX_BYTES: Final = 8
CONTINUATION: Final = 0xFFFFFFFF
END_OF_STREAM: Final = b"\xff\xff\xff\xff\x00\x00\x00\x00"

Kind = Literal["schema", "dictionary", "batch"]
_KINDS: Final[dict[int, Kind]] = {1: "schema", 2: "dictionary", 3: "batch"}

_MAX_CUSTOM: Final = 16

_U16 = struct.Struct("<H")
_U32 = struct.Struct("<I")
_I32 = struct.Struct("<i")
_I64 = struct.Struct("<q")


@dataclass(frozen=True, slots=True)
class Message:
    """One message's metadata.

    kind        schema, dictionary or batch
    body_bytes  length of the body that follows the metadata
    rows        rows of a batch, words of a dictionary
    dictionary  id of a dictionary message
    delta       the dictionary adds to the one before, rather than replacing it
    compressed  the buffers are compressed
    buffers     offset and length of each buffer in the body, shape (buffers, 2), int64
    stamp       what a batch's sender says beside it, see `fusetui.telemetry.stamp`; b"": nothing
    """

    kind: Kind
    body_bytes: int
    rows: int = 0
    dictionary: int = 0
    delta: bool = False
    compressed: bool = False
    buffers: npt.NDArray[np.int64] | None = None
    stamp: bytes = b""


def metadata_length(prefix: bytes, where: str, limits: Limits) -> int:
    """Length of the metadata that follows an 8-byte prefix; 0 is the end of the stream. Raises TelemetryError."""
    if _U32.unpack_from(prefix)[0] != CONTINUATION:
        raise TelemetryError(where, f"not an Arrow message (begins with {prefix[:8].hex(' ')})")
    length: int = _I32.unpack_from(prefix, 4)[0]
    if length < 0 or length > limits.metadata:
        raise TelemetryError(where, f"message metadata of {length} bytes is over the limit of {limits.metadata}")
    return length


def parse_message(metadata: bytes, where: str, limits: Limits) -> Message:
    """What the metadata says. Raises TelemetryError when it is damaged or claims more than the limits."""
    try:
        message = _parse(metadata)
    except (struct.error, ValueError, IndexError):
        raise TelemetryError(where, "damaged message metadata") from None
    if message is None:
        raise TelemetryError(where, "a message that is not a schema, dictionary or batch")
    if not 0 <= message.body_bytes <= limits.message:
        raise TelemetryError(
            where,
            f"message of {message.body_bytes} bytes is over the limit of {limits.message}",
            "send smaller batches",
        )
    if not 0 <= message.rows <= limits.rows:
        raise TelemetryError(where, f"batch of {message.rows} rows is over the limit of {limits.rows}")
    return message


def decoded_bytes(message: Message, body: bytes | memoryview, where: str, limits: Limits) -> int:
    """Bytes the body says it has after decompression. Raises TelemetryError over the limit or when out of bounds."""
    if message.buffers is None:
        return message.body_bytes
    total = 0
    if not message.compressed:
        total = int(message.buffers[:, 1].clip(0, 1 << 40).sum())
    else:
        for offset, length in message.buffers.tolist():
            if length == 0:
                continue
            if length < 8 or offset < 0 or offset + length > len(body):
                raise TelemetryError(where, "a compressed buffer lies outside its message")
            declared = _I64.unpack_from(body, offset)[0]
            if declared < -1:
                raise TelemetryError(where, f"a compressed buffer claims {declared} bytes")
            total += length if declared == -1 else declared
    if total > limits.batch:
        raise TelemetryError(where, f"batch of {total} decompressed bytes is over the limit of {limits.batch}")
    return total


def _parse(data: bytes) -> Message | None:
    root = _U32.unpack_from(data)[0]
    header_type = flat_field(data, root, 1)
    kind = _KINDS.get(data[header_type]) if header_type else None
    header = flat_field(data, root, 2)
    if kind is None or header is None:
        return None
    body_at = flat_field(data, root, 3)
    body_bytes = _I64.unpack_from(data, body_at)[0] if body_at else 0
    table = header + _U32.unpack_from(data, header)[0]
    if kind == "schema":
        return Message(kind, body_bytes)
    dictionary, delta = 0, False
    if kind == "dictionary":
        id_at, data_at, delta_at = (flat_field(data, table, i) for i in range(3))
        if data_at is None:
            raise ValueError("dictionary without data")
        dictionary = _I64.unpack_from(data, id_at)[0] if id_at else 0
        delta = bool(delta_at and data[delta_at])
        table = data_at + _U32.unpack_from(data, data_at)[0]
    rows_at = flat_field(data, table, 0)
    return Message(
        kind,
        body_bytes,
        rows=_I64.unpack_from(data, rows_at)[0] if rows_at else 0,
        dictionary=dictionary,
        delta=delta,
        compressed=flat_field(data, table, 3) is not None,
        buffers=_buffers(data, table),
        stamp=_stamp(data, root) if kind == "batch" else b"",
    )


def _stamp(data: bytes, root: int) -> bytes:
    at = flat_field(data, root, 4)
    if at is None:
        return b""
    vector = at + _U32.unpack_from(data, at)[0]
    for number in range(min(_U32.unpack_from(data, vector)[0], _MAX_CUSTOM)):
        slot = vector + 4 + 4 * number
        pair = slot + _U32.unpack_from(data, slot)[0]
        if _text(data, pair, 0, len(STAMP_KEY)) == STAMP_KEY:
            return _text(data, pair, 1, MAX_BYTES)
    return b""


def _text(data: bytes, table: int, number: int, limit: int) -> bytes:
    """A text field of a table; b"" when it is longer than `limit`."""
    at = flat_field(data, table, number)
    if at is None:
        return b""
    start = at + _U32.unpack_from(data, at)[0]
    length = _U32.unpack_from(data, start)[0]
    return data[start + 4 : start + 4 + length] if length <= limit else b""


def _buffers(data: bytes, table: int) -> npt.NDArray[np.int64] | None:
    at = flat_field(data, table, 2)
    if at is None:
        return None
    vector = at + _U32.unpack_from(data, at)[0]
    count = _U32.unpack_from(data, vector)[0]
    return np.frombuffer(data, "<i8", count * 2, vector + 4).reshape(count, 2)


def flat_field(data: bytes, table: int, number: int) -> int | None:
    """Position of a flatbuffer table's field, None when it has its default. Raises struct.error, ValueError."""
    vtable = table - _I32.unpack_from(data, table)[0]
    if vtable < 0:
        raise ValueError("vtable before the buffer")
    slot = 4 + 2 * number
    if slot + 2 > _U16.unpack_from(data, vtable)[0]:
        return None
    offset: int = _U16.unpack_from(data, vtable + slot)[0]
    return table + offset if offset else None
