"""Columns of rows as numbers to contract batches, in order of end time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fusetui.telemetry.schema import KINDS, SCHEMA, build_batch

BATCH_ROWS: Final = 1 << 16
_FEW_WORDS: Final = 512  # with so few, a batch carries them all
ABSENT: Final = np.iinfo(np.int64).min
"""Null in the integer columns below."""

Columns = Mapping[str, npt.NDArray[Any]]
Block = tuple[npt.NDArray[np.int64], Columns]


@dataclass(frozen=True, slots=True)
class Section:
    """Rows of one kind.

    kind     execution, request, counter or mark
    end      end_ns per row, shape (rows,)
    columns  `columns(rows)`: contract columns of those rows as numbers, ABSENT (or NaN) where null; words as codes,
             negative where null
    """

    kind: str
    end: npt.NDArray[np.int64]
    columns: Callable[[npt.NDArray[np.int64]], Columns]

    def blocks(self) -> Iterator[Block]:
        """The rows in order, some ten thousand at a time."""
        order = np.argsort(self.end, kind="stable")
        for low in range(0, len(order), BATCH_ROWS):
            rows = order[low : low + BATCH_ROWS]
            yield self.end[rows], self.columns(rows)


@dataclass(frozen=True, slots=True)
class Stream:
    """Rows of one kind that are in order already.

    kind    execution, request, counter or mark
    blocks  `blocks()`: their end times, and columns as those of a Section
    """

    kind: str
    blocks: Callable[[], Iterator[Block]]


def merged_batches(
    sections: Sequence[Section | Stream], words: Mapping[str, Sequence[str | None]]
) -> Iterator[pa.RecordBatch]:
    """All rows of all sections by end time, those of an earlier section first; at most BATCH_ROWS a batch.

    words  per dictionary column the text of each code; a None text is null
    """
    dictionaries = {name: _Dictionary(name, texts) for name, texts in words.items()}
    heads = [_Head(section) for section in sections]
    while True:
        # The next rows of all are among the next of each.
        ends = [head.ends(BATCH_ROWS) for head in heads]
        owner = np.repeat(np.arange(len(heads)), [len(end) for end in ends])
        if not len(owner):
            return
        if len(heads) > 1:
            owner = owner[np.argsort(np.concatenate(ends), kind="stable")]
        owner = owner[:BATCH_ROWS]
        yield _batch([(head, owner == i) for i, head in enumerate(heads)], dictionaries)


class _Head:
    """The next rows of a section."""

    def __init__(self, section: Section | Stream) -> None:
        self.kind = section.kind
        self._blocks = section.blocks()
        self._held: list[Block] = []

    def ends(self, rows: int) -> npt.NDArray[np.int64]:
        """End times of the next rows, fewer when there are no more."""
        while sum(len(end) for end, _ in self._held) < rows and (block := next(self._blocks, None)) is not None:
            self._held.append(block)
        return np.concatenate([end for end, _ in self._held] or [np.empty(0, np.int64)])[:rows]

    def take(self, rows: int) -> Columns:
        """Columns of the next rows, of which `ends` has told."""
        taken: list[Columns] = []
        while rows:
            end, columns = self._held[0]
            count = min(rows, len(end))
            taken.append({name: values[:count] for name, values in columns.items()})
            rest = {name: values[count:] for name, values in columns.items()}
            self._held[:1] = [(end[count:], rest)] if count < len(end) else []
            rows -= count
        if len(taken) == 1:
            return taken[0]
        return {name: np.concatenate([part[name] for part in taken]) for name in taken[0]}


def _batch(
    parts: Sequence[tuple[_Head, npt.NDArray[np.bool_]]], dictionaries: Mapping[str, _Dictionary]
) -> pa.RecordBatch:
    rows = len(parts[0][1])
    numbers: dict[str, npt.NDArray[Any]] = {}
    kinds = np.zeros(rows, np.int8)
    for head, where in parts:
        if not (count := int(np.count_nonzero(where))):
            continue
        kinds[where] = KINDS.index(head.kind)
        for name, values in head.take(count).items():
            if name not in numbers:
                is_real = values.dtype.kind == "f"
                numbers[name] = np.full(rows, np.nan) if is_real else np.full(rows, ABSENT, np.int64)
            numbers[name][where] = values
    columns: dict[str, Any] = {"kind": pa.DictionaryArray.from_arrays(pa.array(kinds), pa.array(KINDS))}
    for name, values in numbers.items():
        if name in dictionaries:
            columns[name] = dictionaries[name].encode(values)
        elif values.dtype.kind == "f":
            columns[name] = pa.array(values, from_pandas=True)
        else:
            absent = values == ABSENT
            width = SCHEMA.field(name).type.to_pandas_dtype()
            columns[name] = pa.array(np.where(absent, 0, values).astype(width), mask=absent)
    return build_batch(columns, rows)


class _Dictionary:
    """Codes of the whole capture to a dictionary that is not much larger than a batch needs."""

    def __init__(self, column: str, texts: Sequence[str | None]) -> None:
        self._texts = texts
        self._index = SCHEMA.field(column).type.index_type.to_pandas_dtype()
        self._null = np.array([text is None for text in texts], np.bool_)

    def encode(self, codes: npt.NDArray[np.int64]) -> pa.Array:
        absent = codes < 0
        if self._null.any():
            absent |= self._null[np.where(absent, 0, codes)]
        texts, compact = self._texts, np.where(absent, 0, codes)
        if len(texts) > _FEW_WORDS:
            used, compact = np.unique(compact, return_inverse=True)
            texts = [texts[code] for code in used]
        # A null among the words is never pointed at; the empty text keeps the dictionary free of nulls.
        words = pa.array([text or "" for text in texts] or [""], pa.utf8())
        return pa.DictionaryArray.from_arrays(pa.array(compact.astype(self._index), mask=absent), words)
