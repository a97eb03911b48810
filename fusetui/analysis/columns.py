"""Contract batches as plain numpy columns: words become small ids that mean the same in every batch of a run.

Tables of words and of places are bounded: what comes after they are full shares one entry, "(others)".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fusetui.analysis.arrays import Bools, Codes, Floats, Ints, repeated
from fusetui.analysis.keys import Keys
from fusetui.telemetry.schema import KINDS, MAPPINGS, SCHEMA

NULL: Final = -(1 << 63)
"""Stands for a null in int64 columns."""
EXECUTION, REQUEST, COUNTER, MARK = range(4)
OTHERS: Final = "(others)"
MAX_WORDS: Final = 1 << 16


@dataclass(slots=True)
class Columns:
    """Rows as arrays of shape (n,). Times int64 ns, NULL where null; ids int32, -1 where null.

    kind     EXECUTION, REQUEST, COUNTER, MARK; 4 for anything else
    node     0 for null
    mapping  index in MAPPINGS
    plan, shape  ids of their words
    batch    0 for null
    stream   id of (host, stream); place: id of (host, device, core), see `Places`
    event    event time: end, else start, else enqueue
    """

    kind: Codes
    name: Codes
    host: Codes
    stream: Codes
    place: Codes
    device: Codes
    node: Codes
    group: Codes
    mapping: Codes
    plan: Codes
    shape: Codes
    batch: Codes
    unit: Codes
    enqueue: Ints
    start: Ints
    end: Ints
    launch: Ints
    request: Ints
    value: Floats
    event: Ints

    def __len__(self) -> int:
        return len(self.kind)

    def take(self, keep: Bools | Ints | slice) -> Columns:
        """Some of the rows, none twice, in any order."""
        if isinstance(keep, slice) and keep == slice(None):
            return self
        kind, end = self.kind[keep], self.end[keep]
        taken: dict[str, Any] = {"kind": kind, "end": end}
        for name in _NAMES:
            column = getattr(self, name)
            if name not in taken:
                one_value = column.strides == (0,)
                taken[name] = end if column is self.end else column[: len(kind)] if one_value else column[keep]
        return Columns(**taken)

    def without_detail(self) -> Columns:
        """The rows without what no slot needs: null columns are not moved when rows are taken or sorted."""
        n = len(self)
        none, never, nan = repeated(-1, n, np.int32), repeated(NULL, n, np.int64), repeated(np.nan, n, np.float64)
        return replace(
            self, name=none, host=none, device=none, group=none, plan=none, shape=none, batch=none, unit=none,
            request=never, value=nan,
        )  # fmt: skip


_NAMES: Final = tuple(f.name for f in fields(Columns))


def concat(parts: Sequence[Columns]) -> Columns:
    """All rows of several parts, at least one; a column that is one value seen n times stays that."""
    if len(parts) == 1:
        return parts[0]
    joined = {name: _joined([getattr(part, name) for part in parts]) for name in _NAMES if name != "event"}
    by_end = all(part.event is part.end for part in parts)
    event = joined["end"] if by_end else np.concatenate([part.event for part in parts])
    return Columns(**joined, event=event)


def _joined(columns: Sequence[Any]) -> Any:
    first = columns[0]
    kinds = {(column.strides, column.dtype, column[:1].tobytes()) for column in columns}
    if len(first) and first.strides == (0,) and len(kinds) == 1:
        return repeated(first[0], sum(map(len, columns)), first.dtype)
    return np.concatenate(columns)


class Words:
    """Strings to ids, first come first kept; id 0 is OTHERS."""

    def __init__(self, limit: int = MAX_WORDS, known: Sequence[str] | None = None) -> None:
        self._fixed = known is not None
        self.words: list[str] = list(known) if known is not None else [OTHERS]
        self._ids = {word: i for i, word in enumerate(self.words)}
        self._limit = limit
        self.overflowed = False
        self._last: tuple[int, int, int] | None = None
        self._last_dictionary: pa.Array | None = None
        self._last_ids: Codes = np.full(1, -1, np.int32)
        # Where ids are the dictionary's own codes but for a difference, that is faster than looking them up.
        self._step: np.int32 | None = None

    def ids(self, column: pa.Array) -> Codes:
        """Ids of a dictionary column (n,); -1 for null, and for words outside a fixed list `len(known)`."""
        if column.null_count == len(column):
            return _same(-1, len(column))
        if not isinstance(column, pa.DictionaryArray):
            column = column.cast(pa.utf8()).dictionary_encode()
        ids = self._of_dictionary(column.dictionary)
        if self._step is not None and column.null_count == 0:
            codes: Codes = column.indices.to_numpy()
            return codes + self._step if self._step else codes
        return ids[plain(column.indices, -1)]

    def _of_dictionary(self, dictionary: pa.Array) -> Codes:
        key = dictionary_key(dictionary)
        if key != self._last:
            ids = [-1 if word is None else self._id(word) for word in dictionary.to_pylist()]
            self._last_ids = np.array([*ids, -1], np.int32)
            in_order = ids == list(range(ids[0], ids[0] + len(ids))) if ids else False
            self._step = np.int32(ids[0]) if in_order else None
            self._last, self._last_dictionary = key, dictionary
        return self._last_ids

    def _id(self, word: str) -> int:
        found = self._ids.get(word)
        if found is not None:
            return found
        if self._fixed:
            return len(self.words)
        if len(self.words) >= self._limit:
            self.overflowed = True
            return 0
        self._ids[word] = len(self.words)
        self.words.append(word)
        return len(self.words) - 1


class Reader:
    """Turns the canonical batches of one run into Columns, with one set of ids for all of them.

    max_streams, max_places  distinct streams and places kept apart; the id `max_streams` (`max_places`) is the rest
    """

    def __init__(self, max_streams: int = 256, max_places: int = 64 * 256) -> None:
        self.names = Words()
        self.hosts = Words(1 << 12)
        self.stream_words = Words()
        self.units = Words(256)
        self.plans, self.shapes = Words(), Words()
        self.streams = Keys(max_streams)
        self.places = Keys(max_places)
        self._kinds = Words(known=KINDS)
        self._mappings = Words(known=MAPPINGS)
        self.seen: dict[str, int] = {}

    def read(self, batch: pa.RecordBatch) -> Columns:
        """The batch as Columns; columns it lacks are null."""
        schema = batch.schema
        column = {}
        for field in SCHEMA:
            at = schema.get_field_index(field.name)
            column[field.name] = batch.column(at) if at >= 0 else pa.nulls(len(batch), field.type)
        self.seen = {name: len(batch) - values.null_count for name, values in column.items()}
        start, end = plain(column["start_ns"], NULL), plain(column["end_ns"], NULL)
        enqueue = plain(column["enqueue_ns"], NULL)
        host, device = self.hosts.ids(column["host"]), plain(column["device"], -1)
        mapping = self._mappings.ids(column["mapping"])
        return Columns(
            kind=self._kinds.ids(column["kind"]).astype(np.int8),
            name=self.names.ids(column["name"]),
            host=host,
            stream=self.streams.ids(host, self.stream_words.ids(column["stream"])),
            place=self.places.ids(host, device, plain(column["core"], -1)),
            device=device,
            node=plain(column["node"], 0),
            group=plain(column["group"], -1),
            mapping=_known(mapping, len(MAPPINGS)),
            plan=self.plans.ids(column["plan"]),
            shape=self.shapes.ids(column["shape"]),
            batch=plain(column["batch"], 0),
            unit=self.units.ids(column["unit"]),
            enqueue=enqueue,
            start=start,
            end=end,
            launch=plain(column["launch_ns"], NULL),
            request=plain(column["request"], NULL),
            value=_floats(column["value"]),
            event=_event_time(enqueue, start, end, column),
        )


def _known(codes: Codes, words: int) -> Codes:
    """Ids in a fixed list, -1 for words outside it."""
    return codes if codes.strides == (0,) else np.where(codes < words, codes, -1).astype(np.int8)


def _event_time(enqueue: Ints, start: Ints, end: Ints, column: dict[str, pa.Array]) -> Ints:
    if column["end_ns"].null_count == 0:
        return end
    event = np.where(end == NULL, start, end)
    return np.where(event == NULL, enqueue, event)


def dictionary_key(dictionary: pa.Array) -> tuple[int, int, int]:
    """Tells dictionaries apart while they are held: batches of one stream share theirs."""
    data = dictionary.buffers()[-1]
    return (data.address if data is not None else 0, len(dictionary), dictionary.offset)


def plain(column: pa.Array, missing: int) -> Ints:
    """An integer column as numpy with `missing` for null; all null: one value seen n times (stride 0).

    The integers keep their width.
    """
    values: Ints
    if column.null_count == len(column):
        return repeated(missing, len(column), column.type.to_pandas_dtype())
    if column.null_count:
        column = pc.fill_null(column, missing)
    values = column.to_numpy(zero_copy_only=False)
    return values


def _floats(column: pa.Array) -> Floats:
    values: Floats
    if column.null_count == len(column):
        return repeated(np.nan, len(column), np.float64)
    if column.null_count:
        column = pc.fill_null(column, float("nan"))
    values = column.to_numpy(zero_copy_only=False)
    return values


def _same(code: int, n: int) -> Codes:
    return repeated(code, n, np.int32)
