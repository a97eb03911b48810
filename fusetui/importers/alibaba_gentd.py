"""Series of Alibaba's GenTD26 trace (CSV): one metric of a fleet that served image generation.

`value`, `container_ip` and `timestamp_anon` in any order, one file per metric. What is measured, and its unit, stands
in no file but only in its name, so the counter is named after the file and has no unit. The host is the container. All
files share one (shifted) clock: they open together.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from fusetui.importers.bytestream import ByteStream
from fusetui.importers.capture import Capture
from fusetui.importers.lines import CsvRows, header_fields, numbers
from fusetui.importers.readings import Readings
from fusetui.telemetry.header import Header
from fusetui.telemetry.text import safe_text

NAME: Final = "Alibaba GenTD26 series"

_TIME: Final = "timestamp_anon"
_COLUMNS: Final = {_TIME, "value", "container_ip"}
_FARTHEST_S: Final = 4e9


def sniff(head: bytes) -> bool:
    """The three columns in the first line."""
    return set(header_fields(head.partition(b"\n")[0][:500])) >= _COLUMNS


def read(path: Path, memory_bytes: int) -> Capture:
    """Open a series. Raises TelemetryError when no reading in it has a time."""
    rows, bad, nowhere = Readings(str(path), memory_bytes), 0, 0
    name = safe_text(path.name.split(".")[0], 120)
    with ByteStream(path) as stream:
        table = CsvRows(stream)
        for columns in table:
            at_s = numbers(columns[_TIME])
            good = np.isfinite(at_s) & (np.abs(at_s) < _FARTHEST_S)
            at_ns = np.where(good, np.round(np.where(good, at_s, 0) * 1e9), np.iinfo(np.int64).min).astype(np.int64)
            hosts = [text or None for text in columns["container_ip"].to_pylist()]
            nowhere += hosts.count(None)
            kinds = (
                [text or None for text in columns["request_type"].to_pylist()] if "request_type" in columns else None
            )
            bad += rows.add(at_ns, numbers(columns["value"]), name=name, host=hosts, stream=kinds)
        notes = [stream.damage] if stream.damage else []
    notes.append("the file does not say what it measures, nor in which unit: the counter has the file's name")
    notes += [f"readings without a container: {nowhere:,}"] if nowhere else []
    notes += [f"rows left out: no time or no value: {bad + table.skipped:,}"] if bad + table.skipped else []
    header = Header(source="alibaba-gentd26", clock="trace", build={"log": NAME})
    return rows.capture(header, notes, shared_clock=True)
