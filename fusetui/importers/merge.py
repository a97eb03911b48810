"""Captures in time order made one, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fusetui.importers.capture import Capture
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import SCHEMA

_BATCH_ROWS: Final = 1 << 16
_END, _START, _ENQUEUE = (SCHEMA.get_field_index(name) for name in ("end_ns", "start_ns", "enqueue_ns"))
_TIMES: Final = ("enqueue_ns", "start_ns", "end_ns")


def merged(parts: Sequence[Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    """The rows of all parts by event time (end, of open work start or enqueue); each part is sorted by it."""
    heads = [_next(part) for part in parts]
    while any(head is not None for head in heads):
        # Every part is sorted, so nothing that is still to come happens before the earliest last row.
        bound = min(_event(head.slice(head.num_rows - 1))[0] for head in heads if head is not None)
        ready: list[pa.RecordBatch] = []
        for number, head in enumerate(heads):
            if head is None:
                continue
            rows = int(np.searchsorted(_event(head), bound, "right"))
            if rows:
                ready.append(head.slice(0, rows))
            heads[number] = head.slice(rows) if rows < head.num_rows else _next(parts[number])
        yield from _sorted(ready)


def merge_views(captures: Sequence[Capture]) -> Capture:
    """One capture out of several logs of one run on one clock (`origin_ns` of each is set): no host, one time."""
    origins = [capture.origin_ns or 0 for capture in captures]
    zero = min(origins)
    shifted = [_shifted(c.batches, origin - zero) for c, origin in zip(captures, origins, strict=True)]
    headers = [capture.header for capture in captures]
    header = Header(
        source=next((h.source for h in headers), "unknown"),
        clock="trace",
        hardware={key: fact for h in headers for key, fact in h.hardware.items()},
        build={key: fact for h in headers for key, fact in h.build.items()},
    )
    notes = [note for capture in captures for note in capture.notes]
    return Capture(header, merged(shifted), notes, origin_ns=zero)


def _shifted(batches: Iterator[pa.RecordBatch], by_ns: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        for name in _TIMES:
            columns[name] = pc.add(columns[name], pa.scalar(by_ns, pa.int64()))
        yield pa.RecordBatch.from_arrays(list(columns.values()), schema=batch.schema)


def _next(part: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
    return next((batch for batch in part if batch.num_rows), None)


def _event(rows: pa.RecordBatch | pa.Table) -> npt.NDArray[np.int64]:
    times = rows.column(_END)
    if times.null_count:
        times = pc.coalesce(times, rows.column(_START), rows.column(_ENQUEUE))
    event: npt.NDArray[np.int64] = times.to_numpy()
    return event


def _sorted(batches: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    table = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks()
    order = np.argsort(_event(table), kind="stable")
    yield from table.take(pa.array(order)).combine_chunks().to_batches(max_chunksize=_BATCH_ROWS)
