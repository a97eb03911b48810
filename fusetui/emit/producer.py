"""The sending end: rows and batches into a bounded buffer, a thread that sends what is in it."""

from __future__ import annotations

import threading
import time
from collections import deque
from types import TracebackType
from typing import Any, Final, Self

import pyarrow as pa

from fusetui.telemetry.header import Header
from fusetui.telemetry.link import Link
from fusetui.telemetry.schema import COUNTER, EXECUTION, MARK, REQUEST, SCHEMA, build_batch
from fusetui.telemetry.writer import Encoder, parts_of

_TEXT: Final = frozenset(f.name for f in SCHEMA if isinstance(f.type, pa.DictionaryType))
_FLOATS: Final = frozenset(f.name for f in SCHEMA if pa.types.is_floating(f.type))
_MAX_INT: Final = {f.name: 2 ** (f.type.bit_width - 1) for f in SCHEMA if pa.types.is_integer(f.type)}
_SEND_ERRORS: Final = (OSError, ValueError)
_TRIES: Final = 3
"""A viewer that breaks off at one and the same batch does not want it."""

_RETRY_S: Final = (0.1, 0.2, 0.5, 1.0, 2.0)

Row = dict[str, Any]


class Producer:
    """Sends rows and batches to a viewer or a file, from a background thread. Thread-safe.

    sent     rows handed to the connection
    dropped  rows lost: the buffer was full, the connection broke while they were on their way, or never came
    connected  whether a viewer reads now
    error    the latest problem, one line
    """

    def __init__(
        self,
        target: str,
        *,
        source: str,
        header: Header | None = None,
        token: str | None = None,
        batch_rows: int = 8192,
        flush_s: float = 1.0,
        buffer_rows: int = 262_144,
        close_s: float = 2.0,
    ) -> None:
        """source       the program's name in the header
        header       build, hardware, SLO; `source` goes into it
        batch_rows   send as soon as this many rows are there
        flush_s      send at the latest after this long
        buffer_rows  most rows kept while the viewer is slow or away
        """
        self.sent = 0
        self.dropped = 0
        self.connected = False
        self.error = ""
        self._header = header or Header(source=source)
        self._link = Link(target, token)
        self._batch_rows = batch_rows
        self._flush_s = flush_s
        self._buffer_rows = buffer_rows
        self._close_s = close_s
        self._rows: list[Row] = []
        self._batches: deque[pa.RecordBatch] = deque()
        self._held = 0
        self._closing = False
        self._give_up_at = float("inf")
        self._wake = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="fusetui-producer", daemon=True)
        self._thread.start()

    def execution(
        self, name: str, *, start_ns: int | None, end_ns: int | None, enqueue_ns: int | None = None, **columns: Any
    ) -> None:
        """Work that ran on a core. columns: stream, core, device, request, plan, group, mapping, shape, flops, …

        Raises ValueError for a column that is not in the contract or a value that does not fit it.
        """
        self._add(kind=EXECUTION, name=name, start_ns=start_ns, end_ns=end_ns, enqueue_ns=enqueue_ns, **columns)

    def request(
        self,
        name: str,
        *,
        request: int,
        enqueue_ns: int,
        end_ns: int | None,
        start_ns: int | None = None,
        **columns: Any,
    ) -> None:
        """What a user waited for, from enqueue_ns to end_ns; end_ns None while it is still open."""
        if start_ns is None and end_ns is not None:
            start_ns = enqueue_ns
        self._add(
            kind=REQUEST,
            name=name,
            request=request,
            enqueue_ns=enqueue_ns,
            start_ns=start_ns,
            end_ns=end_ns,
            **columns,
        )

    def counter(
        self, name: str, value: float, *, unit: str | None = None, at_ns: int | None = None, **columns: Any
    ) -> None:
        """A reading at `at_ns` (None: now)."""
        at = time.time_ns() if at_ns is None else at_ns
        self._add(kind=COUNTER, name=name, value=value, unit=unit, start_ns=at, end_ns=at, **columns)

    def mark(self, name: str, *, at_ns: int | None = None, **columns: Any) -> None:
        """Something worth a line across the charts: a deployment, a configuration change."""
        at = time.time_ns() if at_ns is None else at_ns
        self._add(kind=MARK, name=name, start_ns=at, end_ns=at, **columns)

    def write_batch(self, batch: pa.RecordBatch, *, wait_s: float = 0.0) -> None:
        """A whole batch in the contract's schema; waits at most `wait_s` for room. Raises ValueError for another."""
        if not batch.schema.equals(SCHEMA):
            raise ValueError("not in the contract's schema; see fusetui.telemetry.schema.build_batch")
        with self._wake:
            if wait_s > 0:
                self._wake.wait_for(lambda: self._closing or self._fits(batch.num_rows), wait_s)
            if self._room(batch.num_rows):
                self._seal()
                self._batches.append(batch)
                self._wake.notify_all()

    def close(self) -> None:
        """Send what is left and end the stream; waits at most `close_s`, then drops the rest."""
        with self._wake:
            self._closing = True
            self._give_up_at = time.monotonic() + self._close_s
            self._wake.notify_all()
        self._thread.join(self._close_s)
        if self._thread.is_alive():
            self._link.abort()
            self._thread.join(0.5)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _add(self, **columns: Any) -> None:
        row = {name: _checked(name, value) for name, value in columns.items() if value is not None}
        with self._wake:
            if not self._room(1):
                return
            self._rows.append(row)
            if len(self._rows) == 1 or len(self._rows) >= self._batch_rows:
                self._wake.notify_all()

    def _fits(self, rows: int) -> bool:
        return self._held + rows <= self._buffer_rows

    def _room(self, rows: int) -> bool:
        if self._closing or not self._fits(rows):
            self.dropped += rows
            return False
        self._held += rows
        return True

    def _seal(self) -> None:
        """Move the rows into a batch."""
        if self._rows:
            names = {name for row in self._rows for name in row}
            self._batches.append(build_batch({name: _array(name, self._rows) for name in names}, len(self._rows)))
            self._rows = []

    def _next(self) -> pa.RecordBatch | None:
        """The next batch to send, waiting for it; None when closed and empty."""
        with self._wake:
            while not self._batches:
                if not self._rows:
                    if self._closing:
                        return None
                    self._wake.wait()
                    continue
                due = time.monotonic() + self._flush_s
                while not self._closing and len(self._rows) < self._batch_rows and not self._batches:
                    left = due - time.monotonic()
                    if left <= 0:
                        break
                    self._wake.wait(left)
                if not self._batches:
                    self._seal()
            return self._batches.popleft()

    def _run(self) -> None:
        # At once, so that a viewer sees a producer that has nothing to say yet.
        encoder = self._connect()
        while (batch := self._next()) is not None:
            for part in parts_of(batch):
                encoder = self._deliver(part, encoder)
        try:
            if encoder is not None:
                self._link.send(encoder.end())
        except _SEND_ERRORS as error:
            self._problem(error)
        self._drop()

    def _deliver(self, part: pa.RecordBatch, encoder: Encoder | None) -> Encoder | None:
        """Send a batch; one that broke off again on the next connection, which begins a new stream.

        Nobody has it twice: a send that failed left its message incomplete. Returns the encoder to go on with.
        """
        for _ in range(_TRIES):
            encoder = encoder or self._connect()
            if encoder is None:
                break
            try:
                self._link.send(encoder.encode(part))
            except _SEND_ERRORS as error:
                self._problem(error)
                encoder = None
                self._drop()
                if not isinstance(error, OSError):
                    break
            else:
                self._count(part, sent=True)
                return encoder
        self._count(part, sent=False)
        return encoder

    def _drop(self) -> None:
        self.connected = False
        self._link.drop()

    def _connect(self) -> Encoder | None:
        """A new stream on a new connection, tried until it works; None when closing time ran out."""
        attempt = 0
        while time.monotonic() < self._give_up_at:
            try:
                self._link.open()
                encoder = Encoder(self._header)
                self._link.send(encoder.start())
            except _SEND_ERRORS as error:
                self._problem(error)
                self._link.drop()
            else:
                self.connected = True
                return encoder
            with self._wake:
                self._wake.wait_for(lambda: self._closing, _RETRY_S[min(attempt, len(_RETRY_S) - 1)])
                if self._closing:
                    self._give_up_at = min(self._give_up_at, time.monotonic() + 0.2)
            attempt += 1
        return None

    def _count(self, batch: pa.RecordBatch, *, sent: bool) -> None:
        with self._wake:
            self._held -= batch.num_rows
            if sent:
                self.sent += batch.num_rows
            else:
                self.dropped += batch.num_rows
            self._wake.notify_all()

    def _problem(self, error: Exception) -> None:
        self.error = f"{self._link.target}: {error or type(error).__name__}"


def _checked(name: str, value: Any) -> Any:
    """The value as the contract has it. Raises ValueError, in the caller's own line."""
    if name in _TEXT:
        return str(value)
    if name in _FLOATS:
        return float(value)
    limit = _MAX_INT.get(name)
    if limit is None:
        raise ValueError(f"{name!r} is not a column of the contract")
    number = int(value)
    if not -limit <= number < limit:
        raise ValueError(f"{name}={number} does not fit the contract")
    return number


def _array(name: str, rows: list[Row]) -> pa.Array:
    values = [row.get(name) for row in rows]
    return pa.array(values, pa.utf8()) if name in _TEXT else pa.array(values, SCHEMA.field(name).type)
