"""A text log followed while a server writes it; what its lines mean is told by a reader from outside this package.

Times of a log are often local and without a year. They are placed by when the file was written: the last line at that
moment, to a quarter of an hour, which is what clocks of different zones differ by.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fusetui.sources.log_follow_tail import Tail
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import SCHEMA
from fusetui.telemetry.source import SourceHealth, State, Transport
from fusetui.telemetry.text import safe_text

_LOOK_S: Final = 0.1
_HEAD_BYTES: Final = 1 << 20
_ZONE_NS: Final = 900 * 10**9
_FAR_NS: Final = 1200 * 10**9
_TIMES: Final = ("enqueue_ns", "start_ns", "end_ns")
_AT_ONCE: Final = 8


class LineReader(Protocol):
    """What the lines of one format mean; see the fields of `fusetui.importers.follow.LogLines`."""

    @property
    def name(self) -> str: ...
    @property
    def local(self) -> bool: ...
    @property
    def bad(self) -> int: ...
    def header(self) -> Header: ...
    def take(self, lines: bytes) -> list[pa.RecordBatch]: ...


class LogSource:
    """The rows of a log, from its last megabytes on.

    recognise  the reader for a log with these whole lines, None when they are not known (yet)
    Raises TelemetryError when the file cannot be opened.
    """

    def __init__(
        self,
        path: str,
        recognise: Callable[[bytes], LineReader | None],
        *,
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self.header = Header(source="log")
        self.generation = 0
        self.transport: Transport | None = None
        self._recognise, self._wall_ns = recognise, wall_ns
        self._reader: LineReader | None = None
        self._head = b""
        self._shift_ns: int | None = None
        self._rows = self._batches = 0
        self._newest_ns: int | None = None
        self._problem = ""
        self._closed = threading.Event()
        try:
            self._tail = Tail(path)
        except (OSError, ValueError) as error:
            raise TelemetryError(path, f"cannot be read ({error})", "name a log that is there") from None

    def poll(self, timeout_s: float) -> Sequence[pa.RecordBatch]:
        until_s = time.monotonic() + timeout_s
        while not self._closed.is_set():
            if batches := self._look():
                self._rows += sum(batch.num_rows for batch in batches)
                self._batches += len(batches)
                return batches
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                break
            self._closed.wait(min(left_s, _LOOK_S))
        return ()

    def now_ns(self) -> int | None:
        return None if self._newest_ns is None else self._wall_ns()

    def health(self) -> SourceHealth:
        tail, reader = self._tail, self._reader
        turns = [f"{n} times {what}" for n, what in ((tail.rotated, "rotated"), (tail.cut, "emptied")) if n]
        waiting = "no line that is known yet: vLLM and SGLang logs are followed" if tail.bytes_in else "nothing in it"
        return SourceHealth(
            name=safe_text(tail.path, 200),
            state=self._state(),
            rows=self._rows,
            batches=self._batches,
            bad_rows=(reader.bad if reader else 0) + tail.too_long,
            bytes_in=tail.bytes_in,
            lag_ns=None if self._newest_ns is None else max(0, self._wall_ns() - self._newest_ns),
            detail=", ".join([reader.name if reader else waiting, *turns]),
            last_error=self._problem,
            missing=("requests and kernels: a log has averages and counts",) if reader and reader.local else (),
        )

    def close(self) -> None:
        self._closed.set()
        self._tail.close()

    def _state(self) -> State:
        if self._closed.is_set():
            return "ended"
        if self._problem:
            return "reconnecting"
        return "waiting" if self._newest_ns is None else "live"

    def _look(self) -> list[pa.RecordBatch]:
        """What is new; of a backlog, all of it at once: only its last line tells when the others were written."""
        found: list[pa.RecordBatch] = []
        try:
            for _ in range(_AT_ONCE):
                lines = self._tail.read()
                found += self._taken(lines) if lines else []
                if not lines and not self._tail.in_backlog:
                    break
            self._problem = ""
            return self._placed(found) if found else []
        except (OSError, ValueError) as error:
            if not self._closed.is_set():
                self._problem = safe_text(f"{self._tail.path}: {error}", 300)
            return []

    def _taken(self, lines: bytes) -> list[pa.RecordBatch]:
        if self._reader is None:
            self._head = (self._head + lines)[-_HEAD_BYTES:]
            self._reader = self._recognise(self._head)
            if self._reader is None:
                return []
            lines, self._head = self._head, b""
        batches = self._reader.take(lines)
        self.header = self._reader.header()
        return batches

    def _placed(self, batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
        assert self._reader is not None
        newest_ns = max(pc.max(batch["end_ns"]).as_py() for batch in batches)
        if self._reader.local:
            written_ns = self._tail.written_ns()
            if self._shift_ns is None or abs(written_ns - newest_ns - self._shift_ns) > _FAR_NS:
                self._shift_ns = round((written_ns - newest_ns) / _ZONE_NS) * _ZONE_NS
            batches = [_moved(batch, self._shift_ns) for batch in batches]
            newest_ns += self._shift_ns
        self._newest_ns = max(newest_ns, self._newest_ns or 0)
        return batches


def _moved(batch: pa.RecordBatch, by_ns: int) -> pa.RecordBatch:
    moved = {name: pc.add(batch[name], pa.scalar(np.int64(by_ns))) for name in _TIMES}
    return pa.RecordBatch.from_arrays([moved.get(name, batch[name]) for name in SCHEMA.names], schema=SCHEMA)
