"""The footer of an Arrow IPC file: where its messages are, in whichever order the writer laid them out."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

import pyarrow as pa

from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.framing import PREFIX_BYTES, Message, flat_field, parse_message
from fusetui.telemetry.guard import Limits

FILE_MAGIC: Final = b"ARROW1\x00\x00"
TAIL_BYTES: Final = 10
"""int32 length of the footer, then the magic without its padding."""

_BLOCK: Final = struct.Struct("<qiiq")
_U32: Final = struct.Struct("<I")
_DICTIONARIES: Final = 2
_BATCHES: Final = 3


def footer_length(tail: bytes, file_bytes: int) -> int:
    """Length of the footer that ends in `tail`; 0 when the file has none, as when its writer was killed."""
    if len(tail) < TAIL_BYTES or tail[4:] != FILE_MAGIC[:6]:
        return 0
    length: int = struct.unpack_from("<i", tail)[0]
    return length if 0 < length <= file_bytes - TAIL_BYTES - len(FILE_MAGIC) else 0


def footer_offsets(footer: bytes, where: str) -> tuple[list[int], list[int]]:
    """Offsets of the dictionary messages and of the batch messages. Raises TelemetryError when it is damaged."""
    try:
        root = _U32.unpack_from(footer)[0]
        return _blocks(footer, root, _DICTIONARIES), _blocks(footer, root, _BATCHES)
    except (struct.error, ValueError):
        raise TelemetryError(where, "damaged footer") from None


def footer_schema(path: Path, where: str, limits: Limits) -> tuple[Message, bytes]:
    """The file's schema as a message of a stream. Raises TelemetryError."""
    try:
        with pa.OSFile(str(path)) as file, pa.ipc.open_file(file) as reader:
            head: bytes = reader.schema.serialize().to_pybytes()
    except (pa.ArrowException, OSError, ValueError, MemoryError, LookupError) as error:
        raise TelemetryError(where, f"damaged footer ({error})") from None
    if len(head) > limits.metadata:
        raise TelemetryError(where, f"a schema of {len(head)} bytes is over the limit of {limits.metadata}")
    return parse_message(head[PREFIX_BYTES:], where, limits), head


def _blocks(footer: bytes, root: int, field: int) -> list[int]:
    at = flat_field(footer, root, field)
    if at is None:
        return []
    vector = at + _U32.unpack_from(footer, at)[0]
    count = _U32.unpack_from(footer, vector)[0]
    if vector + 4 + count * _BLOCK.size > len(footer):
        raise ValueError("blocks beyond the footer")
    return [_BLOCK.unpack_from(footer, vector + 4 + i * _BLOCK.size)[0] for i in range(count)]
