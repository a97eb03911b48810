"""A capture in Arrow IPC form as a Trace: one file, or the segments of a rotated recording."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

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


def segment_path(first: Path, number: int) -> Path:
    """`cap.arrows`, `cap.1.arrows`, `cap.2.arrows`, …"""
    return first if number == 0 else first.with_name(f"{first.stem}.{number}{first.suffix}")


class ArrowTrace:
    """Batches of IPC stream segments or of one IPC file; see `fusetui.telemetry.source.Trace`. Thread-safe."""

    def __init__(self, path: Path, limits: Limits) -> None:
        """Raises TelemetryError when the first segment is not a capture."""
        self._path = path
        self._limits = limits
        self._lock = threading.RLock()
        self._segments = [StreamFile(path, limits)]
        self._sidecars: list[dict[int, Entry]] = []
        self._places: list[tuple[int, BatchAt]] = []
        self._known = [0]
        self._times: list[tuple[int, int, int]] = []
        self._bad: dict[int, str] = {}
        self._dropped: dict[int, int] = {}
        self._segment_note = ""
        self._active = 0
        self.header = self._segments[0].header
        self._recording = self._segments[0].recording
        self.refresh()

    @property
    def complete(self) -> bool:
        with self._lock:
            last = self._segments[-1]
            # A recording creates its next segment before it ends the one before, and refresh() would have joined it.
            return last.ended or bool(last.damage) or last.age_s >= GROWING_S

    @property
    def notes(self) -> Sequence[str]:
        with self._lock:
            lines = [line for segment in self._segments if (line := _ending(segment))]
            if self._segment_note:
                lines.append(self._segment_note)
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

    def _collect(self) -> None:
        number = len(self._segments) - 1
        batches = self._segments[number].batches
        self._places += [(number, batch) for batch in batches[self._known[number] :]]
        self._known[number] = len(batches)

    def _next_segment(self) -> bool:
        last = self._segments[-1]
        if last.is_file or self._segment_note:
            return False
        path = segment_path(self._path, len(self._segments))
        if not path.exists():
            return False
        # The writer made the next one, so this one is whole now.
        last.scan()
        self._collect()
        try:
            following = StreamFile(path, self._limits)
        except TelemetryError as error:
            if path.stat().st_size > 0:
                self._segment_note = f"not joined: {error}"
            return False
        if following.recording != self._recording:
            self._segment_note = f"not joined: {path.name} belongs to another recording"
            following.release()
            return False
        if len(self._segments) - 1 != self._active:
            last.release()
        self._segments.append(following)
        self._known.append(0)
        return True

    def _locate(self, number: int) -> tuple[int, int, int]:
        """First and last event time and rows of a batch: from the sidecar when it agrees, else by reading it."""
        segment, place = self._places[number]
        while len(self._sidecars) <= segment:
            path = sidecar_path(segment_path(self._path, len(self._sidecars)))
            self._sidecars.append(read_sidecar(path, self._recording) if self._recording else {})
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
