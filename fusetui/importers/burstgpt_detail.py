"""Per-request logs of the BurstGPT load generator (JSON): each request as its client measured it.

`record_time` is when the answer was complete, `total_chunk_time` how long that took, so arrival is their difference.
Each is told twice, as open work when it arrived and when it was complete, so that a replay knows who still waits.
When service began is not measured; the time to the first chunk is the counter `time to first chunk`, at that moment.
`out_len` counts characters. Open it together with the scheduler's and the GPU's log of the same run: they share a
clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fusetui.importers.capture import Capture
from fusetui.importers.counterlog import Series, counter_batches
from fusetui.importers.flatrecords import first_record, read_records
from fusetui.importers.merge import merged
from fusetui.importers.requestlog import shapes
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import REQUEST, build_batch

NAME: Final = "BurstGPT request log"

_MOST: Final = 1 << 31
Times = npt.NDArray[np.int64]


class _Row(msgspec.Struct):
    event_id: int
    in_len: int
    out_len: int
    first_chunk_time: float
    total_chunk_time: float
    record_time: float


def sniff(head: bytes) -> bool:
    """The first record has the client's times."""
    record = first_record(head)
    return b'"total_chunk_time"' in record and b'"record_time"' in record


def read(path: Path, memory_bytes: int) -> Capture:
    """Open a log. Raises TelemetryError when no request in it can be read."""
    rows, notes = read_records(path, memory_bytes, _Row)
    good = [row for row in rows if _possible(row)]
    if not good:
        raise TelemetryError(str(path), f"a {NAME} without one readable request")
    if len(good) < len(rows):
        notes.append(f"{len(rows) - len(good):,} requests left out: impossible times or lengths")
    good.sort(key=lambda row: row.record_time)
    times = np.array([(row.record_time, row.total_chunk_time, row.first_chunk_time) for row in good])
    end = np.round(times[:, 0] * 1e9).astype(np.int64)
    arrival = end - np.round(times[:, 1] * 1e9).astype(np.int64)
    zero = int(arrival.min())
    first = np.round(times[:, 2] * 1e9).astype(np.int64)
    told = counter_batches(arrival - zero + first, [Series("time to first chunk", "s", times[:, 2])])
    header = Header(source="burstgpt-serving", clock="trace", build={"log": NAME})
    return Capture(header, merged([_requests(good, arrival - zero, end - zero), told]), notes, origin_ns=zero)


def _possible(row: _Row) -> bool:
    return (
        0 <= row.first_chunk_time <= row.total_chunk_time < 1e8
        and 0 <= row.record_time < 4e9
        and 0 <= row.in_len < _MOST
        and 0 <= row.out_len < _MOST
        and 0 <= row.event_id < 1 << 62
    )


def _requests(rows: list[_Row], arrival: Times, end: Times) -> Iterator[pa.RecordBatch]:
    lengths = np.array([(row.in_len, row.out_len, row.event_id) for row in rows], np.int64)
    shape = shapes(lengths[:, 0], lengths[:, 1], "characters")
    # Open work goes first: at one moment it is what the end supersedes.
    order = np.argsort(np.concatenate([arrival, end]), kind="stable")
    both = order % len(rows)
    yield build_batch(
        {
            "kind": REQUEST, "name": "request", "enqueue_ns": arrival[both], "start_ns": arrival[both],
            "end_ns": pa.array(end[both], mask=order < len(rows)), "request": lengths[both, 2],
            "shape": shape.take(pa.array(both)),
        }
    )  # fmt: skip
