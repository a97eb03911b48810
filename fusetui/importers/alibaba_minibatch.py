"""Mini-batch times of Alibaba's gpu-v2020 trace (CSV): how long each worker of a training job took per iteration.

`worker`, `gpu`, `time` and `batch_time_norm`. Neither is there a time, `time` being the number of the iteration, nor
a duration, batch times being scaled to 0…1000. So nothing is an execution: each batch time is a reading of the counter
`batch time (normalised)` of its worker, iteration i standing at i ms; `worker imbalance`, longest ÷ mean - 1 over the
workers of an iteration, does not depend on the scale.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from fusetui.importers.bytestream import ByteStream
from fusetui.importers.capture import Capture
from fusetui.importers.lines import CsvRows, header_fields, numbers
from fusetui.importers.readings import Readings
from fusetui.importers.rows import Rows
from fusetui.telemetry.header import Header

NAME: Final = "Alibaba mini-batch times"

_COLUMNS: Final = {"worker", "gpu", "time", "batch_time_norm"}
_ROW: Final = np.dtype([("worker", "f8"), ("iteration", "f8"), ("took", "f8")])
_STEP_NS: Final = 1_000_000
_MANY: Final = 1 << 31

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def sniff(head: bytes) -> bool:
    """The four columns in the first line."""
    return set(header_fields(head.partition(b"\n")[0][:500])) >= _COLUMNS


def read(path: Path, memory_bytes: int) -> Capture:
    """Open a job. Raises TelemetryError when no batch time in it can be read."""
    gathered = Rows(_ROW, memory_bytes // 4)
    with ByteStream(path) as stream:
        table = CsvRows(stream)
        for columns in table:
            gathered.add(
                worker=numbers(columns["worker"]), iteration=numbers(columns["time"]),
                took=numbers(columns["batch_time_norm"]),
            )  # fmt: skip
        notes = [stream.damage] if stream.damage else []
    rows = gathered.table()
    good = (rows["took"] >= 0) & (rows["iteration"] >= 0) & (rows["iteration"] < _MANY)
    good &= (rows["worker"] >= 0) & (rows["worker"] < _MANY)
    bad = int((~good).sum()) + table.skipped
    rows = rows[good]
    iteration = rows["iteration"].astype(np.int64)
    readings = Readings(str(path), memory_bytes // 2)
    workers = [f"worker {worker:.0f}" for worker in rows["worker"].tolist()]
    readings.add(iteration * _STEP_NS, rows["took"], name="batch time (normalised)", host=workers, request=iteration)
    at, imbalance = _imbalance(iteration, rows["took"])
    readings.add(at * _STEP_NS, imbalance, name="worker imbalance", request=at)
    notes.append("no times and no durations: iteration i stands at i ms, batch times are scaled to 0…1000")
    notes += [f"rows left out: no worker, iteration or batch time: {bad:,}"] if bad else []
    return readings.capture(Header(source="alibaba-gpu-v2020", clock="trace", build={"log": NAME}), notes)


def _imbalance(iteration: Ints, took: Floats) -> tuple[Ints, Floats]:
    """Longest ÷ mean - 1 per iteration that two or more workers have; NaN when all took nothing."""
    known, group = np.unique(iteration, return_inverse=True)
    count = np.bincount(group, minlength=len(known))
    total = np.bincount(group, weights=took, minlength=len(known))
    longest = np.zeros(len(known))
    np.maximum.at(longest, group, took)
    with np.errstate(invalid="ignore", divide="ignore"):
        imbalance = np.where((count > 1) & (total > 0), longest * count / total - 1, np.nan)
    return known, imbalance
