"""Scheduler logs of the BurstGPT load generator's server (CSV): a vLLM engine's queue, twice a second.

The KV cache use is percent, unlike the gauge of the same name that vLLM serves. Times are of the clock that the
request log and the GPU log of the same run have too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from fusetui.importers.bytestream import ByteStream
from fusetui.importers.capture import Capture
from fusetui.importers.counterlog import Series, counter_capture
from fusetui.importers.lines import CsvRows, header_fields, numbers

NAME: Final = "BurstGPT scheduler log"

_SERIES: Final = (
    ("num_running", "running requests", None),
    ("num_pending", "pending requests", None),
    ("num_swapped", "swapped requests", None),
    ("prompt_throughput", "prompt throughput", "tokens/s"),
    ("generation_throughput", "generation throughput", "tokens/s"),
    ("gpu_kvcache_usage", "GPU KV cache", "%"),
    ("cpu_kvcache_usage", "CPU KV cache", "%"),
)
_COLUMNS: Final = {"timestamp", *(column for column, _, _ in _SERIES)}


def sniff(head: bytes) -> bool:
    """The columns of the engine's periodic line, in the first line."""
    return set(header_fields(head.partition(b"\n")[0][:500])) >= _COLUMNS


def read(path: Path, memory_bytes: int) -> Capture:
    """Open a log. Raises TelemetryError when no sample can be read."""
    parts: list[list[np.ndarray[tuple[int], np.dtype[np.float64]]]] = []
    room = memory_bytes // 4
    notes: list[str] = []
    with ByteStream(path) as stream:
        rows = CsvRows(stream)
        for columns in rows:
            parts.append([numbers(columns[name]) for name in ("timestamp", *(column for column, _, _ in _SERIES))])
            room -= sum(values.nbytes for values in parts[-1])
            if room < 0:
                notes.append("only the beginning was read: more does not fit in --memory")
                break
        notes += [stream.damage] if stream.damage else []
    if rows.skipped:
        notes.append(f"{rows.skipped:,} lines left out: not a sample")
    at_s, *values = [np.concatenate(part) for part in zip(*parts, strict=True)] or [np.zeros(0)] * (len(_SERIES) + 1)
    series = [Series(name, unit, found) for (_, name, unit), found in zip(_SERIES, values, strict=True)]
    return counter_capture(
        str(path), "burstgpt-serving", at_s, series, device=None, notes=notes, build={"server": "vLLM"}
    )
