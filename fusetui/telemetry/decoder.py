"""From checked IPC messages to record batches: one schema, its dictionaries, and batches in any order."""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

import pyarrow as pa

from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.framing import Message, decoded_bytes
from fusetui.telemetry.gate import Gate
from fusetui.telemetry.guard import Limits

DECODE_ERRORS: Final = (pa.ArrowException, OSError, ValueError, MemoryError, LookupError, OverflowError)
"""What pyarrow raises on damaged input."""

_MAX_DELTAS: Final = 10_000

Chains = dict[int, tuple[int, ...]]
"""Dictionary id -> keys of the message that set it and of the deltas since; a key is the caller's own number."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One whole message: the 8-byte prefix with the metadata, and the body."""

    message: Message
    head: bytes | memoryview
    body: bytes | memoryview


def extend_chains(chains: Chains, message: Message, key: int, where: str) -> Chains:
    """`chains` after a dictionary message; the argument stays as it is, batches before keep it."""
    known = chains.get(message.dictionary, ())
    if len(known) > _MAX_DELTAS:
        raise TelemetryError(where, f"a dictionary grew more than {_MAX_DELTAS} times")
    return {**chains, message.dictionary: (*known, key) if message.delta else (key,)}


class _Feed(io.RawIOBase):
    """A file that pyarrow reads messages from as they are pushed. Slices, so that batches share the frames' memory."""

    def __init__(self) -> None:
        self._parts: deque[memoryview] = deque()

    def push(self, frame: Frame) -> None:
        self._parts.append(memoryview(frame.head))
        if len(frame.body):
            self._parts.append(memoryview(frame.body))

    def drained(self) -> bool:
        return not self._parts

    def readable(self) -> Literal[True]:
        return True

    def read(self, size: int = -1) -> memoryview | bytes:
        if not self._parts or size < 0:
            return b""
        part = self._parts.popleft()
        if len(part) > size:
            self._parts.appendleft(part[size:])
            return part[:size]
        if len(part) == size or not self._parts:
            return part
        return b"".join((part, self.read(size - len(part))))


class BatchDecoder:
    """Decodes the batches of one stream, whichever order they are asked in.

    gate  the schema gate the batches pass next
    """

    def __init__(self, schema: Frame, where: str, limits: Limits) -> None:
        """Raises TelemetryError when the schema is damaged or does not fit the contract."""
        self._limits = limits
        self._schema = schema
        try:
            arrow_schema = pa.ipc.read_schema(pa.py_buffer(bytes(schema.head)))
        except DECODE_ERRORS as error:
            raise TelemetryError(where, f"damaged schema ({error})") from None
        self.gate = Gate(arrow_schema, where, limits)
        self._options = pa.ipc.IpcReadOptions(use_threads=False, included_fields=self.gate.fields)
        self._forget()

    def _forget(self) -> None:
        self._reader: pa.RecordBatchStreamReader | None = None
        self._feed = _Feed()
        self._loaded: Chains = {}
        self._sizes: dict[int, int] = {}

    def decode(
        self, batch: Frame, chains: Mapping[int, tuple[int, ...]], fetch: Callable[[int], Frame], where: str
    ) -> pa.RecordBatch:
        """The batch, not validated yet, with only the columns that `gate` asks for.

        chains  the dictionaries in force
        fetch   frame of a key in `chains`
        Errors: TelemetryError; the next call starts afresh and is not affected.
        """
        try:
            decoded_bytes(batch.message, batch.body, where, self._limits)
            if self._reader is None:
                self._feed.push(self._schema)
            self._load(chains, fetch, where)
            self._feed.push(batch)
            if self._reader is None:
                self._reader = pa.ipc.open_stream(pa.PythonFile(self._feed, mode="r"), options=self._options)
            decoded: pa.RecordBatch = self._reader.read_next_batch()
            if not self._feed.drained():
                raise TelemetryError(where, "messages do not follow one another as Arrow expects")
        except TelemetryError:
            self._forget()
            raise
        except (StopIteration, *DECODE_ERRORS) as error:
            self._forget()
            raise TelemetryError(where, f"damaged batch ({error or type(error).__name__})") from None
        return decoded

    def _load(self, chains: Mapping[int, tuple[int, ...]], fetch: Callable[[int], Frame], where: str) -> None:
        for key, chain in chains.items():
            known = self._loaded.get(key, ())
            if chain == known:
                continue
            grown = bool(known) and chain[: len(known)] == known
            size = self._sizes.get(key, 0) if grown else 0
            for number in chain[len(known) :] if grown else chain:
                frame = fetch(number)
                size += decoded_bytes(frame.message, frame.body, where, self._limits)
                self._feed.push(frame)
            self._loaded[key] = chain
            self._sizes[key] = size
        if sum(self._sizes.values()) > self._limits.dictionary:
            raise TelemetryError(where, "dictionaries are over the limit", "start a new stream now and then")
