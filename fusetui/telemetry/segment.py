"""One segment of a recording while it is written: an Arrow IPC stream, with its index beside it."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pyarrow as pa

from fusetui.telemetry.eventtime import event_time_ns
from fusetui.telemetry.sidecar import MAGIC, encode_entry, sidecar_path
from fusetui.telemetry.writer import Encoder


class Segment:
    """One file being written, with its index. Its methods raise OSError."""

    def __init__(self, path: Path, encoder: Encoder, recording: bytes) -> None:
        self.path = path
        self.bytes = 0
        self._encoder = encoder
        self._began = time.monotonic()
        # O_APPEND: after cutting half a message off, the end marker must not land where that message ended.
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._index = _open_index(path)
        try:
            self._index_write(MAGIC + recording)
            self._append(encoder.start())
        except OSError:
            # One without a whole schema opens nowhere, and a service that tries again must not leave a row of them.
            self._close()
            path.unlink(missing_ok=True)
            sidecar_path(path).unlink(missing_ok=True)
            raise

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
            self._close()

    def _close(self) -> None:
        os.close(self._fd)
        if self._index >= 0:
            os.close(self._index)
            self._index = -1

    def _append(self, data: bytes) -> None:
        if os.fstat(self._fd).st_nlink == 0:
            # Writing on would succeed, into a file that nobody can open again.
            raise FileNotFoundError(errno.ENOENT, "the file was removed")
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
