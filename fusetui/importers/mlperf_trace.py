"""MLPerf LoadGen traces (`mlperf_log_trace.json`): every sample with when it was due, issued and complete.

The file looks like a Chrome trace but is no JSON (doubled quotes, its own spelling), so samples are read by pattern.
A sample is a request: enqueue_ns is when the schedule had it due, which is what LoadGen counts latency from; start_ns
is when it was issued, so that the queue wait is the load generator's own delay. How long a sample waited inside the
system under test is not recorded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fusetui.importers.bytestream import ByteStream
from fusetui.importers.capture import Capture
from fusetui.importers.kineto_times import ABSENT, to_ns
from fusetui.importers.lines import line_chunks
from fusetui.importers.rows import Rows
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import REQUEST, build_batch

NAME: Final = "MLPerf LoadGen trace"

_OWN: Final = re.compile(
    rb'\{"name":"(?:GenerateLoadableSets|GenerateQueries|SampleLoop|IssueQuery|QuerySamplesComplete)"'
)
_SAMPLE: Final = re.compile(
    rb'\{"name":"Sample","cat":"default","ph":"b"[^{}]*"ts":(-?\d{1,15}(?:\.\d{1,6})?),"args":\{"sample_seq":(\d{1,18}),'
    rb'"query_seq":\d{1,18},"sample_idx":\d{1,18},"issue_start_ns":(\d{1,18}),"complete_ns":(\d{1,18})\}'
)
_BEGINS: Final = b'"name":"Sample","cat":"default","ph":"b"'
_ORIGIN: Final = re.compile(rb'"otherData":\s*\{\s*"ts":\s*(\d{1,16})(?:\.(\d{1,3}))?')
_ROW: Final = np.dtype([("due", "i8"), ("issued", "i8"), ("done", "i8"), ("number", "i8")])
_SINCE_1970_US: Final = 10**15
"""An origin at or above this is since the epoch (2001 on): below it is a machine's own clock."""
_BATCH_ROWS: Final = 1 << 16
_LONGEST_NS: Final = 1 << 55


def sniff(head: bytes) -> bool:
    """A trace with an event that only LoadGen writes."""
    return head.startswith(b'{"traceEvents":[') and bool(_OWN.search(head))


def read(path: Path, memory_bytes: int) -> Capture:
    """Open a trace. Raises TelemetryError when no sample in it was completed."""
    rows, begun, origin_ns, ended = Rows(_ROW, memory_bytes // 2), 0, 0, False
    with ByteStream(path) as stream:
        for chunk in line_chunks(stream):
            begun += chunk.count(_BEGINS)
            _take(rows, _SAMPLE.findall(chunk))
            if origin := _ORIGIN.search(chunk):
                ended = True
                whole_us = int(origin[1])
                thousandths = int((origin[2] or b"0").ljust(3, b"0"))
                origin_ns = whole_us * 1000 + thousandths if whole_us >= _SINCE_1970_US else 0
        notes = [stream.damage] if stream.damage else []
    if not len(rows):
        raise TelemetryError(str(path), f"{NAME} without one completed sample", "was the test stopped before its end?")
    notes.append("latency counts from the schedule, as LoadGen does; the queue wait is only LoadGen's delay in issuing")
    if begun > len(rows):
        notes.append(f"samples that could not be read: {begun - len(rows):,}")
    if not ended:
        notes.append("the end of the file is missing: later samples are not in it")
    table = rows.table()
    header = Header(source="mlperf-loadgen", clock="epoch" if origin_ns else "trace", build={"log": NAME})
    return Capture(header, _batches(table, origin_ns or -int(table["due"].min())), notes)


def _take(rows: Rows, found: list[tuple[bytes, bytes, bytes, bytes]]) -> None:
    if not found:
        return
    due = to_ns([at.decode() for at, _, _, _ in found])
    number, issued, done = (np.array([int(row[i]) for row in found], np.int64) for i in (1, 2, 3))
    good = (due != ABSENT) & (issued <= done) & (done < _LONGEST_NS)
    rows.add(due=due[good], issued=due[good] + issued[good], done=due[good] + done[good], number=number[good])


def _batches(table: npt.NDArray[Any], origin_ns: int) -> Iterator[pa.RecordBatch]:
    order = np.argsort(table["done"], kind="stable")
    for low in range(0, len(order), _BATCH_ROWS):
        part = table[order[low : low + _BATCH_ROWS]]
        yield build_batch(
            {
                "kind": REQUEST, "name": "sample", "enqueue_ns": part["due"] + origin_ns,
                "start_ns": part["issued"] + origin_ns, "end_ns": part["done"] + origin_ns, "request": part["number"],
            }
        )  # fmt: skip
