"""Small batches put together: what a batch costs is mostly the same for one row and for a thousand."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa


def coalesced(batches: Sequence[pa.RecordBatch], least_rows: int) -> list[pa.RecordBatch]:
    """The same rows in the same order, in batches of at least `least_rows` but for the last; no empty ones."""
    out: list[pa.RecordBatch] = []
    group: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if len(batch) == 0:
            continue
        group.append(batch)
        size += len(batch)
        if size >= least_rows:
            out += _one(group)
            group, size = [], 0
    return out + _one(group)


def _one(group: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    if len(group) < 2:
        return group
    try:
        return [pa.concat_batches(group)]
    except pa.ArrowInvalid:
        # Their words together do not fit the index type of a dictionary column; those of half of them may.
        half = len(group) // 2
        return _one(group[:half]) + _one(group[half:])
