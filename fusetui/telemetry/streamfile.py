"""One file of Arrow IPC messages with random access: found by a scan of the message headers, read by `pread`.

An IPC file whose footer is missing is read as the stream that follows its magic, so it loses nothing.
The file is not mapped into memory: one that is cut while mapped kills its reader.
"""

from __future__ import annotations

import math
import os
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

from fusetui.telemetry.decoder import BatchDecoder, Chains, Frame, extend_chains
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.footer import FILE_MAGIC, TAIL_BYTES, footer_length, footer_offsets, footer_schema
from fusetui.telemetry.framing import PREFIX_BYTES, Message, metadata_length, parse_message
from fusetui.telemetry.guard import Limits, refuse_foreign
from fusetui.telemetry.header import Header

RECORDING_KEY: Final = b"fusetui.recording"
_PEEK_BYTES: Final = 4096


@dataclass(frozen=True, slots=True)
class BatchAt:
    """Where a batch lies. start: its first message, dictionaries included; offset: the batch message itself."""

    start: int
    offset: int
    rows: int
    stream: int
    chains: Chains


class StreamFile:
    """The messages of one file, as far as it has been written.

    batches   the batches with rows found so far
    ended     the last stream has its end-of-stream marker (and is not followed by another)
    position  bytes understood so far
    size      bytes of the file at the last scan
    damage    why the scan went no further, "" when it reached the end
    """

    def __init__(self, path: Path, limits: Limits) -> None:
        """Raises TelemetryError when the file cannot be opened or does not begin with a fitting schema."""
        self.where = path.name
        self._path = path
        self._limits = limits
        self._fd = -1
        self._identity: tuple[int, int] | None = None
        self._streams: list[Frame] = []
        self._chains: Chains = {}
        self._decoder: tuple[int, BatchDecoder] | None = None
        self._start = 0
        self.batches: list[BatchAt] = []
        self.ended = False
        self.damage = ""
        self.size = 0
        magic = self._pread(0, 8)
        self.is_file = magic == FILE_MAGIC
        self.has_footer = False
        self.position = 8 if self.is_file else 0
        if not self.is_file and len(magic) >= 4:
            refuse_foreign(magic, self.where)
        if self.is_file:
            self._scan_footer()
        if not self.has_footer:
            self.scan()
        if not self._streams:
            self.release()
            raise TelemetryError(self.where, self.damage or "no whole schema in it", "is it an Arrow capture?")
        self.decoder(0)

    def decoder(self, stream: int) -> BatchDecoder:
        """The decoder of the file's stream number `stream`."""
        if self._decoder is None or self._decoder[0] != stream:
            self._decoder = (stream, BatchDecoder(self._streams[stream], self.where, self._limits))
        return self._decoder[1]

    @property
    def header(self) -> Header:
        """The header of the first stream."""
        return Header.from_metadata(self.decoder(0).gate.metadata, self.where)

    @property
    def recording(self) -> bytes:
        """The id of the recording this file belongs to, b"" when it is not one of ours."""
        return (self.decoder(0).gate.metadata or {}).get(RECORDING_KEY, b"")

    @property
    def age_s(self) -> float:
        """Seconds since the last write, by the file system's clock and ours; infinite once the file is gone."""
        try:
            return max(0.0, time.time() - self._path.stat().st_mtime)
        except OSError:
            return math.inf

    def scan(self) -> None:
        """Find the messages written since the last scan."""
        if self.has_footer:
            return
        self.size = os.fstat(self._open()).st_size
        while not self.damage and not (self.ended and self.is_file) and self.position + PREFIX_BYTES <= self.size:
            try:
                if not self._step():
                    return
            except TelemetryError as error:
                self.damage = error.what

    def read(self, batch: BatchAt, where: str) -> tuple[pa.RecordBatch, int]:
        """The canonical batch and its dropped rows. Raises TelemetryError."""
        decoder = self.decoder(batch.stream)
        frame = self._frame(batch.offset, where)
        raw = decoder.decode(frame, batch.chains, lambda offset: self._frame(offset, where), where)
        return decoder.gate.conform(raw, where)

    def release(self) -> None:
        """Give the file descriptor back; it is opened again when needed."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            self._decoder = None

    def _scan_footer(self) -> None:
        self.size = os.fstat(self._open()).st_size
        length = footer_length(self._pread(self.size - TAIL_BYTES, TAIL_BYTES), self.size)
        if length == 0:
            return
        if length > self._limits.message:
            raise TelemetryError(self.where, f"a footer of {length} bytes is over the limit of {self._limits.message}")
        footer = self._pread(self.size - TAIL_BYTES - length, length)
        dictionaries, batches = footer_offsets(footer, self.where)
        message, head = footer_schema(self._path, self.where, self._limits)
        self._take(message, head)
        for offset in dictionaries + batches:
            self.position = self._start = offset
            try:
                head = self._head(offset, self.where)
                message = parse_message(head[PREFIX_BYTES:], self.where, self._limits)
                self._take(message, head)
            except TelemetryError as error:
                self.damage = self.damage or error.what
        self.has_footer = self.ended = True
        self.position = self.size

    def _step(self) -> bool:
        """Take one message; False when it is not whole yet."""
        head = self._pread(self.position, _PEEK_BYTES)
        length = metadata_length(head, self.where, self._limits)
        if length == 0:
            self.ended = True
            self.position += PREFIX_BYTES
            return True
        if len(head) < PREFIX_BYTES + length:
            head = self._pread(self.position, PREFIX_BYTES + length)
            if len(head) < PREFIX_BYTES + length:
                return False
        head = head[: PREFIX_BYTES + length]
        message = parse_message(head[PREFIX_BYTES:], self.where, self._limits)
        end = self.position + len(head) + message.body_bytes
        if end > self.size:
            return False
        self._take(message, head)
        self.position = end
        if message.kind != "dictionary":
            self._start = end
        return True

    def _take(self, message: Message, head: bytes) -> None:
        if message.kind == "schema":
            if self._streams and not self.ended:
                raise TelemetryError(self.where, "a schema in the middle of a stream")
            self._streams.append(Frame(message, head, b""))
            self._chains = {}
            self.ended = False
        elif not self._streams or self.ended:
            raise TelemetryError(self.where, f"a {message.kind} before any schema")
        elif message.kind == "dictionary":
            self._chains = extend_chains(self._chains, message, self.position, self.where)
        elif message.rows:
            self.batches.append(BatchAt(self._start, self.position, message.rows, len(self._streams) - 1, self._chains))

    def _frame(self, offset: int, where: str) -> Frame:
        head = self._head(offset, where)
        message = parse_message(head[PREFIX_BYTES:], where, self._limits)
        body = self._pread(offset + len(head), message.body_bytes)
        if len(body) < message.body_bytes:
            raise TelemetryError(where, "the message goes beyond the end of the file")
        return Frame(message, head, body)

    def _head(self, offset: int, where: str) -> bytes:
        """Prefix and metadata of the message at `offset`."""
        head = self._pread(offset, _PEEK_BYTES) if 0 <= offset < self.size else b""
        if len(head) < PREFIX_BYTES:
            raise TelemetryError(where, "a message is said to be beyond the end of the file")
        length = metadata_length(head, where, self._limits)
        if len(head) < PREFIX_BYTES + length:
            head = self._pread(offset, PREFIX_BYTES + length)
        return head[: PREFIX_BYTES + length]

    def _pread(self, offset: int, size: int) -> bytes:
        try:
            data = os.pread(self._open(), size, offset)
            while data and len(data) < size and (more := os.pread(self._fd, size - len(data), offset + len(data))):
                data += more
        except OSError as error:
            raise TelemetryError(self.where, f"read failed: {error.strerror}") from error
        return data

    def _open(self) -> int:
        if self._fd >= 0:
            return self._fd
        try:
            # O_NONBLOCK: opening a named pipe by mistake must not hang.
            fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            raise TelemetryError(str(self._path), f"cannot be opened: {error.strerror}") from error
        status = os.fstat(fd)
        identity = (status.st_dev, status.st_ino)
        problem = "" if stat.S_ISREG(status.st_mode) else "not a regular file"
        if self._identity not in (None, identity):
            problem = "the file was replaced while it was open"
        if problem:
            os.close(fd)
            raise TelemetryError(str(self._path), problem)
        self._fd, self._identity = fd, identity
        return fd
