"""Limits on untrusted input, and the reads that keep them: nothing is allocated because a length field says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from fusetui.telemetry.errors import TelemetryError

_CHUNK: Final = 1 << 20
_GROWTH: Final = 8
"""Memory set aside for a message is at most so many times what came of it; numpy asks for huge pages, bytes do not."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one message, batch or stream may take, in bytes or rows.

    message     body of one IPC message as it lies on the wire
    metadata    header of one IPC message (the schema with its metadata, a batch's layout)
    batch       one batch or dictionary after decompression
    dictionary  all dictionaries of a stream together, after decompression
    rows        rows of one batch
    total       whole stream (None: no limit)
    """

    message: int = 64 << 20
    metadata: int = 2 << 20
    batch: int = 256 << 20
    dictionary: int = 256 << 20
    rows: int = 4_000_000
    total: int | None = None


DEFAULT_LIMITS: Final = Limits()


class BinaryReader(Protocol):
    """Anything with a blocking `read`: a file, a pipe, `socket.makefile("rb")`; `readinto` is used where it has it."""

    def read(self, size: int, /) -> bytes | None: ...


class GuardedReader:
    """Exact reads from a blocking binary file, with caps on each read and on all of them.

    taken  bytes read so far
    """

    def __init__(self, file: BinaryReader, where: str, limits: Limits = DEFAULT_LIMITS) -> None:
        self._file = file
        self._where = where
        self._limits = limits
        self.taken = 0

    def read(self, size: int) -> bytes:
        """`size` bytes, fewer only at the end of the input. Raises TelemetryError over a cap or when the read fails."""
        return bytes(self.read_body(size))

    def read_body(self, size: int) -> bytes | memoryview:
        """As `read`, without a copy at the end."""
        if size > self._limits.message:
            raise TelemetryError(
                self._where,
                f"one read of {size} bytes is over the limit of {self._limits.message}",
                "send smaller batches",
            )
        if self._limits.total is not None and self.taken + size > self._limits.total:
            raise TelemetryError(self._where, f"more than {self._limits.total} bytes in all")
        # In chunks: a length that lies must cost what arrived, not what it claims.
        chunk = self._read_once(min(size, _CHUNK))
        if len(chunk) == size or not chunk:
            return chunk
        whole, have = np.frombuffer(chunk, np.uint8), len(chunk)
        while have < size:
            if have == len(whole):
                grown = np.empty(min(size, _GROWTH * have), np.uint8)
                grown[:have] = whole
                whole = grown
            got = self._read_into(whole[have : have + _CHUNK])
            have += got
            if not got:
                break
        return whole[:have].data

    def _read_into(self, room: npt.NDArray[np.uint8]) -> int:
        """Fill some of `room` from its beginning; 0 at the end of the input."""
        readinto = getattr(self._file, "readinto", None)
        if readinto is None:
            chunk = self._read_once(len(room))
            room[: len(chunk)] = np.frombuffer(chunk, np.uint8)
            return len(chunk)
        try:
            got: int | None = readinto(room.data)
        except (OSError, ValueError) as error:
            raise TelemetryError(self._where, f"read failed: {error or type(error).__name__}") from error
        if got is None:
            raise TelemetryError(self._where, "the input is in non-blocking mode", "open it blocking")
        self.taken += got
        return got

    def _read_once(self, size: int) -> bytes:
        try:
            chunk = self._file.read(size)
        except (OSError, ValueError) as error:
            raise TelemetryError(self._where, f"read failed: {error or type(error).__name__}") from error
        if chunk is None:
            raise TelemetryError(self._where, "the input is in non-blocking mode", "open it blocking")
        self.taken += len(chunk)
        return chunk


_FOREIGN: Final = (
    (b"FEA1", "Feather version 1 is not read: it crashes its reader", "convert it to an Arrow IPC stream"),
    (b"\x1f\x8b", "gzip data, not an Arrow stream", "pipe it through gzip -dc"),
    (b"\x28\xb5\x2f\xfd", "zstd data, not an Arrow stream", "pipe it through zstd -dc"),
    (b"PAR1", "Parquet needs random access", "open it as a file, not as a stream"),
)


def refuse_foreign(magic: bytes, where: str) -> None:
    """Raise TelemetryError, with what to do, unless `magic` (first 4 to 8 bytes) may begin an Arrow IPC stream."""
    for start, what, remedy in _FOREIGN:
        if magic.startswith(start):
            raise TelemetryError(where, what, remedy)
    if magic.startswith(b"\xff\xff\xff\xff"):
        return
    if len(magic) >= 4 and 0 < int.from_bytes(magic[:4], "little") < 1 << 20:
        raise TelemetryError(
            where, "an Arrow stream of before version 0.15, or not Arrow", "write it again with a newer Arrow"
        )
    raise TelemetryError(where, f"not an Arrow stream (begins with {magic[:8].hex(' ')})")
