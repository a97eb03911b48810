"""Producers for the tests: plain pyarrow over sockets, as any program would send."""

from __future__ import annotations

import io
import socket
import time
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from fusetui.sources.arrow import ArrowSource
from fusetui.sources.arrow_listen import Address
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import SCHEMA, build_batch

Open = Callable[..., ArrowSource]
"""The fixture `open_arrow`."""


def batch(rows: int, *, first: int = 0, at_ns: int | None = None, **more: object) -> pa.RecordBatch:
    """Executions with `request` counting up from `first`."""
    end = (time.time_ns() if at_ns is None else at_ns) + np.arange(rows, dtype=np.int64)
    columns = {"kind": "execution", "name": "gemm", "start_ns": end - 100, "end_ns": end, "stream": "s"}
    return build_batch({**columns, "request": np.arange(first, first + rows, dtype=np.int64), **more})


def stream(batches: Sequence[pa.RecordBatch], header: Header | None = None) -> bytes:
    """One Arrow IPC stream."""
    sink = io.BytesIO()
    schema = SCHEMA.with_metadata((header or Header(source="test")).to_metadata())
    with pa.ipc.new_stream(sink, schema) as writer:
        for one in batches:
            writer.write_batch(pa.RecordBatch.from_arrays(one.columns, schema=schema))
    return sink.getvalue()


def connect(address: Address) -> socket.socket:
    """A client of a listening source."""
    if address.kind == "unix":
        client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        client.connect(address.path)
        return client
    return socket.create_connection((address.host, address.port), timeout=5)


def send(address: Address, data: bytes) -> None:
    """Connect, send everything, go."""
    with connect(address) as client:
        client.sendall(data)


def gather(source: ArrowSource, enough: Callable[[list[pa.RecordBatch]], bool], limit_s: float = 8.0) -> pa.Table:
    """Poll until enough has come; fails the test after `limit_s`."""
    batches: list[pa.RecordBatch] = []
    deadline = time.monotonic() + limit_s
    while not enough(batches):
        assert time.monotonic() < deadline, f"only {sum(b.num_rows for b in batches)} rows, {source.health()}"
        batches += source.poll(0.1)
    table = pa.Table.from_batches(batches, SCHEMA)
    table.validate(full=True)
    return table


def gather_rows(source: ArrowSource, rows: int) -> pa.Table:
    """Poll until that many rows have come."""
    return gather(source, lambda batches: sum(b.num_rows for b in batches) >= rows)


def until(condition: Callable[[], bool], limit_s: float = 8.0) -> None:
    """Wait for something other threads do."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)
