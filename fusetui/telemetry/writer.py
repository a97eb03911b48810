"""Write contract batches as an Arrow IPC stream that any Arrow reader takes."""

from __future__ import annotations

from types import TracebackType
from typing import Final, Literal, Protocol, Self

import pyarrow as pa
import pyarrow.compute as pc

from fusetui.telemetry.framing import PREFIX_BYTES
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import SCHEMA
from fusetui.telemetry.stamp import STAMP_KEY

Compression = Literal["zstd", "lz4"] | None


MAX_BATCH_ROWS: Final = 131_072


class BinaryWriter(Protocol):
    """Anything with a `write`: a file, a pipe, `socket.makefile("wb")`."""

    def write(self, data: bytes, /) -> object: ...


class _Sink:
    """Collects one message in memory, so that it leaves in a single write."""

    closed = False

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        whole = b"".join(self._parts)
        self._parts.clear()
        return whole

    def writable(self) -> bool:
        return True

    def flush(self) -> None:
        """Nothing lies behind it."""

    def close(self) -> None:
        """Nothing to release."""


class Encoder:
    """Batches to the bytes of one IPC stream, a message at a time: `start()`, `encode()`…, `end()`."""

    def __init__(
        self, header: Header, compression: Compression = None, extra_metadata: dict[bytes, bytes] | None = None
    ) -> None:
        schema = SCHEMA.with_metadata({**header.to_metadata(), **(extra_metadata or {})})
        self._schema: bytes = schema.serialize().to_pybytes()
        self._begun = False
        options = pa.ipc.IpcWriteOptions(compression=compression, use_threads=False)
        self._sink = _Sink()
        self._writer = pa.ipc.new_stream(pa.PythonFile(self._sink, mode="w"), schema, options=options)

    def start(self) -> bytes:
        """The schema message."""
        return self._schema

    def parts(self, batch: pa.RecordBatch) -> list[pa.RecordBatch]:
        """The batch in pieces that every reader's limits admit, at most MAX_BATCH_ROWS rows each."""
        return parts_of(batch)

    def encode(self, batch: pa.RecordBatch, stamp: bytes | None = None) -> bytes:
        """The batch with the dictionaries that changed. Raises pyarrow.ArrowInvalid when it is not in SCHEMA.

        stamp  goes beside the batch, see `fusetui.telemetry.stamp`
        """
        self._writer.write_batch(compacted(batch), custom_metadata=None if stamp is None else {STAMP_KEY: stamp})
        return self._take()

    def end(self) -> bytes:
        """The end-of-stream marker."""
        self._writer.close()
        return self._take()

    def _take(self) -> bytes:
        data = self._sink.take()
        if self._begun:
            return data
        # The writer holds its schema back until the first batch; ours has gone out already, so a reader that waits
        # for a quiet producer knows the header. A schema message has no body.
        self._begun = True
        return data[PREFIX_BYTES + int.from_bytes(data[4:8], "little") :]


class StreamWriter:
    """Writes canonical batches to a binary sink, a message in one `write`. Errors of the sink pass through.

    The schema goes out at once. A context manager; leaving it writes the end-of-stream marker.
    """

    def __init__(self, sink: BinaryWriter, header: Header, compression: Compression = None) -> None:
        self._sink = sink
        self._encoder = Encoder(header, compression)
        self._closed = False
        sink.write(self._encoder.start())

    def write(self, batch: pa.RecordBatch) -> None:
        """Write one batch, a large one in parts. Raises pyarrow.ArrowInvalid when it is not in SCHEMA."""
        for part in self._encoder.parts(batch):
            self._sink.write(self._encoder.encode(part))

    def close(self) -> None:
        """Write the end-of-stream marker, once; the sink stays open."""
        if not self._closed:
            self._closed = True
            self._sink.write(self._encoder.end())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def parts_of(batch: pa.RecordBatch) -> list[pa.RecordBatch]:
    """The batch in pieces that every reader's limits admit, at most MAX_BATCH_ROWS rows each."""
    return [batch.slice(start, MAX_BATCH_ROWS) for start in range(0, batch.num_rows, MAX_BATCH_ROWS)]


def compacted(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with dictionaries cut to the words it uses, where they are much larger than it."""
    columns = batch.columns
    changed = False
    for number, column in enumerate(columns):
        if isinstance(column.type, pa.DictionaryType) and len(column.dictionary) > 2 * len(column) + 64:
            columns[number] = _used_words(column)
            changed = True
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema) if changed else batch


def _used_words(column: pa.DictionaryArray) -> pa.DictionaryArray:
    encoded = column.indices.dictionary_encode()
    words = pc.take(column.dictionary, encoded.dictionary)
    return pa.DictionaryArray.from_arrays(encoded.indices.cast(column.type.index_type), words)
