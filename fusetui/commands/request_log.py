"""Arrivals for a simulation out of any capture that knows when requests came and how large they were."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fusetui.accelerator.scenario.requests import Arrived
from fusetui.accelerator.scenario.spec import Log, Scenario
from fusetui.commands.progress import finish_reading
from fusetui.importers.open import open_capture
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.schema import COUNTER, KINDS, REQUEST

_SHAPE = re.compile(r"tokens=(\d{1,9})(?: output=(\d{1,9}))?")


def read_logs(scenario: Scenario, memory_bytes: int) -> dict[str, Arrived]:
    """The logs a scenario names, beside its file or where the command runs. Raises TelemetryError."""
    names = {s.arrivals.path for s in scenario.streams if isinstance(s.arrivals, Log)}
    return {name: _read(_found(name, Path(scenario.where).parent), memory_bytes) for name in sorted(names)}


def _found(name: str, folder: Path) -> Path:
    beside = folder / name
    return beside if beside.is_file() else Path(name)


def _read(path: Path, memory_bytes: int) -> Arrived:
    trace = open_capture([path], memory_bytes=memory_bytes)
    try:
        finish_reading(trace)
        parts = [_arrivals(trace.read(number)) for number in range(len(trace.index().rows))]
    finally:
        trace.close()
    at, tokens, output = (np.concatenate(column) for column in zip(*parts, strict=True))
    if not len(at):
        raise TelemetryError(
            str(path), "no request in it has an arrival and a shape `tokens=N`", "is it a request log?"
        )
    order = np.argsort(at, kind="stable")
    return Arrived(at[order] - at[order[0]], tokens[order], output[order])


def _arrivals(batch: pa.RecordBatch) -> tuple[npt.NDArray[np.int64], ...]:
    """(arrival_ns, tokens, output) of the requests that are done and the arrivals that nothing more is known of."""
    shape = batch.column("shape")
    sizes = np.array(list(_sizes(shape.dictionary.to_pylist())), np.int64).reshape(-1, 2)
    code = shape.indices.fill_null(-1).to_numpy().astype(np.int64)
    kind = batch.column("kind").indices.to_numpy()
    asked, counted = kind == KINDS.index(REQUEST), kind == KINDS.index(COUNTER)
    enqueue, start = batch.column("enqueue_ns"), batch.column("start_ns")
    at = np.where(asked, enqueue.fill_null(0).to_numpy(), start.fill_null(0).to_numpy())
    known = (code >= 0) & (counted | (asked & _valid(enqueue))) & _valid(batch.column("end_ns"))
    known[known] = sizes[code[known], 0] > 0
    return at[known], sizes[code[known], 0], sizes[code[known], 1]


def _valid(column: pa.Array) -> npt.NDArray[np.bool_]:
    valid: npt.NDArray[np.bool_] = column.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _sizes(shapes: list[str]) -> Iterator[tuple[int, int]]:
    for text in shapes:
        match = _SHAPE.match(text)
        yield (int(match[1]), int(match[2] or 0)) if match else (0, 0)
