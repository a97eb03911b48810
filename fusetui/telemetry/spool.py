"""A trace fed from an iterator in the background: in memory up to a budget, then in an unlinked temporary file."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import IO, Final

import numpy as np
import pyarrow as pa

from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.eventtime import event_time_ns
from fusetui.telemetry.header import Header
from fusetui.telemetry.source import BatchIndex
from fusetui.telemetry.writer import Encoder

DEFAULT_MEMORY_BYTES: Final = 256 << 20
_FEED_ERRORS: Final = (pa.ArrowException, OSError, ValueError, MemoryError)


class SpooledTrace:
    """A Trace that grows while `batches` is drained by a daemon thread; see `fusetui.telemetry.source.Trace`.

    error  what the iterator raised before it gave any batch; after some batches it is only in `notes`
    """

    def __init__(
        self,
        batches: Iterable[pa.RecordBatch] | Callable[[], Iterable[pa.RecordBatch]],
        header: Header,
        *,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
        notes: Sequence[str] | Callable[[], Sequence[str]] = (),
        where: str = "import",
        cancel: Callable[[], None] | None = None,
    ) -> None:
        """batches  canonical batches, or a function that returns them, called on the thread; empty ones are left out
        notes    lines to show, or a function that tells them now; `note` adds more
        where    names the input in errors
        cancel   called by `close` to wake an iterator that waits
        """
        self.header = header
        self.complete = False
        self.error: TelemetryError | None = None
        self._batches = batches
        self._where = where
        self._memory_left = memory_bytes
        self._given_notes = notes
        self._notes: list[str] = []
        self._cancel = cancel
        self._kept: list[pa.RecordBatch | tuple[int, int]] = []
        self._times: list[tuple[int, int, int]] = []
        self._file: IO[bytes] | None = None
        self._file_end = 0
        self._seen = 0
        self._stop = threading.Event()
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._fill, name="fusetui-spool", daemon=True)
        self._thread.start()

    @property
    def notes(self) -> Sequence[str]:
        given = self._given_notes() if callable(self._given_notes) else self._given_notes
        with self._changed:
            return (*given, *self._notes)

    def note(self, line: str) -> None:
        """Add a line to `notes`; any thread may."""
        with self._changed:
            self._notes.append(line)

    def wait(self, timeout_s: float) -> bool:
        """Wait for the first batch or the end; False when neither came. Raises TelemetryError if it failed at once."""
        with self._changed:
            came = self._changed.wait_for(lambda: bool(self._kept) or self.complete, timeout_s)
        if self.error is not None:
            raise self.error
        return came

    def wait_complete(self, timeout_s: float) -> bool:
        """Wait for the end; False when it did not come in time. Raises TelemetryError as `wait` does."""
        with self._changed:
            came = self._changed.wait_for(lambda: self.complete, timeout_s)
        if self.error is not None:
            raise self.error
        return came

    def index(self) -> BatchIndex:
        with self._changed:
            table = np.array(self._times, np.int64).reshape(len(self._times), 3)
        return BatchIndex(table[:, 0].copy(), table[:, 1].copy(), table[:, 2].copy())

    def read(self, number: int) -> pa.RecordBatch:
        with self._changed:
            if not 0 <= number < len(self._kept):
                raise TelemetryError(f"{self._where} batch {number}", f"there are {len(self._kept)} batches")
            place = self._kept[number]
            file = self._file
        if not isinstance(place, tuple):
            return place
        if file is None:
            raise TelemetryError(self._where, "the trace is closed")
        try:
            data = os.pread(file.fileno(), place[1], place[0])
            return pa.ipc.open_stream(pa.py_buffer(data)).read_next_batch()
        except _FEED_ERRORS as error:
            raise TelemetryError(f"{self._where} batch {number}", f"cannot read back ({error})") from None

    def refresh(self) -> bool:
        with self._changed:
            grown = len(self._kept) > self._seen
            self._seen = len(self._kept)
        return grown

    def close(self) -> None:
        """Stop the thread, at the next batch at the latest, and forget everything."""
        self._stop.set()
        if self._cancel is not None:
            self._cancel()
        self._thread.join(timeout=5.0)
        with self._changed:
            if self._file is not None:
                self._file.close()
                self._file = None
            self._kept.clear()
            self._times.clear()

    def _fill(self) -> None:
        problem: TelemetryError | None = TelemetryError(self._where, "reading stopped unexpectedly")
        try:
            batches = self._batches() if callable(self._batches) else self._batches
            for batch in batches:
                if self._stop.is_set():
                    break
                if batch.num_rows:
                    self._append(batch)
            problem = None
        except TelemetryError as error:
            problem = error
        except _FEED_ERRORS as error:
            problem = TelemetryError(self._where, str(error) or type(error).__name__)
        finally:
            with self._changed:
                if problem is not None and self._kept:
                    self._notes.append(f"only in part: {problem}")
                elif problem is not None:
                    self.error = problem
                self.complete = True
                self._changed.notify_all()

    def _append(self, batch: pa.RecordBatch) -> None:
        times = event_time_ns(batch)
        place: pa.RecordBatch | tuple[int, int] = batch
        if batch.nbytes <= self._memory_left:
            self._memory_left -= batch.nbytes
        else:
            self._memory_left = 0
            place = self._spill(batch)
        with self._changed:
            self._kept.append(place)
            self._times.append((int(times.min()), int(times.max()), batch.num_rows))
            self._changed.notify_all()

    def _spill(self, batch: pa.RecordBatch) -> tuple[int, int]:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="fusetui-")  # noqa: SIM115  closed in close()
        encoder = Encoder(Header(), "lz4")
        data = encoder.start() + encoder.encode(batch) + encoder.end()
        view = memoryview(data)
        offset = self._file_end
        while view:
            written = os.pwrite(self._file.fileno(), view, self._file_end)
            self._file_end += written
            view = view[written:]
        return offset, len(data)
