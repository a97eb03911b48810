"""Nsight Systems exports in SQLite (`nsys export --type sqlite`), schema versions 2 and 3.

What becomes what
- Kernels, copies and sets are executions; CUDA graphs that were recorded as a whole are one execution each.
- The API call with the same correlation id in the same process gives enqueue_ns (its end) and launch_ns. Work and
  calls belong to one process when the upper bits of globalPid and globalTid agree.
- NVTX ranges named like steps ("step 3", "iteration_3") are requests; other ranges are counted in a note.
  Single NVTX marks are marks.
- Sampled GPU metrics are counters.
Tables that were not traced are absent; reduced files without processes are joined on the correlation id alone.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from fusetui.importers.capture import Capture
from fusetui.importers.devicework import DeviceWork
from fusetui.importers.nsys_header import epoch_ns, header_of
from fusetui.importers.nsys_nvtx import take_ranges
from fusetui.importers.nsys_tables import Processes, name_texts, stream_texts, take_calls, take_metrics, take_work
from fusetui.importers.sqlitefile import MAGIC, Database

NAME: Final = "Nsight Systems export (SQLite)"

_TABLE = re.compile(rb"CUPTI_ACTIVITY_KIND_|META_DATA_EXPORT|NVTX_EVENTS|TARGET_INFO_SESSION_START_TIME")
_API: Final = ("CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER")


def sniff(head: bytes) -> bool:
    """A SQLite file with a table of Nsight Systems."""
    return head.startswith(MAGIC) and bool(_TABLE.search(head))


def read(path: Path, memory_bytes: int) -> Capture:
    """Open an export. Raises TelemetryError when it is no database or nothing ran in it."""
    found = DeviceWork(memory_bytes, every_call=True)
    with Database(path, NAME) as db:
        processes = Processes()
        take_work(db, found, processes)
        take_calls(db, found, processes)
        ranges = take_ranges(db, found)
        take_metrics(db, found)
        header = header_of(db)
        texts = {"name": name_texts(db, found), "stream": stream_texts(found, processes)}
        notes = [*db.damage, *_absences(db, found), *ranges]
        base_ns = epoch_ns(db)
    remedy = "record with `nsys profile --trace=cuda,nvtx`"
    return found.capture(str(path), NAME, header, notes, base_ns=base_ns, remedy=remedy, texts=texts)


def _absences(db: Database, found: DeviceWork) -> list[str]:
    notes = []
    if found.pieces and not any(table in db.tables for table in _API):
        notes.append("no API calls in it, so no queue wait: record with `nsys profile --trace=cuda`")
    if "CUPTI_ACTIVITY_KIND_GRAPH_TRACE" in db.tables:
        notes.append("CUDA graphs are recorded as a whole: --cuda-graph-trace=node records their kernels")
    kernels = db.tables.get("CUPTI_ACTIVITY_KIND_KERNEL")
    if kernels is not None and "globalPid" not in kernels:
        notes.append("a reduced export without processes: calls are joined on the correlation id alone")
    if "GPU_METRICS" not in db.tables:
        notes.append("no GPU metrics: `nsys profile --gpu-metrics-devices=all` samples them")
    return notes
