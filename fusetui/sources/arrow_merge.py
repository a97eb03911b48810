"""Many small batches to few larger ones: what follows costs per batch as much as per thousand rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from fusetui.sources.arrow_crowd import Mark
from fusetui.sources.arrow_queue import MERGE_ROWS, Arrived
from fusetui.telemetry.schema import MARK, SCHEMA, build_batch

_HOST: Final = SCHEMA.get_field_index("host")
_GROUP_ROWS: Final = 65_536


def merge(items: Sequence[Arrived], *, name_hosts: bool) -> list[pa.RecordBatch]:
    """The batches in order, runs of small ones joined with one dictionary per column.

    name_hosts  fill the host of batches that name none with their origin
    """
    merged: list[pa.RecordBatch] = []
    run: list[pa.RecordBatch] = []
    rows = 0
    for item in items:
        batch = with_host(item.batch, item.origin) if name_hosts else item.batch
        if batch.num_rows >= MERGE_ROWS:
            merged += [*_joined(run), batch]
            run, rows = [], 0
        elif batch.num_rows:
            run.append(batch)
            rows += batch.num_rows
            if rows >= _GROUP_ROWS:
                merged += _joined(run)
                run, rows = [], 0
    return merged + _joined(run)


def with_host(batch: pa.RecordBatch, origin: str) -> pa.RecordBatch:
    """The batch with its host column set to `origin`, if it names no host at all."""
    host = batch.column(_HOST)
    if not origin or host.null_count < len(host):
        return batch
    field = SCHEMA.field(_HOST)
    codes = pa.repeat(pa.scalar(0, field.type.index_type), len(host))
    return batch.set_column(_HOST, field, pa.DictionaryArray.from_arrays(codes, pa.array([origin], pa.utf8())))


def marked(marks: Sequence[Mark]) -> list[pa.RecordBatch]:
    """Marks as a batch, none without any."""
    if not marks:
        return []
    times = [mark.time_ns for mark in marks]
    columns = {"name": [m.text for m in marks], "host": [m.host for m in marks], "start_ns": times, "end_ns": times}
    return [build_batch({**columns, "kind": MARK})]


def _joined(run: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    if len(run) < 2:
        return run
    try:
        return [pa.concat_batches(run)]
    except pa.ArrowInvalid:
        # More different words than the index type of a joint dictionary can number: they stay apart.
        return run
