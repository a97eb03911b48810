"""Whole lines of a text file that grows, is cut or is replaced under its name: what `tail -F` sees."""

from __future__ import annotations

import os
from typing import Final

BACKLOG_BYTES: Final = 4 << 20
MAX_LINE: Final = 256 << 10
_CHUNK: Final = 1 << 20


class Tail:
    """The lines at the end of a file, from up to BACKLOG_BYTES before it on. Not thread-safe.

    rotated, cut  how often another file took the name, and how often the file was emptied
    too_long      lines over MAX_LINE, left out
    bytes_in      read so far
    """

    def __init__(self, path: str, backlog_bytes: int = BACKLOG_BYTES) -> None:
        """Raises OSError when it cannot be opened."""
        self.path = path
        self.rotated = self.cut = self.too_long = self.bytes_in = 0
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115 (lives as long as this)
        size = os.fstat(self._file.fileno()).st_size
        self._rest = b""
        self._skipping = size > backlog_bytes  # the line that the backlog begins inside of
        self._file.seek(max(0, size - backlog_bytes))
        self._backlog_until = size

    @property
    def in_backlog(self) -> bool:
        """Whether lines that were there at the start are still to come."""
        return self._file.tell() < self._backlog_until

    def written_ns(self) -> int:
        """When the file was last written, ns since 1970."""
        return os.fstat(self._file.fileno()).st_mtime_ns

    def read(self) -> bytes:
        """The next whole lines, b"" when there are none now. Raises OSError when reading fails."""
        data = self._file.read(_CHUNK)
        if not data:
            data = self._elsewhere()
        if not data:
            return b""
        self.bytes_in += len(data)
        # A file that is emptied while its writer keeps its place is filled up with zeros before it.
        data = self._rest + data.replace(b"\0", b"")
        if self._skipping:
            _, newline, data = data.partition(b"\n")
            self._skipping = not newline
        end = data.rfind(b"\n") + 1
        self._rest = data[end:]
        if len(self._rest) > MAX_LINE:
            self.too_long += 1
            self._rest, self._skipping = b"", True
        return data[:end]

    def close(self) -> None:
        self._file.close()

    def _elsewhere(self) -> bytes:
        """At the end of the file: the beginning of another one under its name, or of itself when it was emptied."""
        here = os.fstat(self._file.fileno())
        if here.st_size < self._file.tell():
            self.cut += 1
            self._file.seek(0)
            self._rest = b""
            return self._begun()
        try:
            named = os.stat(self.path)
        except FileNotFoundError:
            return b""  # moved away; whoever writes may still write here, until there is a new one
        if (named.st_dev, named.st_ino) == (here.st_dev, here.st_ino):
            return b""
        new = open(self.path, "rb", buffering=0)  # noqa: SIM115 (takes the place of the other one)
        self._file.close()
        self._file = new
        self.rotated += 1
        self._rest += b"\n" if self._rest else b""
        return self._begun()

    def _begun(self) -> bytes:
        self._skipping, self._backlog_until = False, 0
        return self._file.read(_CHUNK)
