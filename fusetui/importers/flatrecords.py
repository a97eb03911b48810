"""Files that are one JSON object of flat records: {"0": {…}, "1": {…}, …}."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from fusetui.importers.bytestream import ByteStream

_RECORD: Final = re.compile(rb"\{[^{}]*\}")
_OPENING: Final = re.compile(rb'\s*(?:\xef\xbb\xbf)?\s*\{\s*"[^"{}]{1,40}"\s*:\s*(\{[^{}]*\})')

Record = TypeVar("Record", bound=msgspec.Struct)


def first_record(head: bytes) -> bytes:
    """The first record of such a file, b"" when it is none."""
    match = _OPENING.match(head[:8192])
    return match[1] if match else b""


def read_records(path: Path, memory_bytes: int, kind: type[Record]) -> tuple[list[Record], list[str]]:
    """The records that are of `kind`, and what is to be said of the rest; a cut file gives what is whole in it."""
    with ByteStream(path) as stream:
        parts: list[bytes] = []
        room = max(memory_bytes // 16, 1 << 20)
        while room > 0 and (part := stream.read(min(room, 1 << 20))):
            parts.append(part)
            room -= len(part)
        notes = [stream.damage] if stream.damage else []
    if room <= 0:
        notes.append("only the beginning was read: more does not fit in --memory")
    decoder = msgspec.json.Decoder(kind)
    records, bad = [], 0
    for match in _RECORD.finditer(b"".join(parts)):
        try:
            records.append(decoder.decode(match[0]))
        except (msgspec.DecodeError, UnicodeDecodeError):
            bad += 1
    if bad:
        notes.append(f"{bad:,} records left out: a value is missing or of a wrong type")
    return records, notes
