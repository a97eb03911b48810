"""GPU logs of the BurstGPT load generator's server (JSON): use, memory and temperature, twice a second.

Memory is in MiB. Times are of the clock that the request log and the scheduler log of the same run have too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from fusetui.importers.capture import Capture
from fusetui.importers.counterlog import Series, counter_capture
from fusetui.importers.flatrecords import first_record, read_records

NAME: Final = "BurstGPT GPU log"

_SERIES: Final = (
    ("GPU_utilization", "utilisation", "%"),
    ("GPU_used_mem", "memory used", "MiB"),
    ("GPU_total_mem", "memory", "MiB"),
    ("GPU_temperature", "temperature", "°C"),
)


class _Row(msgspec.Struct):
    record_time: float
    GPU_utilization: float = float("nan")
    GPU_used_mem: float = float("nan")
    GPU_total_mem: float = float("nan")
    GPU_temperature: float = float("nan")


def sniff(head: bytes) -> bool:
    """The first record is a monitor's sample."""
    record = first_record(head)
    return b'"monitor_id"' in record and b'"record_time"' in record


def read(path: Path, memory_bytes: int) -> Capture:
    """Open a log. Raises TelemetryError when no sample can be read."""
    rows, notes = read_records(path, memory_bytes, _Row)
    at_s = np.array([row.record_time for row in rows])
    series = [
        Series(name, unit, np.array([getattr(row, field) for row in rows], np.float64)) for field, name, unit in _SERIES
    ]
    return counter_capture(str(path), "burstgpt-serving", at_s, series, device=0, notes=notes, build={})
