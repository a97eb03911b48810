"""The telemetry contract, version 1: one flat Arrow schema for every event, live, replayed or simulated.

Any Arrow tool reads it. Times are integer nanoseconds, since the Unix epoch or since the start of the trace
(header `clock`). Absent is null, never 0 and never NaN. Rows are in completion order with bounded disorder.

| column | type | meaning |
| --- | --- | --- |
| kind | dictionary<int8, utf8> | execution, request, counter, mark |
| name | dictionary<int32, utf8> | kernel, operator, counter or mark name |
| enqueue_ns | int64? | handed to the runtime queue; from profilers: the end of the launch call |
| start_ns, end_ns | int64? | began and finished; equal for counters and marks; null only for open work (see below) |
| launch_ns | int64? | host time spent in the launch call |
| node | int32? | position in a graph launch on its stream: 0 or null waited in the queue, k > 0 followed node k-1 |
| host | dictionary<int16, utf8>? | machine or rank, when a trace or a view holds several |
| device, core | int32? | where it ran |
| stream | dictionary<int32, utf8>? | the queue it was put in |
| request | int64? | request or step it served |
| plan | dictionary<int32, utf8>? | compile plan |
| group | int32? | fusion group in the plan |
| mapping | dictionary<int8, utf8>? | planned, adapted, fallback |
| shape | dictionary<int32, utf8>? | canonical shape key, e.g. `m=4096 n=11008 k=4096 bf16` |
| batch | int32? | requests or rows batched together |
| flops | float64? | measured work; a modelled value never goes in here |
| dram_bytes, sram_bytes | int64? | measured traffic |
| value | float64? | a counter's reading |
| unit | dictionary<int8, utf8>? | a counter's unit |

Open work: a row of kind execution or request whose end_ns is null is still running, and whose start_ns is null
too still waits (enqueue_ns set). It is sent at most once a second and superseded by the later row of the same
(host, stream, request).

Optional columns may be missing and unknown columns are ignored: see `fusetui.telemetry.gate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

CONTRACT_VERSION: Final = 1

EXECUTION: Final = "execution"
REQUEST: Final = "request"
COUNTER: Final = "counter"
MARK: Final = "mark"
KINDS: Final = (EXECUTION, REQUEST, COUNTER, MARK)

PLANNED: Final = "planned"
ADAPTED: Final = "adapted"
FALLBACK: Final = "fallback"
MAPPINGS: Final = (PLANNED, ADAPTED, FALLBACK)

REQUIRED: Final = ("kind", "name", "start_ns", "end_ns")
"""Columns that must be present in any input; every other column is optional."""


def _words(index: pa.DataType) -> pa.DataType:
    return pa.dictionary(index, pa.utf8())


SCHEMA: Final[pa.Schema] = pa.schema(
    [
        pa.field("kind", _words(pa.int8()), nullable=False),
        pa.field("name", _words(pa.int32()), nullable=False),
        pa.field("enqueue_ns", pa.int64()),
        pa.field("start_ns", pa.int64()),
        pa.field("end_ns", pa.int64()),
        pa.field("launch_ns", pa.int64()),
        pa.field("node", pa.int32()),
        pa.field("host", _words(pa.int16())),
        pa.field("device", pa.int32()),
        pa.field("core", pa.int32()),
        pa.field("stream", _words(pa.int32())),
        pa.field("request", pa.int64()),
        pa.field("plan", _words(pa.int32())),
        pa.field("group", pa.int32()),
        pa.field("mapping", _words(pa.int8())),
        pa.field("shape", _words(pa.int32())),
        pa.field("batch", pa.int32()),
        pa.field("flops", pa.float64()),
        pa.field("dram_bytes", pa.int64()),
        pa.field("sram_bytes", pa.int64()),
        pa.field("value", pa.float64()),
        pa.field("unit", _words(pa.int8())),
    ]
)


def build_batch(columns: Mapping[str, Any], rows: int | None = None) -> pa.RecordBatch:
    """A canonical batch from some columns; the others are null.

    columns  name -> Arrow array, numpy array or sequence of `rows` values; a plain str or int fills the column.
             Dictionary columns take Arrow dictionary arrays or sequences of str.
    rows     needed only when every column is a fill value
    Errors: ValueError for an unknown column or unequal lengths, pyarrow.ArrowInvalid for values of a wrong type.
    """
    unknown = set(columns) - set(SCHEMA.names)
    if unknown:
        raise ValueError(f"not a column of the contract: {', '.join(sorted(unknown))}")
    if rows is None:
        rows = next(len(v) for v in columns.values() if not isinstance(v, (str, int, float)))
    arrays = [_column(field, columns.get(field.name), rows) for field in SCHEMA]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _column(field: pa.Field, values: Any, rows: int) -> pa.Array:
    if values is None:
        return pa.nulls(rows, field.type)
    if isinstance(values, (str, int, float)):
        if isinstance(field.type, pa.DictionaryType):
            codes = pa.repeat(pa.scalar(0, field.type.index_type), rows)
            return pa.DictionaryArray.from_arrays(codes, pa.array([values], pa.utf8()))
        return pa.repeat(pa.scalar(values, field.type), rows)
    array = values if isinstance(values, pa.Array) else pa.array(values)
    if len(array) != rows:
        raise ValueError(f"column {field.name} has {len(array)} rows, expected {rows}")
    if array.type == field.type:
        return array
    if isinstance(field.type, pa.DictionaryType):
        if not isinstance(array.type, pa.DictionaryType):
            array = array.cast(pa.utf8()).dictionary_encode()
        return pa.DictionaryArray.from_arrays(
            array.indices.cast(field.type.index_type), array.dictionary.cast(pa.utf8())
        )
    return array.cast(field.type)
