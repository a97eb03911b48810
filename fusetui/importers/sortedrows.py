"""More rows than memory holds, in order: sorted runs in an unlinked temporary file, merged while they are read.

The file is read in pieces and not mapped: mapped pages count as memory of the process.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Table = npt.NDArray[Any]

_BLOCK_ROWS: Final = 1 << 16
_FEW_RUNS: Final = 64  # merged at once: each needs a piece of it in memory
_PIECE_BYTES: Final = 1 << 16
_LARGE_PIECE_BYTES: Final = 1 << 20


class SortedRows:
    """A growing table of one numpy structured dtype, read in the order of `keys`; equal rows as they were added.

    While it grows a third of `memory_bytes` is held, sorting takes the rest; reading takes a third.
    """

    def __init__(self, dtype: np.dtype[Any], keys: Sequence[str], memory_bytes: int) -> None:
        self.dtype, self.keys = dtype, tuple(keys)
        self._limit = memory_bytes // 3
        self._chunks: list[Table] = []
        self._held = 0
        self._file: Any = None
        self._end = 0
        self._runs: list[tuple[int, int]] = []
        self._rows = 0

    def __len__(self) -> int:
        return self._rows

    def add(self, **columns: Any) -> None:
        """Append rows; every column of the dtype must be given, arrays of one length or single values."""
        rows = next(len(values) for values in columns.values() if isinstance(values, np.ndarray))
        chunk = np.empty(rows, self.dtype)
        for name, values in columns.items():
            chunk[name] = values
        self.append(chunk)

    def append(self, chunk: Table) -> None:
        """Append rows of the dtype; the table keeps `chunk`."""
        if not len(chunk):
            return
        self._chunks.append(chunk)
        self._rows += len(chunk)
        self._held += chunk.nbytes
        if self._held > self._limit:
            self._spill()

    def blocks(self) -> Iterator[Table]:
        """All rows in order, some ten thousand at a time; may be walked again, but not added to meanwhile."""
        if not self._runs:
            rows = _sorted(self._chunks, self.keys) if self._chunks else np.empty(0, self.dtype)
            self._chunks = [rows]
            for low in range(0, len(rows), _BLOCK_ROWS):
                yield rows[low : low + _BLOCK_ROWS]
            return
        if self._chunks:
            self._spill()
        while len(self._runs) > _FEW_RUNS:
            self._shorten()
        yield from self._merged(self._runs)

    def clear(self) -> None:
        """Forget all rows."""
        self._chunks, self._runs = [], []
        self._held = self._rows = self._end = 0
        if self._file is not None:
            self._file.close()
            self._file = None

    def _spill(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="fusetui-", buffering=0)  # noqa: SIM115 (lives as long as this)
        begin = self._end
        self._write(_sorted(self._chunks, self.keys))
        self._runs.append((begin, self._end))
        self._chunks, self._held = [], 0

    def _write(self, rows: Table) -> None:
        view = rows.view(np.uint8).data
        while view:
            written = os.pwrite(self._file.fileno(), view, self._end)
            self._end += written
            view = view[written:]

    def _shorten(self) -> None:
        """Make one run out of each few neighbours; runs stay in the order in which their rows were added."""
        runs, self._runs = self._runs, []
        for low in range(0, len(runs), _FEW_RUNS):
            begin = self._end
            for rows in self._merged(runs[low : low + _FEW_RUNS]):
                self._write(np.ascontiguousarray(rows))
            self._runs.append((begin, self._end))

    def _merged(self, runs: Sequence[tuple[int, int]]) -> Iterator[Table]:
        wanted = min(max(self._limit // len(runs), _PIECE_BYTES), _LARGE_PIECE_BYTES)
        piece = max(wanted // self.dtype.itemsize, 1) * self.dtype.itemsize
        return _merged([self._run(begin, end, piece) for begin, end in runs], self.keys)

    def _run(self, begin: int, end: int, piece: int) -> Iterator[Table]:
        for at in range(begin, end, piece):
            yield np.frombuffer(os.pread(self._file.fileno(), min(piece, end - at), at), self.dtype)


class Upto:
    """Rows of a sorted table, handed out by ascending values of their first key."""

    def __init__(self, rows: SortedRows) -> None:
        self._blocks = rows.blocks()
        self._key = rows.keys[0]
        self._held = np.empty(0, rows.dtype)

    def rows(self, keys: npt.NDArray[np.int64]) -> Table:
        """The rows with one of the sorted `keys`, all of which are behind those asked for before."""
        found = [np.empty(0, self._held.dtype)]
        while True:
            block = self._held if len(self._held) else next(self._blocks, None)
            if block is None:
                break
            cut = int(np.searchsorted(block[self._key], keys[-1], "right"))
            values = block[self._key][:cut]
            at = np.minimum(np.searchsorted(keys, values), len(keys) - 1)
            found.append(block[:cut][keys[at] == values])
            self._held = block[cut:]
            if len(self._held):
                break
        return joined(found)


def whole_groups(rows: SortedRows) -> Iterator[Table]:
    """The rows of a sorted table in blocks, those with one value of the first key never in two of them."""
    key = rows.keys[0]
    held: list[Table] = []
    enough = _BLOCK_ROWS // 2
    for block in rows.blocks():
        held.append(block)
        if sum(map(len, held)) < enough:
            continue
        together = joined(held)
        cut = int(np.searchsorted(together[key], together[key][-1], "left"))
        if cut:
            yield together[:cut]
        held = [together[cut:]]
        enough = max(_BLOCK_ROWS // 2, 2 * len(held[0]))
    if held and len(rest := joined(held)):
        yield rest


def joined(parts: Sequence[Table]) -> Table:
    """The tables as one; numpy copies rows without a structure several times as fast."""
    parts = [part for part in parts if len(part)] or parts[:1]
    if len(parts) == 1:
        return parts[0]
    dtype = parts[0].dtype
    return np.concatenate([part.view((np.void, dtype.itemsize)) for part in parts]).view(dtype)


def _sorted(parts: Sequence[Table], keys: Sequence[str]) -> Table:
    rows = joined(parts)
    return rows.take(np.lexsort([rows[key] for key in reversed(keys)]))


def _merged(parts: Sequence[Iterator[Table]], keys: Sequence[str]) -> Iterator[Table]:
    """The rows of sorted parts in order; of equal rows those of an earlier part are first."""
    heads = [next(part, None) for part in parts]
    first, last = ([_key(head, at, keys) for head in heads] for at in (0, -1))
    while any(head is not None for head in heads):
        # Whatever is still to come of any part is behind the earliest end of what is held of each.
        bound, nearest = min((key, i) for i, key in enumerate(last) if key is not None)
        pieces: list[Table] = []
        for i, head in enumerate(heads):
            key = first[i]
            if head is None or key is None or key > bound or (key == bound and i > nearest):
                continue
            count = _before(head, bound, keys, "right" if i <= nearest else "left")
            pieces.append(head[:count])
            heads[i] = head[count:] if count < len(head) else next(parts[i], None)
            first[i], last[i] = _key(heads[i], 0, keys), _key(heads[i], -1, keys)
        yield pieces[0] if len(pieces) == 1 else _sorted(pieces, keys)


def _key(rows: Table | None, at: int, keys: Sequence[str]) -> tuple[Any, ...] | None:
    return None if rows is None else tuple(rows[name][at].item() for name in keys)


def _before(rows: Table, bound: tuple[Any, ...], keys: Sequence[str], side: Any) -> int:
    """How many of the sorted rows are before `bound`, with those equal to it when the side is "right"."""
    low, high = 0, len(rows)
    for name, value in zip(keys, bound, strict=True):
        part = rows[name][low:high]
        low, high = low + int(np.searchsorted(part, value, "left")), low + int(np.searchsorted(part, value, "right"))
    return high if side == "right" else low
