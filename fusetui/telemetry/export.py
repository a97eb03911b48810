"""Canonical batches to the formats other tools read, streaming: memory holds one batch."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import IO, Final

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet

from fusetui.telemetry.export_chrome import write_chrome
from fusetui.telemetry.export_perfetto import write_perfetto
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import SCHEMA

Writer = Callable[[IO[bytes], Header, Iterable[pa.RecordBatch]], int]

# Written as plain text columns: dictionaries change from batch to batch, which these formats cannot follow.
_PLAIN: Final = pa.schema(
    [pa.field(f.name, pa.utf8() if isinstance(f.type, pa.DictionaryType) else f.type, f.nullable) for f in SCHEMA]
)


def write_parquet(sink: IO[bytes], header: Header, batches: Iterable[pa.RecordBatch]) -> int:
    """Parquet, zstd, the header in the schema metadata; returns the rows written."""
    rows = 0
    schema = _PLAIN.with_metadata(header.to_metadata())
    with pa_parquet.ParquetWriter(sink, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch.cast(_PLAIN))
            rows += batch.num_rows
    return rows


def write_csv(sink: IO[bytes], header: Header, batches: Iterable[pa.RecordBatch]) -> int:
    """CSV with a header line; absent values are empty fields; returns the rows written."""
    rows = 0
    with pa_csv.CSVWriter(sink, _PLAIN) as writer:
        for batch in batches:
            writer.write_batch(batch.cast(_PLAIN))
            rows += batch.num_rows
    return rows


def write_json(sink: IO[bytes], header: Header, batches: Iterable[pa.RecordBatch]) -> int:
    """JSON lines, one event a line, absent values left out; returns the rows written."""
    rows = 0
    for batch in batches:
        for event in batch.to_pylist():
            present = {name: value for name, value in event.items() if value is not None}
            sink.write(json.dumps(present, ensure_ascii=False, allow_nan=False).encode() + b"\n")
        rows += batch.num_rows
    return rows


def write_arrows(sink: IO[bytes], header: Header, batches: Iterable[pa.RecordBatch]) -> int:
    """The contract itself: an Arrow IPC stream, zstd; returns the rows written."""
    rows = 0
    schema = SCHEMA.with_metadata(header.to_metadata())
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch.replace_schema_metadata(schema.metadata))
            rows += batch.num_rows
    return rows


WRITERS: Final[dict[str, Writer]] = {
    "arrows": write_arrows,
    "parquet": write_parquet,
    "csv": write_csv,
    "json": write_json,
    "chrome": write_chrome,
    "perfetto": write_perfetto,
}
