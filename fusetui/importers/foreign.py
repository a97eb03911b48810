"""Names for files that no importer opens, so that a refusal says what the file is and what to do instead."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from fusetui.importers.foreign_kinds import ARRAYS, BINARY, BY_ENDING, OBJECTS, TEXTS, UNKNOWN_BINARY, Kind

_BOM: Final = b"\xef\xbb\xbf \t\r\n"


def recognised(head: bytes, path: Path | None = None) -> Kind:
    """What a file is that begins with `head` (decompressed).

    path  its name tells what a binary file may be that nothing else tells about
    """
    for kind in BINARY:
        if kind.fits(head):
            return kind
    body = head.lstrip(_BOM)
    kinds = OBJECTS if body.startswith(b"{") else ARRAYS if body.startswith(b"[") else TEXTS
    if kinds is TEXTS and _looks_binary(head):
        return BY_ENDING.get(path.suffix.lower() if path else "", UNKNOWN_BINARY)
    return next(kind for kind in kinds if kind.fits(body))


def _looks_binary(head: bytes) -> bool:
    sample = head[:4096]
    return b"\0" in sample or sum(byte < 32 and byte not in b"\t\r\n\f" for byte in sample) > len(sample) // 20
