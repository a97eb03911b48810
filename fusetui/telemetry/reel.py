"""A recording for weeks: it goes on in its folder after a restart, and after a disk that was full for a while."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Final, Literal

import pyarrow as pa

from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.folder import FolderLock, folder_segment, folder_segments, salvage
from fusetui.telemetry.guard import DEFAULT_LIMITS
from fusetui.telemetry.recording import Recorder
from fusetui.telemetry.retention import Keep, prune
from fusetui.telemetry.schema import MARK, build_batch
from fusetui.telemetry.sidecar import sidecar_path
from fusetui.telemetry.source import Source
from fusetui.telemetry.streamfile import StreamFile

RESUMED: Final = "recording resumed"
"""Name of the mark at the first moment that is recorded again."""

_RETRY_S: Final = (1.0, 5.0, 30.0)
_PRUNE_EVERY_S: Final = 60.0

ReelState = Literal["waiting", "recording", "stopped", "ended"]


class Reel:
    """Where the batches of a source are recorded, run after run; one thread uses it.

    While nothing can be written (disk full, folder gone, read-only) what comes is counted in `lost` and thrown away,
    and a new segment is tried after 1, 5 and then every 30 s. Nothing raises once it is made.

    rows     rows of this run handed to the operating system
    lost     rows of this run that could not be written
    failed   why it can never go on, one line; "" while it may
    problem  why it does not write now, one line; "" while all is well
    gaps     times it went on after it could not write
    removed  segments that retention took away
    lines    what happened since `take_lines` was last called
    """

    def __init__(
        self, folder: Path, source: Source, *, max_bytes: int, max_seconds: float, keep: Keep | None = None
    ) -> None:
        """Lock the folder and end what a killed recorder left open. Raises TelemetryError."""
        self.failed = self.problem = ""
        self.lost = self.gaps = self.removed = 0
        self._folder = folder
        self._source = source
        self._max_bytes = max_bytes
        self._max_seconds = max_seconds
        self._keep = keep or Keep()
        self._recorder: Recorder | None = None
        self._written = self._handed = self._marks = 0
        self._tries = 0
        self._retry_at = self._prune_at = 0.0
        self._pruned_to = -1
        self._closed = False
        self._lock = FolderLock(folder)
        self._lines = salvage(folder)
        self._resuming = bool(folder_segments(folder))

    @property
    def rows(self) -> int:
        return self._written + self._rows_of_recorder()

    @property
    def state(self) -> ReelState:
        if self._closed:
            return "ended"
        if self.problem or self.failed:
            return "stopped"
        return "waiting" if self._recorder is None else "recording"

    @property
    def segment(self) -> Path | None:
        """The file being written."""
        return None if self._recorder is None else folder_segment(self._folder, self._recorder.segment)

    def take_lines(self) -> list[str]:
        lines, self._lines = self._lines, []
        return lines

    def write(self, batch: pa.RecordBatch) -> None:
        """Take a canonical batch."""
        if self._closed or batch.num_rows == 0:
            return
        self._look_after()
        self._begin()
        if self._recorder is None:
            self.lost += batch.num_rows
            return
        self._handed += batch.num_rows
        self._recorder.write(batch)
        self._check()

    def tick(self) -> None:
        """Look after it while nothing comes: a failed write of the last rows, retention by age."""
        if not self._closed:
            self._check()
            self._look_after()

    def close(self) -> None:
        """Write what is pending and the end, and let the folder go."""
        if self._closed:
            return
        if self._recorder is not None:
            self._recorder.close()
            self._check()
            self._look_after()
        self._give_up_recorder()
        self._closed = True
        self._lock.release()

    # --- inside -----------------------------------------------------------------------------------------------

    def _check(self) -> None:
        """Notice that the recorder stopped, or that it writes again."""
        if self._recorder is None:
            return
        if reason := self._recorder.failed:
            self._give_up_recorder()
            self._stop(reason)
        elif self.problem and self._rows_of_recorder():
            # A new file alone proves nothing: on a full disk its few bytes may still find room.
            self._lines.append(f"{self._folder}: recording again; {self.lost:,} events were not recorded so far")
            self.gaps += 1
            self.problem, self._tries = "", 0

    def _give_up_recorder(self) -> None:
        if self._recorder is None:
            return
        self._recorder.close()
        if self._recorder.failed and not self._recorder.rows:
            self._remove_empty(folder_segment(self._folder, self._recorder.segment))
        self._written += self._rows_of_recorder()
        self.lost += self._handed - self._rows_of_recorder()
        self._recorder, self._handed, self._marks = None, 0, 0

    def _remove_empty(self, path: Path) -> None:
        """An outage of a week must not leave a file for every try."""
        try:
            path.unlink(missing_ok=True)
            sidecar_path(path).unlink(missing_ok=True)
        except OSError as error:
            self._lines.append(f"{path}: an empty segment cannot be removed: {error.strerror}")

    def _rows_of_recorder(self) -> int:
        """Rows of the source, without the mark of ours that comes first."""
        return max(0, self._recorder.rows - self._marks) if self._recorder is not None else 0

    def _stop(self, reason: str) -> None:
        if not self.problem:
            self._lines.append(f"{reason}; what comes is counted and thrown away until it can be written again")
        self.problem = reason
        self._retry_at = time.monotonic() + _RETRY_S[min(self._tries, len(_RETRY_S) - 1)]
        self._tries += 1

    def _begin(self) -> None:
        if self._recorder is not None or self.failed or time.monotonic() < self._retry_at:
            return
        try:
            if not self._lock.in_place():
                self._lock.release()
                self._lock = FolderLock(self._folder)
            earlier = folder_segments(self._folder)
            self._fits(earlier)
            if self.failed:
                return
            self._recorder = Recorder(
                self._folder,
                self._source.header,
                max_bytes=self._max_bytes,
                max_seconds=self._max_seconds,
                place=partial(folder_segment, self._folder),
                first=max(earlier, default=-1) + 1,
            )
        except TelemetryError as error:
            self._stop(str(error))
            return
        if self._resuming and self._source.header.clock == "epoch":
            self._marks = 1
            self._recorder.write(build_batch(_mark(), 1))
        self._resuming = True

    def _fits(self, earlier: dict[int, Path]) -> None:
        """Times since the beginning of a trace mean nothing behind those of another trace."""
        if not earlier:
            return
        try:
            last = StreamFile(earlier[max(earlier)], DEFAULT_LIMITS)
        except TelemetryError:
            return
        clocks = (last.header.clock, self._source.header.clock)
        last.release()
        if clocks != ("epoch", "epoch"):
            self.failed = str(
                TelemetryError(str(self._folder), "its times are not of one clock with these", "use another folder")
            )

    def _look_after(self) -> None:
        writing = self._recorder.segment if self._recorder is not None else -1
        now = time.monotonic()
        if self._keep.everything or writing < 0 or (writing == self._pruned_to and now < self._prune_at):
            return
        self._pruned_to, self._prune_at = writing, now + _PRUNE_EVERY_S
        try:
            self.removed += prune(folder_segments(self._folder), writing, self._keep)
        except OSError as error:
            self._lines.append(f"{self._folder}: old segments cannot be removed: {error.strerror}")


def _mark() -> dict[str, object]:
    now_ns = time.time_ns()
    return {"kind": MARK, "name": RESUMED, "start_ns": now_ns, "end_ns": now_ns}
