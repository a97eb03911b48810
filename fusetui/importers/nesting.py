"""Ranges that lie in others, however many there are: sorted on disk, looked at in order of their begin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from fusetui.importers.kineto_batches import ABSENT
from fusetui.importers.rows import Rows
from fusetui.importers.sortedrows import SortedRows, Table


def outermost(ranges: Rows, track: str, memory_bytes: int) -> SortedRows:
    """The ranges (of `start`, `end` and more) that begin in no other of their track, by end time."""
    kept = SortedRows(np.dtype([*_fields(ranges.dtype), ("row", "i8")]), ("end", "row"), memory_bytes // 2)
    reach: tuple[int | None, int] = (None, ABSENT)
    for block in _by_begin(ranges.chunks(), ranges.dtype, track, memory_bytes // 2):
        tracks = block[track]
        keep = np.empty(len(block), np.bool_)
        first = np.flatnonzero(np.append(True, tracks[1:] != tracks[:-1])).tolist()
        for low, high in zip(first, [*first[1:], len(block)], strict=True):
            before = reach[1] if int(tracks[low]) == reach[0] else ABSENT
            ends = np.maximum.accumulate(np.append(before, block["end"][low:high]))
            keep[low:high] = block["start"][low:high] >= ends[:-1]
            reach = int(tracks[low]), int(ends[-1])
        kept.append(block[list(kept.dtype.names or ())][keep].astype(kept.dtype))
    return kept


def _by_begin(chunks: Iterator[Table], dtype: np.dtype[Any], track: str, memory_bytes: int) -> Iterator[Table]:
    """Ranges by track and begin, of those that begin together the longest first, with the number of their row."""
    ordered = SortedRows(
        np.dtype([*_fields(dtype), ("row", "i8"), ("down", "i8")]), (track, "start", "down"), memory_bytes
    )
    for chunk in chunks:
        columns = {name: chunk[name] for name in dtype.names or ()}
        row = np.arange(len(ordered), len(ordered) + len(chunk))
        ordered.add(**columns, row=row, down=-chunk["end"])
    return ordered.blocks()


def _fields(dtype: np.dtype[Any]) -> list[tuple[str, npt.DTypeLike]]:
    return [(name, dtype[name]) for name in dtype.names or ()]
