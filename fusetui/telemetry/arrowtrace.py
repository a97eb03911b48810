"""A capture in Arrow IPC form as a Trace: one file, or the segments of a rotated recording, also of many runs."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from fusetui.telemetry.chain import Chain, FolderChain, RunChain, joining_note
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.eventtime import event_time_ns
from fusetui.telemetry.gate import dropped_rows_note
from fusetui.telemetry.guard import Limits
from fusetui.telemetry.sidecar import Entry, read_sidecar, sidecar_path
from fusetui.telemetry.source import BatchIndex
from fusetui.telemetry.streamfile import BatchAt, StreamFile

GROWING_S: Final = 10.0
"""A stream without its end marker counts as growing while its last write is no older than this."""

_MAX_NOTED: Final = 20
_GAP_NS: Final = 1_000_000_000


class ArrowTrace:
    """Batches of IPC stream segments or of one IPC file; see `fusetui.telemetry.source.Trace`. Thread-safe."""

    def __init__(self, path: Path, limits: Limits) -> None:
        """Raises TelemetryError when the first segment is not a capture."""
        self._path = path
        self._limits = limits
        self._lock = threading.RLock()
        self._segment_notes: list[str] = []
        self._over = False
        self._chain: Chain = FolderChain(path) if path.is_dir() else RunChain(path)
        first, segment = self._first_segment()
        self._paths = [first]
        self._segments = [segment]
        self._sidecars: list[dict[int, Entry]] = []
        self._places: list[tuple[int, BatchAt]] = []
        self._known = [0]
        self._times: list[tuple[int, int, int]] = []
        self._bad: dict[int, str] = {}
        self._dropped: dict[int, int] = {}
        self._active = 0
        self.header = self._segments[0].header
        self._recording = self._segments[0].recording
        self._walked = first
        self.refresh()

    @property
    def complete(self) -> bool:
        with self._lock:
            last = self._segments[-1]
            if self._chain.many_runs:
                return last.age_s >= GROWING_S
            # A recording creates its next segment before it ends the one before, and refresh() would have joined it.
            return last.ended or bool(last.damage) or last.age_s >= GROWING_S

    @property
    def notes(self) -> Sequence[str]:
        with self._lock:
            lines = [line for segment in self._segments if (line := _ending(segment))]
            lines += self._segment_notes[:_MAX_NOTED]
            if self._dropped:
                lines.append(dropped_rows_note(self._path.name, sum(self._dropped.values())))
            bad = list(self._bad.values())
            lines += bad[:_MAX_NOTED]
            if len(bad) > _MAX_NOTED:
                lines.append(f"{len(bad) - _MAX_NOTED} more batches are damaged")
            return lines

    def index(self) -> BatchIndex:
        with self._lock:
            while len(self._times) < len(self._places):
                self._times.append(self._locate(len(self._times)))
                self._note_gap(len(self._times) - 1)
            table = np.array(self._times, np.int64).reshape(len(self._times), 3)
        return BatchIndex(table[:, 0].copy(), table[:, 1].copy(), table[:, 2].copy())

    def read(self, number: int) -> pa.RecordBatch:
        with self._lock:
            if not 0 <= number < len(self._places):
                raise TelemetryError(f"{self._path.name} batch {number}", f"there are {len(self._places)} batches")
            segment, place = self._places[number]
            if segment != self._active:
                self._segments[self._active].release()
                self._active = segment
            file = self._segments[segment]
            try:
                batch, dropped = file.read(place, f"{file.where} batch {number}")
            except TelemetryError as error:
                self._bad[number] = str(error)
                raise
            if dropped:
                self._dropped[number] = dropped
            return batch

    def refresh(self) -> bool:
        with self._lock:
            before = len(self._places)
            self._segments[-1].scan()
            self._collect()
            # Its index has grown with it.
            del self._sidecars[len(self._segments) - 1 :]
            while self._next_segment():
                self._collect()
            return len(self._places) > before

    def close(self) -> None:
        with self._lock:
            for segment in self._segments:
                segment.release()

    def _first_segment(self) -> tuple[Path, StreamFile]:
        path = self._chain.first()
        while True:
            try:
                return path, StreamFile(path, self._limits)
            except TelemetryError as error:
                later = self._chain.following(path) if self._chain.many_runs else None
                if later is None:
                    raise
                self._segment_notes.append(f"not joined: {error}")
                path = later

    def _collect(self) -> None:
        number = len(self._segments) - 1
        batches = self._segments[number].batches
        self._places += [(number, batch) for batch in batches[self._known[number] :]]
        self._known[number] = len(batches)

    def _next_segment(self) -> bool:
        """Join the next one; False when there is none yet."""
        last = self._segments[-1]
        if last.is_file or self._over:
            return False
        path = self._chain.following(self._walked)
        if path is None:
            return False
        # The writer made the next one, so this one is whole now.
        last.scan()
        self._collect()
        try:
            following = StreamFile(path, self._limits)
        except TelemetryError as error:
            return self._not_joined(path, str(error))
        if not self._chain.many_runs and following.recording != self._recording:
            following.release()
            return self._not_joined(path, f"{path.name} belongs to another recording")
        if self._chain.many_runs and (note := joining_note(last, following)):
            self._segment_notes.append(note)
        if len(self._segments) - 1 != self._active:
            last.release()
        self._segments.append(following)
        self._paths.append(path)
        self._walked = path
        self._known.append(0)
        return True

    def _not_joined(self, path: Path, why: str) -> bool:
        """Leave a segment out; True when there is one behind it to look at."""
        if not self._chain.many_runs:
            if path.stat().st_size > 0:
                self._segment_notes.append(f"not joined: {why}")
                self._over = True
            return False
        if self._chain.following(path) is None:
            # Perhaps it has only just been made.
            return False
        self._segment_notes.append(f"not joined: {why}")
        self._walked = path
        return True

    def _note_gap(self, number: int) -> None:
        """Say how long nobody recorded before a run that went on in the folder."""
        segment, before = self._places[number][0], self._places[max(number - 1, 0)][0]
        if segment == before or self._segments[segment].recording == self._segments[before].recording:
            return
        gap_ns = self._times[number][0] - self._times[number - 1][1]
        if gap_ns >= _GAP_NS:
            self._segment_notes.append(f"nothing recorded for {gap_ns / 1e9:,.1f} s before {self._paths[segment].name}")

    def _locate(self, number: int) -> tuple[int, int, int]:
        """First and last event time and rows of a batch: from the sidecar when it agrees, else by reading it."""
        segment, place = self._places[number]
        while len(self._sidecars) <= segment:
            at = len(self._sidecars)
            recording = self._segments[at].recording
            self._sidecars.append(read_sidecar(sidecar_path(self._paths[at]), recording) if recording else {})
        entry = self._sidecars[segment].get(place.start)
        if entry is not None and entry[0] == place.rows and entry[1] <= entry[2]:
            return entry[1], entry[2], place.rows
        before = self._times[-1][1] if self._times else 0
        try:
            times = event_time_ns(self.read(number))
        except TelemetryError:
            return before, before, 0
        if len(times) == 0:
            return before, before, 0
        return int(times.min()), int(times.max()), len(times)


def _ending(segment: StreamFile) -> str:
    cut = segment.size - segment.position
    if segment.damage:
        return f"{segment.where}: damaged at byte {segment.position}, {cut} bytes lost: {segment.damage}"
    if segment.ended and (segment.has_footer or not segment.is_file):
        return ""
    if segment.is_file:
        return f"{segment.where}: an Arrow file without its footer, read as far as it goes, {cut} bytes cut"
    return f"{segment.where}: ends without end-of-stream marker, {cut} bytes cut"
