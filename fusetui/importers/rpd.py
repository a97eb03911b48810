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
from fusetui.importers.sortedrows import SortedRows, Table, Upto
from fusetui.importers.sqlitefile import MAGIC, Database
from fusetui.telemetry.header import Header
from fusetui.telemetry.text import safe_text

NAME: Final = "ROCm RPD capture (SQLite)"

_LAUNCH: Final = np.dtype([("op", "i8"), ("api", "i8")])
_UNITS: Final = {"sclk": "MHz", "mclk": "MHz", "power": "W", "temp": "°C", "util": "%", "vram%": "%", "gpu%": "%"}


def sniff(head: bytes) -> bool:
    """A SQLite file with the tables of RPD."""
    return head.startswith(MAGIC) and b"rocpd_op" in head and b"rocpd_api" in head


def read(path: Path, memory_bytes: int) -> Capture:
    """Open a capture. Raises TelemetryError when it is no database or nothing ran in it."""
    found = DeviceWork(memory_bytes, every_call=True)
    with plain(path) as file, Database(file, NAME) as db:
        _take_operations(db, found, memory_bytes // 4)
        _take_calls(db, found)
        _take_monitor(db, found)
        texts = {"name": _name_texts(db, found)}
        notes = list(db.damage)
        if found.pieces and not found.calls:
            notes.append("no API calls in it, so no queue wait: record with runTracer.sh or rpdTracerControl")
    header = Header(source="rpd", clock="trace", build={"format": "rocmProfileData"})
    return found.capture(
        str(path), NAME, header, notes, base_ns=None, remedy="was the tracer finalised before the copy?", texts=texts
    )


def _take_operations(db: Database, found: DeviceWork, memory_bytes: int) -> None:
    launches = Upto(_launches(db, memory_bytes))
    columns = ["id", "start", "end", "gpuId", "queueId", "description_id", "opType_id"]
    empty = {key for key, text in db.texts("rocpd_string", "id", "string", _ids(db)).items() if not text.strip()}
    for op, start, end, device, queue, description, kind in db.chunks("rocpd_op", columns, order="id"):
        unnamed = (description < 0) | np.isin(description, list(empty))
        found.add_work(
            start,
            end,
            correlation=_calls_of(op, launches.rows(op)),
            device=np.where((device >= 0) & (device < 1 << 31), device, -1),
            stream=np.where(queue < 0, -1, codes(found.streams, queue)),
            name=codes(found.names, np.where(unnamed, kind, description)),
        )


def _ids(db: Database) -> list[int]:
    """Strings that stand in a description; there are few different ones beside the operations."""
    return [value for (value,) in db.rows("select distinct description_id from rocpd_op") if isinstance(value, int)]


def _launches(db: Database, memory_bytes: int) -> SortedRows:
    """Which API call launched which operation."""
    found = SortedRows(_LAUNCH, ("op", "api"), memory_bytes)
    for op, api in db.chunks("rocpd_api_ops", ["op_id", "api_id"]):
        found.add(op=op, api=api)
    return found


def _calls_of(op: Ints, launches: Table) -> Ints:
    """The call that launched each operation (the first when there are several), 0 for none. Shape (rows,)."""
    if not len(launches):
        return np.zeros_like(op)
    at = np.minimum(np.searchsorted(launches["op"], op), len(launches) - 1)
    return np.where(launches["op"][at] == op, launches["api"][at], 0)


def _take_calls(db: Database, found: DeviceWork) -> None:
    for api, start, end in db.chunks("rocpd_api", ["id", "start", "end"]):
        found.add_calls(start[api > 0], end[api > 0], correlation=api[api > 0])


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
