"""Batches from Flight to a socket and back, with the stamps and answers beside them; runs in a child process."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Any, Final, Protocol

import pyarrow as pa

from fusetui.telemetry.header import METADATA_KEY, Header
from fusetui.telemetry.stamp import STAMP_KEY
from fusetui.telemetry.text import safe_text
from fusetui.telemetry.writer import MAX_BATCH_ROWS

_BUFFER_BYTES: Final = 1 << 20


class FlightReader(Protocol):
    """The part of a Flight stream reader that is used, either side's."""

    @property
    def schema(self) -> pa.Schema: ...
    def read_chunk(self) -> Any: ...


class Begun:
    """A Flight reader from which something has come: before, there is nobody to show to the viewer."""

    def __init__(self, reader: FlightReader) -> None:
        """Waits for the first batch, or the end. Raises what Flight raises."""
        self._reader = reader
        self._first: list[Any] = []
        self.schema = reader.schema
        with contextlib.suppress(StopIteration):
            self._first = [reader.read_chunk()]

    def read_chunk(self) -> Any:
        """The next one. Raises StopIteration at the end."""
        return self._first.pop() if self._first else self._reader.read_chunk()


def to_socket(reader: FlightReader, connection: socket.socket, name: str, whole: Callable[[], bool]) -> None:
    """Everything as an Arrow stream; the end-of-stream marker only when it came `whole`.

    name  of the stream when its schema has no header of ours
    Raises what Flight raises, and OSError when nobody reads.
    """
    schema = reader.schema
    if METADATA_KEY not in (schema.metadata or {}):
        header = Header(source=safe_text(name, 200) or "flight").to_metadata()
        schema = schema.with_metadata({**(schema.metadata or {}), **header})
    try:
        with connection.makefile("wb", _BUFFER_BYTES) as sink:
            writer = pa.ipc.new_stream(sink, schema)
            with contextlib.suppress(StopIteration):
                while True:
                    chunk = reader.read_chunk()
                    stamp = chunk.app_metadata.to_pybytes() if chunk.app_metadata is not None else b""
                    _write(writer, chunk.data, schema, stamp)
                    sink.flush()
            if whole():
                writer.close()
                sink.flush()
    finally:
        # Closing is not enough while another thread reads answers from it.
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_WR)


def _write(writer: Any, batch: pa.RecordBatch | None, schema: pa.Schema, stamp: bytes) -> None:
    """A batch, a large one in parts that the viewer admits, the last of them with the stamp."""
    if batch is None:
        batch = pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)
    last = max(0, (batch.num_rows - 1) // MAX_BATCH_ROWS)
    for number in range(last + 1):
        part = batch.slice(number * MAX_BATCH_ROWS, MAX_BATCH_ROWS)
        beside = {STAMP_KEY: stamp} if stamp and number == last else None
        writer.write_batch(part.replace_schema_metadata(schema.metadata), custom_metadata=beside)


def stamped(source: pa.RecordBatchStreamReader) -> tuple[pa.RecordBatch, bytes]:
    """The next batch of an Arrow stream with its stamp. Raises StopIteration at the end."""
    batch, beside = source.read_next_batch_with_custom_metadata()
    found = dict(beside).get(STAMP_KEY, b"") if beside is not None else b""
    return batch, found


def answers(connection: socket.socket, say: Callable[[bytes], object]) -> threading.Thread:
    """A thread that hands on each line the other side of a socket says, until it hangs up or nobody listens."""

    def listen() -> None:
        with contextlib.suppress(OSError, ValueError, pa.ArrowException), connection.makefile("rb") as lines:
            while line := lines.readline(_MAX_LINE):
                say(line)

    thread = threading.Thread(target=listen, name="fusetui-answers", daemon=True)
    thread.start()
    return thread


_MAX_LINE: Final = 4096
