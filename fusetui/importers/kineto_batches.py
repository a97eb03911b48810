"""Kineto columns to contract batches, in order of end time."""

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


def merged_batches(sections: Sequence[Section], words: Mapping[str, Sequence[str | None]]) -> Iterator[pa.RecordBatch]:
    """All rows of all sections by end time, at most BATCH_ROWS a batch.

    words  per dictionary column the text of each code; a None text is null
    """
    dictionaries = {name: _Dictionary(name, texts) for name, texts in words.items()}
    ends = np.concatenate([section.end for section in sections])
    order = np.argsort(ends, kind="stable")
    first = np.cumsum([0, *(len(section.end) for section in sections)])
    for low in range(0, len(order), BATCH_ROWS):
        picked = order[low : low + BATCH_ROWS]
        owner = np.searchsorted(first, picked, "right") - 1
        yield _batch([(s, picked[owner == i] - first[i], owner == i) for i, s in enumerate(sections)], dictionaries)


def _batch(
    parts: Sequence[tuple[Section, npt.NDArray[np.int64], npt.NDArray[np.bool_]]],
    dictionaries: Mapping[str, _Dictionary],
) -> pa.RecordBatch:
    rows = len(parts[0][2])
    numbers: dict[str, npt.NDArray[Any]] = {}
    kinds = np.zeros(rows, np.int8)
    for section, chosen, where in parts:
        if not len(chosen):
            continue
        kinds[where] = KINDS.index(section.kind)
        for name, values in section.columns(chosen).items():
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
