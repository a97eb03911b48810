"""A folder of segments that one recorder after another goes on with: `000000.arrows`, `000001.arrows`, …

Numbers only grow, also over restarts; retention takes the oldest away, so they need not begin at 0.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from pathlib import Path
from typing import Final

from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.framing import END_OF_STREAM
from fusetui.telemetry.guard import DEFAULT_LIMITS
from fusetui.telemetry.sidecar import sidecar_path
from fusetui.telemetry.streamfile import StreamFile

LOCK_NAME: Final = ".fusetui.lock"
_NAME: Final = re.compile(r"(\d{6,15})\.arrows\Z")
_UNSURE: Final = 2
"""Segments that a kill can leave open: the next one is begun before the one before is ended."""

_MAX_TORN_SCHEMA: Final = 2 << 20
"""A header is at most 1 MiB; what is larger and does not open is something else, and stays."""


def folder_segment(folder: Path, number: int) -> Path:
    """The file of segment `number`."""
    return folder / f"{number:06d}.arrows"


def folder_segments(folder: Path) -> dict[int, Path]:
    """Number -> file of the segments there, in order; empty when the folder is no recording or cannot be read."""
    try:
        names = os.listdir(folder)
    except OSError:
        return {}
    found = {int(match[1]): folder / name for name in names if (match := _NAME.match(name))}
    return dict(sorted(found.items()))


class FolderLock:
    """One recorder at a time. The system lets go of it when the process ends, however it ends."""

    def __init__(self, folder: Path) -> None:
        """Make the folder (its parent must be there) and lock it. Raises TelemetryError."""
        self._fd = -1
        path = folder / LOCK_NAME
        try:
            folder.mkdir(exist_ok=True)
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise TelemetryError(str(folder), f"cannot be recorded into: {error.strerror}") from None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(fd, 20, 0).decode("ascii", "replace").strip()
            os.close(fd)
            who = f"the recorder with process id {holder}" if holder.isdigit() else "another recorder"
            raise TelemetryError(str(folder), f"{who} records there", "stop it, or choose another folder") from None
        self._fd = fd
        with contextlib.suppress(OSError):  # The name of the holder is a help, the lock itself is what counts.
            os.ftruncate(fd, 0)
            os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)

    def in_place(self) -> bool:
        """Whether the locked file is still there: the folder may have been removed, and made anew by another."""
        return self._fd >= 0 and os.fstat(self._fd).st_nlink > 0

    def release(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def salvage(folder: Path) -> list[str]:
    """End the segments that a killed recorder left open, after their last whole batch; a line about each.

    One that has not even a whole schema holds no row and is removed. Damage in the middle is left as it is, and so is
    all where nothing can be written: a reader copes with a segment that was not ended.
    """
    lines = []
    for path in list(folder_segments(folder).values())[-_UNSURE:]:
        try:
            if line := _salvage_one(path):
                lines.append(line)
        except OSError as error:
            lines.append(f"{path.name}: was not ended, and cannot be now: {error.strerror}")
    return lines


def _salvage_one(path: Path) -> str:
    try:
        segment = StreamFile(path, DEFAULT_LIMITS)
    except TelemetryError as error:
        if path.stat().st_size > _MAX_TORN_SCHEMA:
            return f"left as it is: {error}"
        path.unlink()
        sidecar_path(path).unlink(missing_ok=True)
        return f"{path.name}: nothing whole in it, removed"
    cut = segment.size - segment.position
    ended, damage = segment.ended, segment.damage
    segment.release()
    if ended or damage:
        return f"{path.name}: damaged, left as it is: {damage}" if damage else ""
    with path.open("r+b") as file:
        file.truncate(segment.position)
        file.seek(segment.position)
        file.write(END_OF_STREAM)
        file.flush()
        os.fsync(file.fileno())
    return f"{path.name}: was not ended; kept up to its last whole batch, {cut:,} bytes cut"
