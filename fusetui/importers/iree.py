"""IREE profiles exported as JSON lines: `iree-profile dispatch --format=jsonl` or `iree-profile queue --format=jsonl`.

What becomes what
- Dispatches and the allocations of a queue are executions; those of one submission follow one another (`node`).
- The moment an operation was put into its queue is the enqueue_ns of what it ran (only in the queue export).
- The execution of a command buffer is a request.
Times are of the host's steady clock: they count from the first of them.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from fusetui.importers.bytestream import ByteStream
from fusetui.importers.capture import Capture
from fusetui.importers.devicework import DeviceWork
from fusetui.importers.lines import line_chunks
from fusetui.telemetry.header import Header
from fusetui.telemetry.text import safe_text

NAME: Final = "IREE profile (JSON lines)"

_TYPE = re.compile(rb'\A[\s\S]{0,65536}"type"\s*:\s*"(?:host_dispatch_event|host_execution_event|queue_event)"')
_DISPATCH, _EXECUTION, _QUEUED = "host_dispatch_event", "host_execution_event", "queue_event"
_KNOWN: Final = frozenset({_DISPATCH, _EXECUTION, _QUEUED, "queue", "queue_summary", "dispatch_summary"})
_EXECUTE: Final = "execute"
_NO_TIME: Final = -(1 << 62)
_MOST: Final = (1 << 40) - 1

Ints = npt.NDArray[np.int64]


class _Row(msgspec.Struct, gc=False):
    """One line; of a queue event `host_time_ns` is when the operation was submitted."""

    type: str = ""
    op: str = "dispatch"
    key: str = ""
    valid: bool = True
    submission_id: int = 0
    executable_id: int = 0
    function_ordinal: int = 0
    physical_device_ordinal: int = 0
    queue_ordinal: int = 0
    stream_id: int = 0
    host_time_ns: int = _NO_TIME
    start_host_time_ns: int = _NO_TIME
    end_host_time_ns: int = _NO_TIME
    dropped_records: int = 0
    truncated_chunks: int = 0


_DECODER: Final = msgspec.json.Decoder(_Row)


def sniff(head: bytes) -> bool:
    """Lines of JSON objects, of which one of the first is an event of a dispatch or a queue."""
    return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b'{"type"') and bool(_TYPE.match(head))


def read(path: Path, memory_bytes: int) -> Capture:
    """Open an export. Raises TelemetryError when nothing ran in it."""
    found = DeviceWork(memory_bytes)
    found.costs_known = False
    notes: list[str] = []
    seen: Counter[str] = Counter()
    with ByteStream(path) as source:
        for chunk in line_chunks(source):
            rows = _rows(chunk, found)
            seen.update(row.type if row.type in _KNOWN else "other" for row in rows)
            _take(found, rows)
            notes += [
                f"the profiler lost records: {row.dropped_records:,} dropped, {row.truncated_chunks:,} chunks cut"
                for row in rows
                if row.dropped_records or row.truncated_chunks
            ][:4]
        notes += [f"{source.damage}; what came before was read"] if source.damage else []
    if not seen[_QUEUED]:
        notes.append("submissions are not in this export: `iree-profile queue` has them, and with them the queue waits")
    header = Header(source="iree", clock="trace")
    remedy = "profile with --device_profiling_mode=queue-events,host-execution"
    return found.capture(str(path), NAME, header, notes, base_ns=None, remedy=remedy)


def _rows(chunk: bytes, found: DeviceWork) -> list[_Row]:
    rows: list[_Row] = []
    for line in chunk.splitlines():
        if not line.strip():
            continue
        try:
            row = _DECODER.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            found.left_out["unreadable lines"] += 1
            continue
        if row.type in _KNOWN:
            rows.append(row)
        else:
            found.left_out[f"lines of type {safe_text(row.type, 40) or '?'}" if _few(found) else "other lines"] += 1
    return rows


def _few(found: DeviceWork) -> bool:
    return len(found.left_out) < 16


def _take(found: DeviceWork, rows: list[_Row]) -> None:
    queued = [row for row in rows if row.type == _QUEUED]
    time = _column(queued, "host_time_ns")
    found.add_calls(time, time, correlation=_keys(queued))
    ran = [row for row in rows if row.type in (_DISPATCH, _EXECUTION)]
    found.left_out["work marked as invalid"] += sum(not row.valid for row in ran)
    ran = [row for row in ran if row.valid]
    buffers = [row for row in ran if row.op == _EXECUTE]
    begin, end = _column(buffers, "start_host_time_ns"), _column(buffers, "end_host_time_ns")
    found.add_steps(begin, end, name=found.names.codes(["command buffer"] * len(buffers)))
    work = [row for row in ran if row.op != _EXECUTE]
    found.add_work(
        _column(work, "start_host_time_ns"),
        _column(work, "end_host_time_ns"),
        correlation=_keys(work),
        device=np.clip(_column(work, "physical_device_ordinal"), -1, (1 << 31) - 1),
        stream=found.streams.codes([f"queue {row.queue_ordinal} stream {row.stream_id}" for row in work]),
        name=found.names.codes(list(map(_name, work))),
    )


def _column(rows: list[_Row], name: str) -> Ints:
    values: list[Any] = [getattr(row, name) for row in rows]
    return np.array([value if abs(value) < 1 << 62 else _NO_TIME for value in values], np.int64)


def _keys(rows: list[_Row]) -> Ints:
    """Device, queue and submission in one number."""
    return np.array(
        [
            (row.physical_device_ordinal & 0x7FF) << 52
            | (row.queue_ordinal & 0xFFF) << 40
            | (row.submission_id & _MOST)
            for row in rows
        ],
        np.int64,
    )


def _name(row: _Row) -> str:
    if row.op != "dispatch":
        return row.op
    return row.key or f"dispatch {row.executable_id}:{row.function_ordinal}"
