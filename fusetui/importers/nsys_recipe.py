"""NVTX ranges projected onto the GPU (Parquet): `nsys recipe nvtx_gpu_proj_trace`, and nsys-jax's archives of it.

What becomes what
- Innermost ranges with GPU work are executions, from their first GPU operation to their last; XLA operations are named
  by `hlo_op`. The range on the host, which is around the launch calls, gives enqueue_ns (its end) and launch_ns.
- Outermost ranges of XLA modules are requests, from their begin on the host to their end on the GPU.
The format has neither kernels nor streams, so ranges of different streams overlap.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fusetui.importers.capture import Capture
from fusetui.importers.devicework import DeviceWork, Ints
from fusetui.importers.sqlitefile import NULL
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header
from fusetui.telemetry.text import safe_text

NAME: Final = "Nsight Systems recipe (NVTX projection, Parquet)"

_COLUMNS: Final = (
    "Name", "Projected Start", "Projected Duration", "Orig Start", "Orig Duration", "NumGPUOps", "Lvl", "NumChild",
)  # fmt: skip
_NEEDED: Final = (b"Projected Start", b"Projected Duration", b"Orig Start", b"NumGPUOps")
_OPERATION = re.compile(r"hlo_op=([^,#]+)")
_MODULE = re.compile(r"XlaModule:#(?:[^#]*?,)?hlo_module=([^,#]+)")
_MAX_FOOTER: Final = 64 << 20
_MAX_METADATA: Final = 4 << 20


def sniff(head: bytes) -> bool:
    """Parquet whose columns are those of the projection; the head of a Parquet file comes with its footer."""
    return head.startswith(b"PAR1") and all(name in head for name in _NEEDED)


def read(path: Path, memory_bytes: int) -> Capture:
    """Open a table. Raises TelemetryError when it is damaged or nothing ran in it."""
    found, ranks = DeviceWork(memory_bytes), set[int]()
    hardware, device = _hardware(path)
    unnamed = inner = 0
    try:
        with pq.ParquetFile(path, memory_map=False, thrift_string_size_limit=_MAX_FOOTER) as file:
            have = [name for name in (*_COLUMNS, "Rank") if name in file.schema_arrow.names]
            for batch in file.iter_batches(1 << 16, columns=have, use_threads=False):
                batch.validate(full=True)
                lost, outer = _take(batch, found, device)
                unnamed, inner = unnamed + lost, inner + outer
                ranks |= set(_integers(batch, "Rank").tolist()) if len(ranks) < 2 else set()
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, MemoryError) as error:
        raise TelemetryError(str(path), f"{NAME} that cannot be read ({error})", "export it again") from None
    notes = ["ranges of NVTX, not kernels: their launch is the range on the host; there are no streams in it"]
    if unnamed:
        notes.append(f"GPU operations outside any range, not shown: {unnamed:,}")
    if inner:
        notes.append(f"ranges around others left out: {inner:,}")
    rank = next(iter(ranks - {NULL}), None) if len(ranks - {NULL}) == 1 else None
    header = Header(source="nsys-recipe", clock="trace", hardware=hardware)
    capture = found.capture(str(path), NAME, header, notes, base_ns=None, remedy="mark the work with NVTX ranges")
    capture.rank = rank
    return capture


def _take(batch: pa.RecordBatch, found: DeviceWork, device: int) -> tuple[int, int]:
    """Rows of one batch; GPU operations without a range, and ranges with others in them."""
    names = ["" if name is None else str(name) for name in batch.column("Name").to_pylist()]
    named = np.array([bool(name) for name in names], np.bool_)
    start, host = _integers(batch, "Projected Start"), _integers(batch, "Orig Start")
    end = start + np.maximum(_integers(batch, "Projected Duration"), -1)
    host_end = host + np.maximum(_integers(batch, "Orig Duration"), -1)
    operations, children = _integers(batch, "NumGPUOps"), _integers(batch, "NumChild")
    leaf = named & (children <= 0) & (operations != 0)
    rows = np.flatnonzero(leaf)
    key = np.where(host != NULL, found.pieces + found.left_out.total() + 1 + np.arange(len(host)), 0)
    texts = [match[1] if (match := _OPERATION.search(names[row])) else names[row] for row in rows.tolist()]
    nowhere = np.full(len(rows), -1)
    found.add_work(
        start[rows],
        end[rows],
        correlation=key[rows],
        device=device,
        stream=nowhere,
        name=found.names.codes(texts),
    )
    launched = rows[host[rows] != NULL]
    found.add_calls(host[launched], host_end[launched], correlation=key[launched])
    modules = [_MODULE.search(name) for name in names]
    outermost = named & (_integers(batch, "Lvl") == 0) & (host != NULL) & np.array([m is not None for m in modules])
    asked = np.flatnonzero(outermost)
    titles = [match[1] for row in asked.tolist() if (match := modules[row]) is not None]
    found.add_steps(host[asked], end[asked], name=found.names.codes(titles))
    return int(operations[~named & (operations > 0)].sum()), int((named & (children > 0) & ~outermost).sum())


def _integers(batch: pa.RecordBatch, name: str) -> Ints:
    """Whole numbers of a column, shape (rows,); NULL where there is none (pandas writes them as floats then)."""
    if name not in batch.schema.names:
        return np.full(batch.num_rows, NULL)
    column = batch.column(name)
    if pa.types.is_integer(column.type):
        whole: Ints = column.cast(pa.int64()).fill_null(NULL).to_numpy(zero_copy_only=False)
        return whole
    values = column.cast(pa.float64()).fill_null(np.nan).to_numpy(zero_copy_only=False)
    good = np.isfinite(values) & (np.abs(values) < 2.0**53)
    return np.where(good, np.where(good, values, 0).astype(np.int64), NULL)


def _hardware(path: Path) -> tuple[dict[str, str], int]:
    """Facts of the devices beside the table, and the number of the device when there is only one (-1: not known)."""
    rows: list[dict[str, Any]] = []
    for place in (path.parent.parent, path.parent):
        file = place / "device-metadata.parquet"
        try:
            if file.is_file() and file.stat().st_size <= _MAX_METADATA:
                rows = pq.read_table(file, use_threads=False).to_pylist()[:64]
                break
        except (pa.ArrowException, OSError, ValueError):
            continue
    facts: dict[str, str] = {}
    for row in rows:
        known = {key: row.get(f"('TARGET_INFO_GPU', '{key}')") for key in ("id", "name", "smCount")}
        if known["name"] is not None:
            facts[safe_text(f"device {known['id']}", 40)] = safe_text(f"{known['name']}, {known['smCount']} SMs", 200)
    number = rows[0].get("('TARGET_INFO_GPU', 'id')") if len(rows) == 1 else None
    return facts, number if isinstance(number, int) and 0 <= number < 1 << 31 else -1
