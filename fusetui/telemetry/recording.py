"""Record batches to disk so that a kill at any moment costs at most the batch being written."""

from __future__ import annotations

import contextlib
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pyarrow as pa

from fusetui.telemetry.chain import segment_path
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header
from fusetui.telemetry.segment import Segment
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
        place: Callable[[int], Path] | None = None,
        first: int = 0,
    ) -> None:
        """max_bytes, max_seconds  begin the next segment after this much
        overwrite                replace an existing recording, with all its segments
        place, first             where segment `number` goes, and the number of the first (default: `segment_path`)
        Errors: TelemetryError when a file is in the way or cannot be made.
        """
        self.failed = ""
        self.rows = 0
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
        self._number = first
        self._place = place or (lambda number: segment_path(path, number))
        self._closed = False
        self._lock = threading.RLock()
        self._wake = threading.Condition(self._lock)
        try:
            if overwrite:
                _remove_old(path)
            elif self._place(first + 1).exists():
                raise FileExistsError(17, "File exists")
            self._segment = Segment(self._place(first), self._encoder(), self._recording)
        except FileExistsError:
            raise TelemetryError(str(path), "is there already", "choose another name, or overwrite it") from None
        except OSError as error:
            raise TelemetryError(str(path), f"cannot be written: {error.strerror}") from error
        self._timer = threading.Thread(target=self._flush_in_time, name="fusetui-recorder", daemon=True)
        self._timer.start()

    @property
    def segment(self) -> int:
        """Number of the segment being written."""
        return self._number

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
        following = Segment(self._place(self._number), self._encoder(), self._recording)
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
