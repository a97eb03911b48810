"""Where a command records to: a file, or a folder that every start goes on with."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from fusetui.commands.limits import segment_limits
from fusetui.telemetry.reel import Reel
from fusetui.telemetry.source import Source
from fusetui.telemetry.tape import Tape


def is_folder(output: str) -> bool:
    """A folder that is there, or a name that is not a file's."""
    return output.endswith("/") or not Path(output).suffix or Path(output).is_dir()


class FolderTape(Tape):
    """A recording in a folder, for those who know only tapes. Raises TelemetryError when the folder cannot be had."""

    def __init__(self, folder: Path, source: Source) -> None:
        max_bytes, max_seconds = segment_limits([])
        self._reel = Reel(folder, source, max_bytes=max_bytes, max_seconds=max_seconds)

    @property
    def failed(self) -> str:
        """Why it does not write now; "" once it writes again."""
        return self._reel.failed or self._reel.problem

    @property
    def rows(self) -> int:
        return self._reel.rows

    def write(self, batch: pa.RecordBatch) -> None:
        self._reel.write(batch)

    def close(self) -> None:
        self._reel.close()

    def take_lines(self) -> list[str]:
        """What happened to it meanwhile."""
        return self._reel.take_lines()


def watched_tape(output: str, source: Source, *, overwrite: bool) -> Tape:
    """What `live --record` records to. Raises TelemetryError when something is in the way."""
    return FolderTape(Path(output), source) if is_folder(output) else Tape(Path(output), source, overwrite=overwrite)
