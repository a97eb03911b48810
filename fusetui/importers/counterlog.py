"""Columns of readings over time to counter rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fusetui.importers.capture import Capture
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import COUNTER, build_batch

_BATCH_ROWS: Final = 1 << 16
_FARTHEST_S: Final = 4e9

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Series:
    """One counter: its name, unit (None: none) and readings, shape (samples,); NaN where there is none."""

    name: str
    unit: str | None
    values: Floats


def counter_capture(
    where: str, source: str, at_s: Floats, series: Sequence[Series], *, device: int | None, notes: Sequence[str],
    build: Mapping[str, str],
) -> Capture:  # fmt: skip
    """Readings at `at_s` (samples,), seconds on a clock shared with other logs. Raises TelemetryError when none is."""
    good = np.isfinite(at_s) & (np.abs(at_s) < _FARTHEST_S)
    if not good.any():
        raise TelemetryError(where, f"a {source} log without one readable sample")
    at_ns = np.round(at_s[good] * 1e9).astype(np.int64)
    zero = int(at_ns.min())
    kept = [Series(s.name, s.unit, s.values[good]) for s in series]
    lines = list(notes)
    if not good.all():
        lines.append(f"{int((~good).sum()):,} samples left out: no time")
    header = Header(source=source, clock="trace", build=dict(build))
    return Capture(header, counter_batches(at_ns - zero, kept, device), lines, origin_ns=zero)


def counter_batches(
    at_ns: npt.NDArray[np.int64], series: Sequence[Series], device: int | None = None
) -> Iterator[pa.RecordBatch]:
    """Rows by time, one per sample and series; a reading that is not finite is left out."""
    units = [s.unit for s in series]
    words = list(dict.fromkeys(unit for unit in units if unit is not None))
    unit_of = np.array([-1 if unit is None else words.index(unit) for unit in units], np.int8)
    times, numbers = np.repeat(at_ns, len(series)), np.tile(np.arange(len(series), dtype=np.int32), len(at_ns))
    values = np.stack([s.values for s in series], axis=1).ravel()
    order = np.argsort(times, kind="stable")
    order = order[np.isfinite(values[order])]
    for low in range(0, len(order), _BATCH_ROWS):
        rows = order[low : low + _BATCH_ROWS]
        unit = unit_of[numbers[rows]]
        columns: dict[str, Any] = {
            "kind": COUNTER,
            "name": pa.DictionaryArray.from_arrays(pa.array(numbers[rows]), pa.array([s.name for s in series])),
            "start_ns": times[rows],
            "end_ns": times[rows],
            "value": values[rows],
            "unit": pa.DictionaryArray.from_arrays(pa.array(unit, mask=unit < 0), pa.array(words, pa.utf8())),
        }
        if device is not None:
            columns["device"] = device
        yield build_batch(columns, len(rows))
