"""Small batches with known content, and the bytes of streams made of them."""

from __future__ import annotations

import io
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import build_batch
from fusetui.telemetry.writer import Compression, StreamWriter

HEADER = Header(source="test", host="box", hardware={"device 0": "H100"}, slo_ns=5_000_000)


def numbered(first: int, rows: int) -> pa.RecordBatch:
    """Executions whose `request` counts up from `first`; row i runs from 1000*i to 1000*i + 500 ns."""
    number = np.arange(first, first + rows)
    return build_batch(
        {
            "kind": "execution",
            "name": [f"kernel_{i % 7}" for i in number],
            "enqueue_ns": number * 1000 - 100,
            "start_ns": number * 1000,
            "end_ns": number * 1000 + 500,
            "request": number,
            "core": number % 4,
            "stream": ["decode" if i % 3 else "prefill" for i in number],
            "mapping": "planned",
            "flops": number * 2.5,
        }
    )


def stream_of(batches: Iterable[pa.RecordBatch], compression: Compression = None) -> bytes:
    """A whole stream, with its end-of-stream marker."""
    sink = io.BytesIO()
    with StreamWriter(sink, HEADER, compression) as writer:
        for batch in batches:
            writer.write(batch)
    return sink.getvalue()


def foreign_stream(batches: list[pa.RecordBatch]) -> bytes:
    """A stream in any schema, as another program would write it."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue()


def requests(batches: Iterable[pa.RecordBatch]) -> list[int]:
    """The numbers in the `request` column, in order."""
    return [n for batch in batches for n in batch.column("request").to_pylist()]
