"""Read contract batches from any blocking binary file: a socket, a pipe, standard input."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from fusetui.telemetry.decoder import BatchDecoder, Chains, Frame, extend_chains
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.footer import FILE_MAGIC
from fusetui.telemetry.framing import PREFIX_BYTES, Message, metadata_length, parse_message
from fusetui.telemetry.guard import DEFAULT_LIMITS, BinaryReader, GuardedReader, Limits, refuse_foreign
from fusetui.telemetry.header import Header
from fusetui.telemetry.stamp import RUN_KEY
from fusetui.telemetry.text import safe_text

_MAX_BAD_IN_A_ROW: Final = 100


class StreamReader:
    """Iterates over the canonical batches of an Arrow IPC stream, and of the streams that follow it on the same input.

    A bad batch is counted and skipped while the framing still holds; otherwise, and when the schema does not fit,
    TelemetryError is raised and the reader is done. The end of the input ends the iteration, wherever it comes.

    batches, rows, bytes_in  taken in
    rejected, bad_rows       batches that were refused, rows dropped as impossible; `last_error` tells the latest
    streams                  streams begun
    ended                    the last stream ended with its end-of-stream marker
    cut_bytes                bytes of a last message that was not whole
    run, stamp               what the sender says of the newest stream and batch, see `fusetui.telemetry.stamp`
    """

    def __init__(self, file: BinaryReader, where: str, limits: Limits = DEFAULT_LIMITS) -> None:
        self._input = GuardedReader(file, where, limits)
        self._where = where
        self._limits = limits
        self._decoder: BatchDecoder | None = None
        self._header: Header | None = None
        self._chains: Chains = {}
        self._dictionaries: dict[int, Frame] = {}
        self._dictionary_bytes = 0
        self._next_key = 0
        self._is_file = False
        self._number = 0
        self.batches = self.rows = self.rejected = self.bad_rows = self.streams = self.cut_bytes = 0
        self.last_error = ""
        self.stamp = b""
        self.run = ""
        self.ended = False

    @property
    def bytes_in(self) -> int:
        return self._input.taken

    @property
    def header(self) -> Header:
        """The header of the newest stream; waits for the first schema. Raises TelemetryError when none comes."""
        if self._header is None and not self._next_stream():
            raise TelemetryError(self._where, "nothing came", "is the producer running?")
        assert self._header is not None
        return self._header

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        bad_in_a_row = 0
        while self._decoder is not None or self._next_stream():
            frame = self._next_frame()
            if frame is None:
                if self.ended and not self._is_file:
                    self._decoder = None
                    continue
                return
            if frame.message.kind == "dictionary":
                self._keep_dictionary(frame)
                continue
            try:
                batch = self._take(frame)
            except TelemetryError as error:
                self.rejected += 1
                self.last_error = str(error)
                bad_in_a_row += 1
                if bad_in_a_row >= _MAX_BAD_IN_A_ROW:
                    raise
                continue
            bad_in_a_row = 0
            yield batch

    def _take(self, frame: Frame) -> pa.RecordBatch:
        """The batch in a frame. Raises TelemetryError when it is to be skipped."""
        where = f"{self._where} batch {self._number}"
        self._number += 1
        if frame.message.kind != "batch" or self._decoder is None:
            raise TelemetryError(where, "a schema in the middle of a stream")
        self.stamp = frame.message.stamp
        raw = self._decoder.decode(frame, self._chains, self._dictionaries.__getitem__, where)
        batch, bad = self._decoder.gate.conform(raw, where)
        self.batches += 1
        self.rows += batch.num_rows
        self.bad_rows += bad
        return batch

    def _keep_dictionary(self, frame: Frame) -> None:
        """Raises TelemetryError, which ends the reader: later batches would be read with the wrong words."""
        old = self._chains.get(frame.message.dictionary, ())
        self._chains = extend_chains(self._chains, frame.message, self._next_key, self._where)
        self._dictionaries[self._next_key] = frame
        self._next_key += 1
        self._dictionary_bytes += len(frame.body)
        if not frame.message.delta:
            for key in old:
                self._dictionary_bytes -= len(self._dictionaries.pop(key).body)
        if self._dictionary_bytes > self._limits.dictionary:
            raise TelemetryError(self._where, "dictionaries are over the limit", "start a new stream now and then")

    def _next_stream(self) -> bool:
        """Read a schema; False at the end of the input."""
        frame = None
        while frame is None:
            prefix = self._input.read(PREFIX_BYTES)
            if self.streams == 0 and prefix == FILE_MAGIC:
                self._is_file = True
                prefix = self._input.read(PREFIX_BYTES)
            if not prefix:
                return False
            if len(prefix) >= 4:
                refuse_foreign(prefix, self._where)
            frame = self._rest(prefix)
            if self.cut_bytes:
                self.ended = False
                return False
        if frame.message.kind != "schema":
            raise TelemetryError(self._where, f"the stream begins with a {frame.message.kind}, not with a schema")
        self._decoder = BatchDecoder(frame, self._where, self._limits)
        metadata = self._decoder.gate.metadata
        self._header = Header.from_metadata(metadata, self._where)
        self.run = safe_text((metadata or {}).get(RUN_KEY, b"").decode("ascii", "replace"), 64)
        self._chains, self._dictionaries, self._dictionary_bytes = {}, {}, 0
        self.streams += 1
        self.ended = False
        return True

    def _next_frame(self) -> Frame | None:
        """The next message; None at the end of the stream (`ended`) or of the input."""
        prefix = self._input.read(PREFIX_BYTES)
        return self._rest(prefix) if prefix else None

    def _rest(self, prefix: bytes) -> Frame | None:
        if len(prefix) < PREFIX_BYTES:
            self.cut_bytes = len(prefix)
            return None
        length = metadata_length(prefix, self._where, self._limits)
        if length == 0:
            self.ended = True
            return None
        metadata = self._input.read(length)
        if len(metadata) < length:
            self.cut_bytes = PREFIX_BYTES + len(metadata)
            return None
        message: Message = parse_message(metadata, self._where, self._limits)
        body = self._input.read_body(message.body_bytes)
        if len(body) < message.body_bytes:
            self.cut_bytes = PREFIX_BYTES + length + len(body)
            return None
        return Frame(message, prefix + metadata, body)
