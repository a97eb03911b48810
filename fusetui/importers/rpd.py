"""ROCm RPD captures (rocmProfileData, SQLite, also gzipped).

What becomes what
- Operations of the device are executions: kernels by their description, copies by their kind; the stream is the queue.
- `rocpd_api_ops` says which API call launched an operation: it gives enqueue_ns (its end) and launch_ns.
- The monitor's values (clocks, power, …) are counters at the time from which they held.
Times count from the first row: they are those of a clock since boot.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from fusetui.importers.archive import plain
from fusetui.importers.capture import Capture
from fusetui.importers.devicework import DeviceWork, Ints, codes
from fusetui.importers.sqlitefile import MAGIC, Database
from fusetui.telemetry.header import Header
from fusetui.telemetry.text import safe_text

NAME: Final = "ROCm RPD capture (SQLite)"

_UNITS: Final = {"sclk": "MHz", "mclk": "MHz", "power": "W", "temp": "°C", "util": "%", "vram%": "%", "gpu%": "%"}


def sniff(head: bytes) -> bool:
    """A SQLite file with the tables of RPD."""
    return head.startswith(MAGIC) and b"rocpd_op" in head and b"rocpd_api" in head


def read(path: Path, memory_bytes: int) -> Capture:
    """Open a capture. Raises TelemetryError when it is no database or nothing ran in it."""
    found = DeviceWork(memory_bytes)
    with plain(path) as file, Database(file, NAME) as db:
        _take_operations(db, found)
        _take_calls(db, found)
        _take_monitor(db, found)
        texts = {"name": _name_texts(db, found)}
        notes = list(db.damage)
        if len(found.work) and not len(found.calls):
            notes.append("no API calls in it, so no queue wait: record with runTracer.sh or rpdTracerControl")
    header = Header(source="rpd", clock="trace", build={"format": "rocmProfileData"})
    return found.capture(
        str(path), NAME, header, notes, base_ns=None, remedy="was the tracer finalised before the copy?", texts=texts
    )


def _take_operations(db: Database, found: DeviceWork) -> None:
    by_op, api = _launches(db)
    columns = ["id", "start", "end", "gpuId", "queueId", "description_id", "opType_id"]
    empty = {key for key, text in db.texts("rocpd_string", "id", "string", _ids(db)).items() if not text.strip()}
    for op, start, end, device, queue, description, kind in db.chunks("rocpd_op", columns):
        at = np.minimum(np.searchsorted(by_op, op), max(len(by_op) - 1, 0))
        launched = by_op[at] == op if len(by_op) else np.zeros(len(op), np.bool_)
        unnamed = (description < 0) | np.isin(description, list(empty))
        found.add_work(
            start,
            end,
            correlation=np.where(launched, api[at] if len(api) else 0, 0),
            device=np.where((device >= 0) & (device < 1 << 31), device, -1),
            stream=np.where(queue < 0, -1, codes(found.streams, queue)),
            name=codes(found.names, np.where(unnamed, kind, description)),
        )


def _ids(db: Database) -> list[int]:
    """Strings that stand in a description; there are few different ones beside the operations."""
    return [value for (value,) in db.rows("select distinct description_id from rocpd_op") if isinstance(value, int)]


def _launches(db: Database) -> tuple[Ints, Ints]:
    """Operations that an API call launched, in order, and the call of each (the first when there are several)."""
    parts = list(db.chunks("rocpd_api_ops", ["op_id", "api_id"]))
    if not parts:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    op, api = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((api, op))
    op, first = np.unique(op[order], return_index=True)
    return op, api[order][first]


def _take_calls(db: Database, found: DeviceWork) -> None:
    for api, start, end in db.chunks("rocpd_api", ["id", "start", "end"]):
        launched = found.launched(api) & (api > 0)
        found.add_calls(start[launched], end[launched], correlation=api[launched])


def _name_texts(db: Database, found: DeviceWork) -> list[str]:
    ids = [key for key in found.names if isinstance(key, int)]
    strings = db.texts("rocpd_string", "id", "string", ids)
    return [
        safe_text(strings.get(key, f"operation {key}") if isinstance(key, int) else str(key)) for key in found.names
    ]


def _take_monitor(db: Database, found: DeviceWork) -> None:
    chunks = db.chunks("rocpd_monitor", ["start", "deviceId"], reals=["value"], texts=["deviceType", "monitorType"])
    for start, device, value, kinds, names in chunks:
        label = [n or "?" if kind == "gpu" else f"{kind} {n}" for kind, n in zip(kinds, names, strict=True)]
        unit = [found.units[_UNITS[n]] if n in _UNITS else -1 for n in names]
        of_gpu = np.array([kind == "gpu" for kind in kinds], np.bool_)
        found.add_readings(
            start,
            value,
            name=found.names.codes(label),
            unit=np.array(unit, np.int64),
            device=np.where(of_gpu & (device >= 0) & (device < 1 << 31), device, -1),
        )
