"""Open a capture that is in the contract's own form: Arrow IPC stream segments, Arrow IPC file, Parquet."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from fusetui.telemetry.arrowtrace import ArrowTrace
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.folder import folder_segments
from fusetui.telemetry.guard import DEFAULT_LIMITS, Limits
from fusetui.telemetry.source import Trace

PARQUET_MAGIC: Final = b"PAR1"


def is_contract(magic: bytes) -> bool:
    """The first 8 bytes of a file say that `open_trace` is for it (whether it then fits is another matter)."""
    return magic.startswith((b"\xff\xff\xff\xff", b"ARROW1\x00\x00", PARQUET_MAGIC, b"FEA1"))


def open_trace(path: Path, *, isolate: bool = False, limits: Limits = DEFAULT_LIMITS) -> Trace:
    """The capture at `path`, never written to. Following segments (`cap.1.arrows`, …) are part of it.

    A folder that `Reel` records into is one capture, from its oldest segment to its newest.

    isolate  parse in a child process, for a capture that is not trusted at all
    Errors: TelemetryError when it cannot be opened, is of another format, or does not fit the contract.
    """
    magic = _magic(path)
    if isolate:
        from fusetui.telemetry.isolate import isolated_trace

        return isolated_trace(path)
    if magic.startswith(PARQUET_MAGIC):
        from fusetui.telemetry.parquet import ParquetTrace

        return ParquetTrace(path, limits)
    return ArrowTrace(path, limits)


def _magic(path: Path) -> bytes:
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            if folder_segments(path):
                return b""
            raise TelemetryError(str(path), "a directory, not a capture", "name the capture files in it")
        if not stat.S_ISREG(status.st_mode):
            raise TelemetryError(str(path), "not a regular file", "use `fusetui live` for pipes and sockets")
        if status.st_size == 0:
            raise TelemetryError(str(path), "the file is empty", "has the recording begun?")
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise TelemetryError(str(path), f"cannot be opened: {error.strerror}") from error
    except ValueError as error:
        raise TelemetryError(str(path), f"not a path ({error})") from error
    try:
        return os.pread(fd, 8, 0)
    finally:
        os.close(fd)
