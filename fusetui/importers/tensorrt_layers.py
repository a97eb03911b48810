"""Layer durations that a TensorRT IProfiler collected: {layer: [milliseconds of each run, ...], ...}.

Each layer of each run is an execution, each run a request. The file has durations and their order, no times: the
layers of a run follow one another without gaps, and so do the runs. Fused layers keep their names (`A + B`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from fusetui.importers.bytestream import ByteStream
from fusetui.importers.capture import Capture
from fusetui.importers.kineto_batches import Columns, Section, merged_batches
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import EXECUTION, REQUEST
from fusetui.telemetry.text import safe_text

NAME: Final = "TensorRT layer durations (IProfiler)"

_START = re.compile(
    rb'\A\s*\{\s*"(?:[^"\\]|\\.){1,4000}"\s*:\s*\[\s*(?:\d+(?:\.\d+)?(?:[eE][-+]?\d+)?\s*[,\]]\s*){1,3}'
)
_LAYERED = re.compile(rb"Reformatting CopyNode|/Conv|/MatMul|\bPWN\(|Conv_\d|MatMul_\d|\+ /|ForeignNode|Gemm|/Relu")
_LONGEST_MS: Final = 1e7

Ints = npt.NDArray[np.int64]


def sniff(head: bytes) -> bool:
    """An object of plain arrays of numbers, with keys as TensorRT names layers."""
    return bool(_START.match(head[:8192]) and _LAYERED.search(head[:65536]))


def read(path: Path, memory_bytes: int) -> Capture:
    """Open a dump. Raises TelemetryError when it is not whole or no layer has a duration for every run."""
    layers = _layers(path, memory_bytes // 8)
    runs = max(map(len, layers.values()), default=0)
    whole = {name: times for name, times in layers.items() if len(times) == runs}
    took_ms = np.array(list(whole.values()), np.float64).reshape(-1, runs).T
    capture = laid_end_to_end(str(path), NAME, list(whole), took_ms)
    if len(whole) < len(layers):
        left_out = len(layers) - len(whole)
        capture.notes.append(f"layers left out, not measured in every run: {left_out:,} of {len(layers):,}")
    return capture


def laid_end_to_end(where: str, what: str, layers: Sequence[str], took_ms: npt.NDArray[np.float64]) -> Capture:
    """Runs of layers one after the other; took_ms has shape (runs, layers). Raises TelemetryError."""
    if not took_ms.size:
        raise TelemetryError(where, f"{what} without one layer", "let the profiler see a run")
    took = np.rint(took_ms * 1e6)
    if not np.isfinite(took).all() or (took < 0).any() or (took > _LONGEST_MS * 1e6).any():
        raise TelemetryError(where, f"{what} with impossible durations", "is it in milliseconds?")
    notes = ["durations only: layers and runs are laid end to end, idle time and queue wait are not measured"]
    names: list[str | None] = [*map(safe_text, layers), "run"]
    header = Header(source="tensorrt-iprofiler", clock="trace")
    return Capture(header, merged_batches(_sections(took.astype(np.int64)), {"name": names}), notes)


def _layers(path: Path, room: int) -> dict[str, list[float]]:
    with ByteStream(path) as source:
        parts: list[bytes] = []
        while part := source.read():
            parts.append(part)
            room -= len(part)
            if room < 0:
                raise TelemetryError(str(path), f"{NAME} too large for the memory", "give it more with --memory")
    try:
        return msgspec.json.decode(b"".join(parts), type=dict[str, list[float]])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        why = source.damage or str(error)
        raise TelemetryError(str(path), f"{NAME} that cannot be read ({why})", "is the file whole?") from None


def _sections(took: Ints) -> list[Section]:
    """Executions and runs out of durations in ns, shape (runs, layers)."""
    layers = took.shape[1]
    end = np.cumsum(took.ravel())
    last = end[layers - 1 :: layers]
    first = np.concatenate([np.zeros(1, np.int64), last[:-1]])

    def ran(rows: Ints) -> Columns:
        return {
            "name": rows % layers,
            "start_ns": end[rows] - took.ravel()[rows],
            "end_ns": end[rows],
            "request": rows // layers,
        }

    def asked(rows: Ints) -> Columns:
        return {"name": np.full(len(rows), layers), "start_ns": first[rows], "end_ns": last[rows], "request": rows}

    return [Section(EXECUTION, end, ran), Section(REQUEST, last, asked)]
