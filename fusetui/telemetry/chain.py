"""Which files are one recording: the rotated segments of one run, or a folder that many runs went on with."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Protocol

from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.folder import folder_segments
from fusetui.telemetry.streamfile import StreamFile


def segment_path(first: Path, number: int) -> Path:
    """`cap.arrows`, `cap.1.arrows`, `cap.2.arrows`, …"""
    return first if number == 0 else first.with_name(f"{first.stem}.{number}{first.suffix}")


class Chain(Protocol):
    """The files in order, as far as they are there now.

    many_runs  a file that does not open, or is of another run, does not end it
    """

    many_runs: bool

    def first(self) -> Path:
        """Raises TelemetryError when there is none."""
        ...

    def following(self, path: Path) -> Path | None:
        """The file after `path`; None while there is none."""
        ...


class RunChain:
    """`cap.arrows` and the segments after it, all of one run."""

    many_runs = False

    def __init__(self, first: Path) -> None:
        self._first = first
        self._walked = [first]

    def first(self) -> Path:
        return self._first

    def following(self, path: Path) -> Path | None:
        number = self._walked.index(path) + 1
        found = segment_path(self._first, number)
        if not found.exists():
            return None
        if number == len(self._walked):
            self._walked.append(found)
        return found


class FolderChain:
    """Every segment in a recording folder, from the oldest that is still there."""

    many_runs = True

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ahead: deque[tuple[int, Path]] = deque()

    def first(self) -> Path:
        segments = folder_segments(self._folder)
        if not segments:
            raise TelemetryError(str(self._folder), "no recording in it", "has the recording begun?")
        return next(iter(segments.values()))

    def following(self, path: Path) -> Path | None:
        number = int(path.stem)
        while self._ahead and self._ahead[0][0] <= number:
            self._ahead.popleft()
        if not self._ahead:
            self._ahead.extend(item for item in folder_segments(self._folder).items() if item[0] > number)
        return self._ahead[0][1] if self._ahead else None


def joining_note(before: StreamFile, following: StreamFile) -> str:
    """What is remarkable about how one segment of a folder follows another, "" when nothing is."""
    missing = int(Path(following.where).stem) - int(Path(before.where).stem) - 1
    if missing:
        return f"{missing} segments are missing before {following.where}"
    ours, theirs = before.header, following.header
    names = [name for name in ("source", "host", "hardware", "build", "plans") if _differs(ours, theirs, name)]
    return f"from {following.where} on, of another {', '.join(names)}" if names else ""


def _differs(ours: object, theirs: object, name: str) -> bool:
    return bool(getattr(ours, name) != getattr(theirs, name))
