"""One producer: a connection, pipe or file read to its end in a thread of its own."""

from __future__ import annotations

import contextlib
import hmac
import socket
import time
from collections.abc import Callable
from typing import Final

from fusetui.sources.arrow_queue import Arrived, BatchQueue
from fusetui.sources.arrow_watch import HUNG_S, LOST_S, Watch
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.guard import BinaryReader
from fusetui.telemetry.header import Header
from fusetui.telemetry.reader import StreamReader
from fusetui.telemetry.source import ProducerHealth, State

BUFFER_BYTES: Final = 1 << 20
TOKEN_TIMEOUT_S: Final = 5.0
_ROW_BYTES: Final = 116  # the contract's columns, nulls included
_BATCH_BYTES: Final = 6_000  # Arrow's own objects for 22 columns


class Producer:
    """What one stream of batches did so far; `read` runs in the producer's thread, all else may be called from any.

    name    until the header comes where it connected from, then "source@host"
    origin  the host its rows belong to when they name none
    watch   what it says of itself beside the rows
    earlier_rows, connections  from connections of the same name that ended before
    """

    def __init__(self, peer: str, connection: socket.socket | None = None) -> None:
        """connection  to answer on; a producer that leaves it without a word is lost, not ended"""
        self.name = peer
        self.origin = ""
        self.detail = ""
        self.watch = Watch()
        self.earlier_rows = 0
        self.connections = 1
        self.reader: StreamReader | None = None
        self._state: State = "waiting"
        self._connection = connection

    @property
    def state(self) -> State:
        if self._state != "live" or self.watch.silent_s < HUNG_S:
            return self._state
        return "hung" if self.watch.silent_s < LOST_S else "lost"

    @property
    def gone(self) -> bool:
        return self._state in ("ended", "failed", "lost")

    @property
    def rows(self) -> int:
        return self.reader.rows if self.reader else 0

    def health(self) -> ProducerHealth:
        notes = self.watch.text()
        state = self.state
        if not self.gone and state in ("hung", "lost"):
            notes.insert(0, f"nothing for {self.watch.silent_s:.0f} s")
        if self.detail:
            notes.insert(len(notes) if state == "lost" else 0, self.detail)
        if self.connections > 1:
            notes.append(f"connected {self.connections} times")
        return ProducerHealth(self.name, state, self.earlier_rows + self.rows, "; ".join(notes))

    def read(self, file: BinaryReader, queue: BatchQueue, admit: Callable[[Producer, Header], None]) -> None:
        """Everything into the queue; never raises for what the input holds.

        admit  called with the header before the first batch; a TelemetryError from it ends the producer
        """
        try:
            self.reader = reader = StreamReader(file, self.name)
            header = reader.header
            self.watch.run = reader.run
            admit(self, header)
            self._state = "live"
            self._take(reader, queue)
            whole = self.watch.final if self.watch.stamped else reader.ended
            self._end("" if whole else "ended without the end-of-stream marker")
        except TelemetryError as error:
            self._end(str(error)) if isinstance(error.__cause__, OSError) else self.fail(str(error))
        except (OSError, ValueError) as error:  # a socket or pipe that broke, or was closed under us
            self._end(f"{self.name}: {error}")

    def fail(self, detail: str) -> None:
        """Show it as failed."""
        self.detail = detail
        self._state = "failed"

    def drop(self) -> None:
        """Hang up: another connection has taken its place."""
        if self._connection is not None:
            with contextlib.suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)

    def _take(self, reader: StreamReader, queue: BatchQueue) -> None:
        seen_bytes = seen_rows = 0
        for batch in reader:
            size = max(_BATCH_BYTES + _ROW_BYTES * batch.num_rows, reader.bytes_in - seen_bytes)
            seen_bytes = reader.bytes_in
            if batch.num_rows:
                self.watch.waiting(True)
                if not queue.put(Arrived(batch, size, self.origin)):
                    return
                self.watch.waiting(False)
            rows = reader.rows + reader.bad_rows - seen_rows
            seen_rows += rows
            answer = self.watch.heard(rows, reader.stamp)
            if answer is not None and self._connection is not None:
                # A sender that does not read its answers must not hold us up.
                with contextlib.suppress(OSError):
                    self._connection.send(answer.to_bytes(), socket.MSG_DONTWAIT)

    def _end(self, problem: str) -> None:
        """Over: whole, or broken off. Before the header came there was nobody to lose."""
        lost = problem and self._connection is not None and self._state == "live"
        if lost:
            self.watch.lost()
        failed = problem and not lost and self._state != "live"
        self.detail = problem
        self._state = "lost" if lost else "failed" if failed else "ended"


def check_token(connection: socket.socket, token: str, timeout_s: float = TOKEN_TIMEOUT_S) -> bool:
    """Whether the connection begins with the line ``FUSETUI-TOKEN <token>``, sent whole within `timeout_s`.

    Reads not a byte beyond that line.
    """
    expected = b"FUSETUI-TOKEN " + token.encode() + b"\n"
    deadline = time.monotonic() + timeout_s
    got = b""
    try:
        while len(got) < len(expected) and b"\n" not in got:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return False
            connection.settimeout(left_s)
            chunk = connection.recv(len(expected) - len(got))
            if not chunk:
                return False
            got += chunk
        connection.settimeout(None)
    except OSError:
        return False
    return hmac.compare_digest(got, expected)
