"""rocprofv3 and rocprof-sys databases (rocpd, SQLite, schema versions 3 and 4; also gzipped).

What becomes what
- Kernel dispatches and memory copies are executions; the stream is the queue, for copies the HIP stream.
- HIP and HSA calls with the same internal correlation id in the same process give enqueue_ns and launch_ns. In this
  schema that id is an event's `stack_id`; `correlation_id` is what the program set and joins nothing.
- Without device work the outermost calls are shown; markers are marks.
A file has a set of tables for each process that wrote into it; files of one run open together. Times count from the
first row: they are those of a clock since boot.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from fusetui.importers.archive import plain
from fusetui.importers.capture import Capture
from fusetui.importers.devicework import DeviceWork
from fusetui.importers.rocpd_process import RocpdProcess
from fusetui.importers.sqlitefile import MAGIC, Database
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header
from fusetui.telemetry.text import safe_text

NAME: Final = "rocpd database (SQLite)"

_TABLES: Final = re.compile(rb"rocpd_(?:kernel_dispatch|info_agent|info_process)")
_SETS: Final = re.compile(r"rocpd_event(\w*)\Z")
_MOST_PROCESSES: Final = 1 << 12


def sniff(head: bytes) -> bool:
    """A SQLite file with the tables of rocpd."""
    return head.startswith(MAGIC) and bool(_TABLES.search(head))


def read(path: Path, memory_bytes: int) -> Capture:
    """Open a database. Raises TelemetryError when it is none or nothing ran in it."""
    return read_together([path], memory_bytes)


def read_together(paths: Sequence[Path], memory_bytes: int) -> Capture:
    """The databases of one run, whose clock they share. Raises TelemetryError as `read` does."""
    found = DeviceWork(memory_bytes)
    processes: list[RocpdProcess] = []
    notes: list[str] = []
    for path in paths:
        with plain(path) as file, Database(file, NAME) as db:
            for suffix in _suffixes(db, path, _MOST_PROCESSES - len(processes)):
                process = RocpdProcess(db, suffix, len(processes), found)
                process.take(memory_bytes // 8)
                processes.append(process)
            notes += db.damage
    if found.pieces and not found.calls:
        notes.append("no API calls in it, so no queue wait: record with rocprofv3 --hip-trace --kernel-trace")
    counted = sum(process.counted for process in processes)
    if counted:
        notes.append(f"values of counters left out, their dispatches are shown: {counted:,}")
    where = str(paths[0]) if len(paths) == 1 else f"{len(paths)} files"
    return found.capture(where, NAME, _header(processes), notes, base_ns=None, remedy="record with --kernel-trace")


def _suffixes(db: Database, path: Path, most: int) -> list[str]:
    """What the names of each process's tables end with."""
    found = sorted(match[1] for name in db.tables if (match := _SETS.match(name)))
    if not found:
        what = "; ".join(db.damage) or "no tables of events in it"
        raise TelemetryError(str(path), f"{NAME} that cannot be read ({what})", "was it copied while it was written?")
    return found[: max(0, most)]


def _header(processes: Sequence[RocpdProcess]) -> Header:
    hosts = {process.host for process in processes if process.host}
    versions = {process.version for process in processes if process.version}
    build = {"rocpd schema": safe_text(", ".join(sorted(versions)), 100)} if versions else {}
    return Header(
        source="rocprofv3",
        clock="trace",
        host=safe_text(hosts.pop(), 200) if len(hosts) == 1 else None,
        hardware={key: fact for process in processes for key, fact in process.devices.items()},
        build=build | ({"processes": str(len(processes))} if len(processes) > 1 else {}),
    )
