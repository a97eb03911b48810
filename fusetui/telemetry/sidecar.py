"""The index beside a recording: where each batch lies in time, so that opening need not decode them.

`cap.arrows.idx`: 16 bytes of magic, 16 bytes of recording id, then per batch five little-endian int64: start of the
batch (offset of its first message, dictionaries included), rows, first and last event time, and a checksum. It is
only a hint: a reader matches offset and rows with the capture itself and decodes what does not match.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Final

import numpy as np

MAGIC: Final = b"FUSETUI-INDEX-1\n"
ID_BYTES: Final = 16
_WORDS: Final = 5
_MAX_BYTES: Final = 64 << 20

Entry = tuple[int, int, int]
"""Rows, first and last event time in ns."""


def sidecar_path(capture: Path) -> Path:
    """The index of a capture."""
    return capture.with_name(capture.name + ".idx")


def encode_entry(start: int, rows: int, first_ns: int, last_ns: int) -> bytes:
    """One batch's record."""
    values = np.array([start, rows, first_ns, last_ns], "<i8").tobytes()
    return values + np.array([zlib.crc32(values)], "<i8").tobytes()


def read_sidecar(path: Path, recording: bytes) -> dict[int, Entry]:
    """Start of batch -> entry; empty when the index is missing, foreign or unreadable. Damaged records are left out."""
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES)
    except OSError:
        return {}
    head = len(MAGIC) + ID_BYTES
    if data[:head] != MAGIC + recording:
        return {}
    count = (len(data) - head) // (_WORDS * 8)
    entries = {}
    for number in range(count):
        record = data[head + number * _WORDS * 8 : head + (number + 1) * _WORDS * 8]
        start, rows, first_ns, last_ns, checksum = np.frombuffer(record, "<i8").tolist()
        if checksum == zlib.crc32(record[: (_WORDS - 1) * 8]):
            entries[start] = (rows, first_ns, last_ns)
    return entries
