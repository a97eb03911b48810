"""Request logs of SGLang (`--export-metrics-to-file`, JSON lines): what the server says of each finished request.

Arrival and end are when the request was received and finished, or what `e2e_latency` makes of the one that is told. It
starts with its first forward pass, or `queue_time` after it came; a log with neither says nothing of when service
began, and start is arrival. Prompts stand in these files in full: they are not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fusetui.importers.bytestream import ByteStream
from fusetui.importers.capture import Capture
from fusetui.importers.follow import LogLines
from fusetui.importers.lines import line_chunks
from fusetui.importers.requestlog import shapes
from fusetui.importers.rows import Rows
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import REQUEST, build_batch

NAME: Final = "SGLang request log"

_ROW: Final = np.dtype(
    [("arrival", "i8"), ("start", "i8"), ("end", "i8"), ("prompt", "i8"), ("output", "i8"), ("number", "i8")]
)
_BATCH_ROWS: Final = 1 << 16
_FOLLOWED_BYTES: Final = 4 << 20
_MOST_TOKENS: Final = 1 << 31
_FARTHEST_S: Final = 4e9


class _Request(msgspec.Struct, gc=False):
    e2e_latency: float
    request_received_ts: float | None = None
    request_finished_ts: float | None = None
    response_sent_to_client_ts: float | None = None
    forward_entry_time: float | None = None
    queue_time: float | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def times_s(self) -> tuple[float, float, float] | None:
        """Arrival, start and end; None when they cannot be told."""
        arrival, end = self.request_received_ts, self.request_finished_ts
        if end is None:
            end = self.response_sent_to_client_ts if arrival is None else arrival + self.e2e_latency
        if end is None or not 0 <= self.e2e_latency <= end < _FARTHEST_S:
            return None
        arrival = end - self.e2e_latency if arrival is None else arrival
        if not 0 <= arrival <= end:
            return None
        start = self.forward_entry_time
        if start is None or not arrival <= start <= end:
            start = arrival + (self.queue_time or 0.0)
        return arrival, min(max(start, arrival), end), end

    @property
    def tells_start(self) -> bool:
        """Whether it says when it was first scheduled."""
        return self.queue_time is not None or self.forward_entry_time is not None


def sniff(head: bytes) -> bool:
    """A JSON line with the parameters of a request and its latency."""
    first = head.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")[0]
    return first.startswith(b'{"request_parameters"') and b'"e2e_latency"' in first


def follow() -> LogLines:
    """A log that grows."""
    return _Following()


def read(path: Path, memory_bytes: int) -> Capture:
    """Open a log. Raises TelemetryError when no request in it has times."""
    log = _Log(memory_bytes)
    with ByteStream(path) as stream:
        for chunk in line_chunks(stream):
            log.take(chunk)
        notes = [stream.damage] if stream.damage else []
    if not len(log.rows):
        raise TelemetryError(str(path), f"{NAME} without one request that has times")
    notes += [f"requests left out: no times, or unreadable: {log.bad:,}"] if log.bad else []
    if log.queued < len(log.rows):
        missing = len(log.rows) - log.queued
        notes.append(
            f"requests that do not say when they were scheduled: {missing:,}; --enable-metrics would have recorded it"
        )
    batches = _batches(log.rows.table())
    return Capture(Header(source="sglang", clock="epoch", build={"server": "SGLang"}), batches, notes)


class _Log:
    """Requests of one log while it is read."""

    def __init__(self, memory_bytes: int) -> None:
        self.rows = Rows(_ROW, memory_bytes // 2)
        self.bad = self.queued = 0
        self._decoder = msgspec.json.Decoder(_Request)

    def take(self, chunk: bytes) -> None:
        found: list[tuple[float, float, float, int, int]] = []
        for line in filter(None, map(bytes.strip, chunk.split(b"\n"))):
            try:
                request = self._decoder.decode(line)
            except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
                self.bad += 1
                continue
            times = request.times_s()
            tokens = request.prompt_tokens, request.completion_tokens
            if times is None or not all(0 <= count < _MOST_TOKENS for count in tokens):
                self.bad += 1
                continue
            self.queued += request.tells_start
            found.append((*times, *tokens))
        if not found:
            return
        times_ns = np.round(np.array([row[:3] for row in found]) * 1e9).astype(np.int64)
        counts = np.array([row[3:] for row in found], np.int64)
        number = len(self.rows) + np.arange(len(found))
        self.rows.add(
            arrival=times_ns[:, 0], start=times_ns[:, 1], end=times_ns[:, 2], prompt=counts[:, 0], output=counts[:, 1],
            number=number,
        )  # fmt: skip


class _Following:
    """Requests of a log that grows, numbered on."""

    name, local = NAME, False

    def __init__(self) -> None:
        self.bad = self._requests = 0

    def header(self) -> Header:
        return Header(source="sglang", build={"server": "SGLang"})

    def take(self, lines: bytes) -> list[pa.RecordBatch]:
        log = _Log(_FOLLOWED_BYTES)
        log.take(lines)
        self.bad += log.bad
        table = log.rows.table()
        table["number"] += self._requests
        self._requests += len(table)
        return list(_batches(table))


def _batches(table: npt.NDArray[Any]) -> Iterator[pa.RecordBatch]:
    order = np.argsort(table["end"], kind="stable")
    for low in range(0, len(order), _BATCH_ROWS):
        part = table[order[low : low + _BATCH_ROWS]]
        yield build_batch(
            {
                "kind": REQUEST, "name": "request", "enqueue_ns": part["arrival"], "start_ns": part["start"],
                "end_ns": part["end"], "request": part["number"], "shape": shapes(part["prompt"], part["output"]),
            }
        )  # fmt: skip
