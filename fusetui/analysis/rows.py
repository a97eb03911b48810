"""The rows behind a number: the slowest, or the newest, of those that fit a query."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
import pyarrow as pa

from fusetui.analysis.arrays import Bools, Ints
from fusetui.analysis.columns import EXECUTION, NULL, REQUEST, Columns, Reader
from fusetui.analysis.durations import LATENCY, SERVICE, WAIT, durations
from fusetui.analysis.filter import Filter
from fusetui.analysis.naming import core_label, stream_name
from fusetui.telemetry.schema import SCHEMA

if TYPE_CHECKING:
    import polars as pl

DURATIONS: Final = {WAIT: "wait_ns", SERVICE: "service_ns", LATENCY: "latency_ns"}
_RESULT: Final = pa.schema(
    [pa.field(f.name, pa.utf8() if isinstance(f.type, pa.DictionaryType) else f.type) for f in SCHEMA]
    + [pa.field(name, pa.int64()) for name in DURATIONS.values()]
)


@dataclass(frozen=True, slots=True)
class RowQuery:
    """Which rows, in which order.

    order       largest latency, wait or service first; "time": newest first
    stream, core_label  as a snapshot names them
    plan, shape         words of those columns, "" for rows without one, None: any
    from_ns, to_ns      event times in [from_ns, to_ns]
    limit       most rows returned
    """

    order: Literal["latency", "wait", "service", "time"] = "latency"
    kind: Literal["execution", "request", "any"] = "any"
    stream: str | None = None
    core_label: str | None = None
    plan: str | None = None
    shape: str | None = None
    from_ns: int | None = None
    to_ns: int | None = None
    limit: int = 1000


def rows(batches: Iterable[pa.RecordBatch], query: RowQuery, only: Filter | None = None) -> pl.DataFrame:
    """The contract columns of the rows that fit, with wait_ns, service_ns and latency_ns, at most `query.limit`.

    Only the best rows of each batch are looked at twice; nothing is sorted but the result.
    """
    reader = Reader()
    limit = max(query.limit, 0)
    best: list[pa.RecordBatch] = []
    keys: list[Ints] = []
    held = 0
    for batch in batches:
        if only is not None:
            batch = only.apply(batch)
        if len(batch) == 0 or limit == 0:
            continue
        columns = reader.read(batch)
        known = durations(batch)
        key = columns.event if query.order == "time" else known[query.order]
        chosen = np.flatnonzero(_fits(reader, columns, query))
        top = chosen[_largest(key[chosen], limit)]
        if top.size == 0:
            continue
        best.append(_result(batch, top, known))
        keys.append(key[top])
        held += top.size
        if held > 8 * limit:
            best, keys = _best_of(best, keys, limit)
            held = len(best[0])
    if not best:
        return _frame(pa.table([pa.array([], f.type) for f in _RESULT], schema=_RESULT))
    best, keys = _best_of(best, keys, limit)
    order = np.argsort(keys[0], kind="stable")
    return _frame(pa.Table.from_batches(best).take(pa.array(order[::-1])))


def _frame(table: pa.Table) -> pl.DataFrame:
    import polars as pl  # only a drill-down needs it: the first frame must not wait for it

    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame


def _fits(reader: Reader, columns: Columns, query: RowQuery) -> Bools:
    fits = np.ones(len(columns), np.bool_)
    if query.kind != "any":
        fits &= columns.kind == (EXECUTION if query.kind == "execution" else REQUEST)
    if query.from_ns is not None:
        fits &= (columns.event >= query.from_ns) & (columns.event != NULL)
    if query.to_ns is not None:
        fits &= columns.event <= query.to_ns
    if query.stream is not None:
        named = [
            query.stream in (stream_name(reader, key, False), stream_name(reader, key, True))
            for key in range(len(reader.streams.keys) + 1)
        ]
        fits &= np.array(named)[np.minimum(columns.stream, len(named) - 1)]
    for codes, words, word in ((columns.plan, reader.plans, query.plan), (columns.shape, reader.shapes, query.shape)):
        if word is not None:
            known = words.words
            fits &= codes == (-1 if not word else known.index(word) if word in known else len(known))
    if query.core_label is not None:
        named = [
            query.core_label in (core_label(reader, place, False), core_label(reader, place, True))
            for place in range(len(reader.places.keys) + 1)
        ]
        fits &= np.array(named)[np.minimum(columns.place, len(named) - 1)]
    return fits


def _largest(key: Ints, limit: int) -> Ints:
    """Positions of the `limit` largest keys, in row order; (m,), m <= limit."""
    if key.size <= limit:
        return np.arange(key.size)
    return np.sort(np.argpartition(key, key.size - limit)[key.size - limit :])


def _best_of(best: list[pa.RecordBatch], keys: list[Ints], limit: int) -> tuple[list[pa.RecordBatch], list[Ints]]:
    key = np.concatenate(keys)
    top = _largest(key, limit)
    table = pa.Table.from_batches(best).take(pa.array(top)).combine_chunks()
    return table.to_batches(), [key[top]]


def _result(batch: pa.RecordBatch, top: Ints, known: dict[str, Ints]) -> pa.RecordBatch:
    at = pa.array(top)
    arrays = []
    for field in SCHEMA:
        index = batch.schema.get_field_index(field.name)
        values = batch.column(index).take(at) if index >= 0 else pa.nulls(len(top), field.type)
        arrays.append(values.cast(_RESULT.field(field.name).type))
    for name in DURATIONS:
        values = known[name][top]
        arrays.append(pa.array(values, pa.int64(), mask=values == NULL))
    return pa.RecordBatch.from_arrays(arrays, schema=_RESULT)
