"""Record batches to disk so that a kill at any moment costs at most the batch being written."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pyarrow as pa

from fusetui.telemetry.arrowtrace import segment_path
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.eventtime import event_time_ns
from fusetui.telemetry.header import Header
from fusetui.telemetry.sidecar import MAGIC, encode_entry, sidecar_path
from fusetui.telemetry.streamfile import RECORDING_KEY
from fusetui.telemetry.writer import Compression, Encoder

COALESCE_ROWS: Final = 65_536
COALESCE_S: Final = 1.0
_WRITE_ERRORS: Final = (OSError, pa.ArrowException, ValueError, MemoryError)


class Recorder:
    """Writes Arrow IPC stream segments `cap.arrows`, `cap.1.arrows`, … with an index `….idx` beside each.

    Small batches are joined up to `coalesce_rows` rows or `coalesce_s` seconds, then handed to the operating system
    in one write. Nothing raises once the recorder is made: when the disk is full or fails, recording stops and says so.

    failed  why it stopped, one line; "" while all is well
    rows    rows handed to the operating system
    """

    def __init__(
        self,
        path: Path,
        header: Header,
        *,
        max_bytes: int = 1 << 30,
        max_seconds: float = 3600.0,
        overwrite: bool = False,
        compression: Compression = "zstd",
        coalesce_rows: int = COALESCE_ROWS,
        coalesce_s: float = COALESCE_S,
    ) -> None:
        """max_bytes, max_seconds  begin the next segment after this much
        overwrite                replace an existing recording, with all its segments
        Errors: TelemetryError when a file is in the way or cannot be made.
        """
        self.failed = ""
        self.rows = 0
        self._path = path
        self._header = header
        self._max_bytes = max_bytes
        self._max_seconds = max_seconds
        self._compression = compression
        self._coalesce_rows = coalesce_rows
        self._coalesce_s = coalesce_s
        self._recording = uuid.uuid4().bytes
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = 0
        self._pending_since = 0.0
        self._number = 0
        self._closed = False
        self._lock = threading.RLock()
        self._wake = threading.Condition(self._lock)
        try:
            if overwrite:
                _remove_old(path)
            elif segment_path(path, 1).exists():
                raise FileExistsError(17, "File exists")
            self._segment = _Segment(path, self._encoder(), self._recording)
        except FileExistsError:
            raise TelemetryError(str(path), "is there already", "choose another name, or overwrite it") from None
        except OSError as error:
            raise TelemetryError(str(path), f"cannot be written: {error.strerror}") from error
        self._timer = threading.Thread(target=self._flush_in_time, name="fusetui-recorder", daemon=True)
        self._timer.start()

    def write(self, batch: pa.RecordBatch) -> None:
        """Take a canonical batch. Does nothing after a failure or close."""
        if batch.num_rows == 0:
            return
        with self._lock:
            if self._closed or self.failed:
                return
            if not self._pending:
                self._pending_since = time.monotonic()
                self._wake.notify()
            self._pending.append(batch)
            self._pending_rows += batch.num_rows
            if self._pending_rows >= self._coalesce_rows:
                self._flush()

    def close(self) -> None:
        """Write what is pending and the end-of-stream marker, and bring it to the disk."""
        with self._lock:
            if self._closed:
                return
            self._flush()
            self._closed = True
            self._wake.notify()
            with self._failing():
                self._segment.finish()
        self._timer.join(timeout=5.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _encoder(self) -> Encoder:
        return Encoder(self._header, self._compression, {RECORDING_KEY: self._recording})

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except _WRITE_ERRORS as error:
            reason = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
            if not self.failed:
                self.failed = str(TelemetryError(str(self._segment.path), f"recording stopped: {reason}"))
            self._pending.clear()
            self._pending_rows = 0

    def _flush(self) -> None:
        if not self._pending or self.failed:
            return
        with self._failing():
            for batch in _joined(self._pending):
                self._segment.write(batch)
                self.rows += batch.num_rows
            self._pending.clear()
            self._pending_rows = 0
            if self._segment.bytes >= self._max_bytes or self._segment.age_s >= self._max_seconds:
                self._rotate()

    def _rotate(self) -> None:
        # The next one first: a reader that finds an end marker and no next segment knows the recording is over.
        self._number += 1
        following = _Segment(segment_path(self._path, self._number), self._encoder(), self._recording)
        finished, self._segment = self._segment, following
        finished.finish()

    def _flush_in_time(self) -> None:
        with self._wake:
            while not self._closed:
                if not self._pending:
                    self._wake.wait()
                    continue
                left = self._pending_since + self._coalesce_s - time.monotonic()
                if left > 0:
                    self._wake.wait(left)
                else:
                    self._flush()


class _Segment:
    """One file being written, with its index."""

    def __init__(self, path: Path, encoder: Encoder, recording: bytes) -> None:
        self.path = path
        self.bytes = 0
        self._encoder = encoder
        self._began = time.monotonic()
        # O_APPEND: after cutting half a message off, the end marker must not land where that message ended.
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._index = _open_index(path)
        self._index_write(MAGIC + recording)
        self._append(encoder.start())

    @property
    def age_s(self) -> float:
        return time.monotonic() - self._began

    def write(self, batch: pa.RecordBatch) -> None:
        for part in self._encoder.parts(batch):
            start = self.bytes
            self._append(self._encoder.encode(part))
            times = event_time_ns(part)
            self._index_write(encode_entry(start, part.num_rows, int(times.min()), int(times.max())))

    def finish(self) -> None:
        """End marker, to the disk, closed. Raises OSError; the file is closed all the same."""
        try:
            self._append(self._encoder.end())
            os.fsync(self._fd)
        finally:
            os.close(self._fd)
            if self._index >= 0:
                os.close(self._index)

    def _append(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError:
            # Half a message helps nobody: cut back to the last whole one.
            os.ftruncate(self._fd, self.bytes)
            raise
        self.bytes += len(data)

    def _index_write(self, data: bytes) -> None:
        """The index is only a hint: when it cannot be written it is given up, and the capture goes on."""
        if self._index < 0:
            return
        try:
            whole = os.write(self._index, data) == len(data)
        except OSError:
            whole = False
        if not whole:
            os.close(self._index)
            self._index = -1


def _open_index(path: Path) -> int:
    """An empty index file, over an old one of ours but over nothing else; -1 when it cannot be made."""
    index = sidecar_path(path)
    try:
        if index.exists() and index.read_bytes()[: len(MAGIC)] != MAGIC:
            return -1
        return os.open(index, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    except OSError:
        return -1


def _joined(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    if len(batches) == 1:
        return batches
    try:
        return [pa.concat_batches(batches)]
    except pa.ArrowException:
        # Together they have more words than a narrow dictionary index can number.
        return batches


def _remove_old(path: Path) -> None:
    number = 0
    while (old := segment_path(path, number)).exists():
        old.unlink()
        number += 1
