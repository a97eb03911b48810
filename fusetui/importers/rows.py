"""Rows gathered while a capture is read: in memory while they are few, in an unlinked temporary file after that."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fusetui.telemetry.text import MAX_CHARS, safe_text

_LONGEST: Final = 2 * MAX_CHARS
_PIECE_BYTES: Final = 1 << 20
_OVERHEAD: Final = 120  # bytes of an entry beside its characters


class Rows:
    """A growing table with one numpy structured dtype.

    Up to `memory_bytes` are held; what is beyond goes to a temporary file that is mapped when the table is read,
    so that its pages can be dropped by the system.
    """

    def __init__(self, dtype: np.dtype[Any], memory_bytes: int) -> None:
        self.dtype = dtype
        self._chunks: list[npt.NDArray[Any]] = []
        self._held = 0
        self._limit = memory_bytes
        self._file: Any = None
        self._spilled = 0

    def __len__(self) -> int:
        return self._spilled + sum(map(len, self._chunks))

    def add(self, **columns: npt.NDArray[Any]) -> None:
        """Append rows; every column of the dtype must be given, all of one length."""
        chunk = np.empty(len(next(iter(columns.values()))), self.dtype)
        for name, values in columns.items():
            chunk[name] = values
        self._chunks.append(chunk)
        self._held += chunk.nbytes
        if self._held > self._limit:
            self._spill()

    def _spill(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="fusetui-")  # noqa: SIM115 (lives as long as the table)
        for chunk in self._chunks:
            self._file.write(chunk.tobytes())
            self._spilled += len(chunk)
        self._chunks, self._held = [], 0

    def chunks(self) -> Iterator[npt.NDArray[Any]]:
        """The rows in the order they came, some ten thousand at a time, without mapping the file."""
        if self._file is not None:
            self._file.flush()
            piece = max(_PIECE_BYTES // self.dtype.itemsize, 1) * self.dtype.itemsize
            whole = self._spilled * self.dtype.itemsize
            for at in range(0, whole, piece):
                yield np.frombuffer(os.pread(self._file.fileno(), min(piece, whole - at), at), self.dtype)
        if self._chunks:
            self._chunks = [np.concatenate(self._chunks)]
            yield self._chunks[0]

    def table(self) -> npt.NDArray[Any]:
        """All rows in the order they came, shape (rows,); the table takes no more rows after that."""
        if self._file is None:
            joined = np.concatenate(self._chunks) if self._chunks else np.empty(0, self.dtype)
            self._chunks = [joined]
            return joined
        self._spill()
        self._file.flush()
        return np.memmap(self._file, self.dtype, "r", shape=(self._spilled,))


class Words(dict[Any, int]):
    """Codes for repeated values: `words[value]` is its code, given in order of first appearance.

    At most `max_bytes` of text are kept; every new value beyond that gets the code of "…", and `full` is set.
    A text longer than anything shown is cut, a longer pair of texts counts as no text at all.
    """

    OVERFLOW: Final = "…"

    def __init__(self, max_bytes: int) -> None:
        super().__init__()
        self._room = max_bytes
        self.full = False

    def __missing__(self, value: Any) -> int:
        if isinstance(value, str) and len(value) > _LONGEST:
            return self[value[:_LONGEST]]
        if isinstance(value, tuple) and sum(map(len, value)) > _LONGEST:
            return self[(b"", b"")]
        self._room -= _OVERHEAD + (len(value) if isinstance(value, str) else 0)
        if isinstance(value, tuple):
            self._room -= sum(map(len, value))
        if self._room < 0 and value != self.OVERFLOW:
            self.full = True
            return self[self.OVERFLOW]
        code = len(self)
        self[value] = code
        return code

    def codes(self, values: list[Any]) -> npt.NDArray[np.int32]:
        """Code of each value, shape (len(values),)."""
        return np.fromiter(map(self.__getitem__, values), np.int32, len(values))

    def texts(self) -> list[str]:
        """Safe text of each code, in code order."""
        return [safe_text(str(value)) for value in self]
