"""Ranges that lie in others, however many there are: sorted on disk, looked at in order of their begin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from fusetui.importers.kineto_batches import ABSENT
from fusetui.importers.rows import Rows
from fusetui.importers.sortedrows import SortedRows, Table


def outermost(ranges: Rows, track: str, memory_bytes: int) -> SortedRows:
    """The ranges (of `start`, `end` and more) that begin in no other of their track, by end time."""
    kept = by_end(ranges.dtype, memory_bytes // 2)
    for block, reach in by_begin(ranges.chunks(), ranges.dtype, track, memory_bytes // 2):
        keep_rows(kept, block, block["start"] >= reach)
    return kept


def by_end(dtype: np.dtype[Any], memory_bytes: int) -> SortedRows:
    """A table for ranges of the dtype by end time, those that end together by the number of their row."""
    return SortedRows(np.dtype([*_fields(dtype), ("row", "i8")]), ("end", "row"), memory_bytes)


def keep_rows(kept: SortedRows, block: Table, keep: npt.NDArray[np.bool_]) -> None:
    """Add those of the rows that `by_begin` gave to a table that `by_end` gave."""
    kept.append(block[list(kept.dtype.names or ())][keep].astype(kept.dtype))


def by_begin(
    chunks: Iterable[Table], dtype: np.dtype[Any], track: str, memory_bytes: int
) -> Iterator[tuple[Table, npt.NDArray[np.int64]]]:
    """Ranges by track and begin, of those that begin together the longest first, with the number of their `row`; and
    the latest end of those before each on its track, the least of all numbers for the first.
    """
    reach: tuple[int | None, int] = (None, ABSENT)
    for block in _ordered(chunks, dtype, track, memory_bytes):
        tracks = block[track]
        before = np.empty(len(block), np.int64)
        first = np.flatnonzero(np.append(True, tracks[1:] != tracks[:-1])).tolist()
        for low, high in zip(first, [*first[1:], len(block)], strict=True):
            begin = reach[1] if int(tracks[low]) == reach[0] else ABSENT
            ends = np.maximum.accumulate(np.append(begin, block["end"][low:high]))
            before[low:high] = ends[:-1]
            reach = int(tracks[low]), int(ends[-1])
        yield block, before


def _ordered(chunks: Iterable[Table], dtype: np.dtype[Any], track: str, memory_bytes: int) -> Iterator[Table]:
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
