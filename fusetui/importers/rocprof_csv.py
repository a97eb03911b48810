"""rocprofv3 tables (CSV): one file, or those of one run together.

What becomes what
- Kernel dispatches and memory copies are executions on the queue (copies: the stream) of their agent.
- API calls with the same correlation id in the same process give enqueue_ns and launch_ns. The tables of one process
  are those with one name before `_kernel_trace.csv` in one folder.
- Without device work the outermost API calls are shown. Markers and scratch allocations are marks.
- Counters of dispatches with times are counters at the end of the dispatch.
Totals and instruction samples have no times of work and are refused, beside other tables they are left out.
Times count from the first row: they are those of a clock since boot.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from fusetui.importers.capture import Capture
from fusetui.importers.devicework import DeviceWork, Ints
from fusetui.importers.rocprof_tables import (
    Columns,
    Table,
    agents,
    columns_of,
    integers,
    key_of,
    queue_codes,
    take_counted,
    words,
)
from fusetui.importers.sqlitefile import NULL
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header
from fusetui.telemetry.text import safe_text

NAME: Final = "rocprofv3 table (CSV)"

_APART_NS: Final = 600_000_000_000
"""Tables of one run are not further apart than ten minutes; those of different boots are."""
_TABLE_NAME = re.compile(
    r"[_.-]?(?:kernel|hip|hsa|memory|marker|scratch|counter|rccl|rocdecode|rocjpeg|agent|domain|pc)_\w+\.csv.*\Z"
)
_TIMES: Final = frozenset({"start_timestamp", "end_timestamp"})
_KINDS: Final = (
    ("counters", {"counter_name", "counter_value", "dispatch_id", "correlation_id", "kernel_name"}),
    ("kernels", {"kind", "kernel_name", *_TIMES}),
    ("copies", {"kind", "direction", *_TIMES}),
    ("calls", {"domain", "function", *_TIMES}),
    ("scratch", {"kind", "operation", *_TIMES}),
    ("totals", {"name", "calls", "totaldurationns"}),
    ("samples", {"sample_timestamp", "exec_mask"}),
    ("agents", {"node_id", "agent_type", "cu_count"}),
    ("timeless", {"kind", "agent_id", "kernel_name"}),
)
_REFUSED: Final = {
    "": ("no columns that are known", "is the table whole?"),
    "totals": ("totals of a run, without times of the work", "open its _kernel_trace.csv"),
    "samples": ("instruction samples of a run, without durations", "record with --kernel-trace"),
    "agents": ("the list of devices of a run", "open its _kernel_trace.csv"),
    "timeless": ("kernels without Start_Timestamp and End_Timestamp", "is the table whole?"),
    "untimed": ("counters of dispatches without times", "rocprofv3 of ROCm 6.2 or later writes times beside them"),
}


@dataclass(slots=True)
class _File:
    table: Table
    kind: str
    process: int
    prefix: str


def sniff(head: bytes) -> bool:
    """A table with the columns of one of rocprofv3's."""
    return bool(_kind_of(columns_of(head)))


def _kind_of(columns: Collection[str]) -> str:
    kind = next((kind for kind, needed in _KINDS if needed <= set(columns)), "")
    return "untimed" if kind == "counters" and not set(columns) >= _TIMES else kind


def read(path: Path, memory_bytes: int) -> Capture:
    """Open one table. Raises TelemetryError when no work can be told from it."""
    kind = _kind_of(Table(path).columns)
    if kind in _REFUSED:
        what, remedy = _REFUSED[kind]
        raise TelemetryError(str(path), f"{NAME}: {what}", remedy)
    return read_together([path], memory_bytes)


def read_together(paths: Sequence[Path], memory_bytes: int) -> Capture:
    """Open the tables of one run. Raises TelemetryError when they are of several, or nothing ran in them."""
    files, notes = _sorted_out(paths), list[str]()
    _refuse_several_runs(files)
    found = DeviceWork(memory_bytes)
    facts: dict[str, str] = {}
    for file in files:
        if file.kind == "agents":
            facts |= _devices(file.table)
        elif file.kind in _REFUSED:
            notes.append(f"{file.table.path.name} left out: {_REFUSED[file.kind][0]}")
        else:
            _take(file, found, counted=not any(f.kind == "kernels" for f in files))
        if file.table.skipped:
            notes.append(f"{file.table.path.name}: lines that are no rows left out: {file.table.skipped:,}")
        if file.table.damage:
            notes.append(f"{file.table.path.name}: {file.table.damage}")
    if found.pieces and not found.calls:
        notes.append("no API calls in it, so no queue wait: record with --hip-trace too, open the folder")
    where = str(paths[0] if len(paths) == 1 else paths[0].parent)
    header = Header(source="rocprofv3", clock="trace", hardware=facts)
    return found.capture(where, NAME, header, notes, base_ns=None, remedy="record with --kernel-trace")


def _sorted_out(paths: Sequence[Path]) -> list[_File]:
    processes: dict[tuple[str, str], int] = {}
    files = []
    for path in paths:
        named = _TABLE_NAME.sub("", path.name)
        process = processes.setdefault((str(path.parent), named), len(processes))
        table = Table(path)
        files.append(_File(table, _kind_of(table.columns), process, named))
    several = len(processes) > 1
    for file in files:
        file.prefix = f"{safe_text(file.prefix, 40)}/" if several else ""
    return files


def _refuse_several_runs(files: list[_File]) -> None:
    """Two tables of the same work in one process, or times that no run has together."""
    seen: dict[tuple[int, str], str] = {}
    first: tuple[int, str] | None = None
    for file in files:
        if file.kind in _REFUSED:
            continue
        name = file.table.path.name
        other = seen.setdefault((file.process, file.kind), name) if file.kind in ("kernels", "copies") else name
        start = next((int(s[0]) for c in file.table.chunks("start_timestamp") if len(s := _known(c))), None)
        if first is None and start is not None:
            first = start, name
        if first is not None and start is not None and abs(start - first[0]) > _APART_NS:
            other = first[1]
        if other != name:
            where = str(file.table.path.parent)
            raise TelemetryError(where, f"tables of several runs ({other}, {name})", "name the tables of one run")


def _known(columns: Columns) -> Ints:
    start = integers(columns, "start_timestamp")
    known: Ints = start[start != NULL]
    return known


def _take(file: _File, found: DeviceWork, *, counted: bool) -> None:
    if file.kind == "kernels":
        _take_kernels(file, found)
    elif file.kind == "copies":
        _take_copies(file, found)
    elif file.kind == "calls":
        _take_calls(file, found)
    elif file.kind == "scratch":
        _take_scratch(file, found)
    elif counted:
        take_counted(file.table, found, file.prefix)
    else:
        found.left_out["tables of counters beside a kernel trace"] += 1


def _span(columns: Columns) -> tuple[Ints, Ints]:
    return integers(columns, "start_timestamp"), integers(columns, "end_timestamp")


def _take_kernels(file: _File, found: DeviceWork) -> None:
    wanted = ("agent_id", "queue_id", "kernel_name", "correlation_id", "start_timestamp", "end_timestamp")
    for columns in file.table.chunks(*wanted):
        start, end = _span(columns)
        texts, index = words(columns["kernel_name"])
        found.add_work(
            start,
            end,
            correlation=key_of(file.process, integers(columns, "correlation_id")),
            device=agents(columns, "agent_id"),
            stream=queue_codes(found, columns, file.prefix),
            name=found.names.codes(texts)[index],
        )


def _take_copies(file: _File, found: DeviceWork) -> None:
    wanted = ("direction", "stream_id", "source_agent_id", "destination_agent_id", "correlation_id", *sorted(_TIMES))
    for columns in file.table.chunks(*wanted):
        start, end = _span(columns)
        texts, index = words(columns["direction"])
        to_host = np.array([text.endswith("TO_HOST") for text in texts], np.bool_)[index]
        stream = integers(columns, "stream_id")
        different, which = np.unique(stream, return_inverse=True)
        own = [-1 if s == NULL else found.streams[f"{file.prefix}copies {s}"] for s in different.tolist()]
        found.add_work(
            start,
            end,
            correlation=key_of(file.process, integers(columns, "correlation_id")),
            device=np.where(to_host, agents(columns, "source_agent_id"), agents(columns, "destination_agent_id")),
            stream=np.array(own, np.int64)[which],
            name=found.names.codes(texts)[index],
        )


def _take_calls(file: _File, found: DeviceWork) -> None:
    wanted = ("domain", "function", "process_id", "thread_id", "correlation_id", "start_timestamp", "end_timestamp")
    for columns in file.table.chunks(*wanted):
        start, end = _span(columns)
        domains, index = words(columns["domain"])
        marker = np.array([text.startswith("MARKER") for text in domains], np.bool_)[index]
        texts, index = words(columns["function"])
        name = found.names.codes(texts)[index]
        ids = np.stack([integers(columns, "process_id"), integers(columns, "thread_id")])
        threads, which = np.unique(ids, axis=1, return_inverse=True)
        thread = found.streams.codes([f"thread {p}/{t}" for p, t in threads.T.tolist()])[which.ravel()]
        found.add_marks(start[marker], end[marker], name=name[marker], stream=thread[marker])
        call = ~marker
        key = key_of(file.process, integers(columns, "correlation_id"))
        found.add_calls(start[call], end[call], correlation=key[call])
        found.add_host(start[call], end[call], thread=thread[call], name=name[call])


def _take_scratch(file: _File, found: DeviceWork) -> None:
    for columns in file.table.chunks("operation", "queue_id", *sorted(_TIMES)):
        start, end = _span(columns)
        texts, index = words(columns["operation"])
        stream = queue_codes(found, columns, file.prefix)
        found.add_marks(start, end, name=found.names.codes(texts)[index], stream=stream)


def _devices(table: Table) -> dict[str, str]:
    facts: dict[str, str] = {}
    for columns in table.chunks("node_id", "agent_type", "name", "product_name", "cu_count"):
        rows = zip(*(columns[name].to_pylist() for name in ("node_id", "agent_type", "name", "cu_count")), strict=True)
        for node, kind, name, cores in rows:
            if kind == "GPU" and len(facts) < 64:
                facts[safe_text(f"device {node}", 40)] = safe_text(f"{name}, {cores} CUs", 200)
    return facts
