"""The bytes of a capture file, gzip undone, read once from front to back and never trusted."""

from __future__ import annotations

import zlib
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from fusetui.telemetry.errors import TelemetryError

GZIP_MAGIC: Final = b"\x1f\x8b"
MAX_EXPANSION: Final = 250
"""Largest decompressed/compressed ratio believed; real traces compress 8- to 40-fold, a bomb 1000-fold."""
_FREE_BYTES: Final = 64 << 20  # below this size a ratio proves nothing
_CHUNK: Final = 256 << 10


class ByteStream:
    """Sequential reader of a plain or gzipped file.

    `read(n)` returns at most n bytes, b"" at the end. A damaged or cut gzip file ends early and says so in `damage`.
    Raises TelemetryError when the file cannot be opened or expands like a decompression bomb.
    """

    def __init__(self, path: Path) -> None:
        self.where = str(path)
        self.damage = ""
        try:
            self._file = path.open("rb", buffering=0)
            self._size = path.stat().st_size
            self._ahead = self._file.read(2)
        except OSError as error:
            raise TelemetryError(self.where, f"cannot be read ({error.strerror})") from None
        self.gzipped = self._ahead == GZIP_MAGIC
        self._inflater = zlib.decompressobj(31) if self.gzipped else None
        self._expanded = 0

    def read(self, size: int = _CHUNK) -> bytes:
        try:
            return self._inflate(size) if self._inflater is not None else self._raw(size)
        except OSError as error:
            self.damage = f"reading stopped ({error.strerror})"
            return b""

    def _raw(self, size: int) -> bytes:
        ahead, self._ahead = self._ahead, b""
        return ahead + (self._file.read(size - len(ahead)) or b"")

    def _inflate(self, size: int) -> bytes:
        while True:
            inflater = self._inflater
            if inflater is None:
                return b""
            if inflater.eof:
                # A gzip file may hold several members one after the other.
                rest = inflater.unused_data or self._raw(_CHUNK)
                if not rest.startswith(GZIP_MAGIC):
                    if rest.strip(b"\0"):
                        self.damage = "bytes after the end of the gzip data were left out"
                    self._inflater = None
                    return b""
                self._inflater, feed = zlib.decompressobj(31), rest
                continue_with = self._inflater
            else:
                continue_with, feed = inflater, inflater.unconsumed_tail or self._raw(_CHUNK)
            if not feed:
                self.damage, self._inflater = "the gzip data is cut off", None
                return b""
            try:
                out = continue_with.decompress(feed, size)
            except zlib.error:
                self.damage, self._inflater = "the gzip data is damaged from here on", None
                return b""
            if out:
                self._expanded += len(out)
                self._refuse_bomb()
                return out

    def _refuse_bomb(self) -> None:
        if self._expanded > max(_FREE_BYTES, MAX_EXPANSION * self._size):
            raise TelemetryError(
                self.where, f"gzip expands more than {MAX_EXPANSION}-fold", "decompress it yourself if you trust it"
            )

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def head_of(path: Path, size: int = 1 << 20) -> bytes:
    """The first `size` bytes of a file, decompressed when it is gzipped. Raises TelemetryError."""
    with ByteStream(path) as stream:
        parts: list[bytes] = []
        wanted = size
        while wanted > 0 and (part := stream.read(min(wanted, _CHUNK))):
            parts.append(part)
            wanted -= len(part)
        return b"".join(parts)
