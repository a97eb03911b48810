"""One producer: a connection, pipe or file read to its end in a thread of its own."""

from __future__ import annotations

import hmac
import socket
import time
from collections.abc import Callable
from typing import Final

from fusetui.sources.arrow_queue import Arrived, BatchQueue
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
    earlier_rows, connections  from connections of the same name that ended before
    """

    def __init__(self, peer: str) -> None:
        self.name = peer
        self.origin = ""
        self.state: State = "waiting"
        self.detail = ""
        self.earlier_rows = 0
        self.connections = 1
        self.reader: StreamReader | None = None

    @property
    def gone(self) -> bool:
        return self.state in ("ended", "failed")

    @property
    def rows(self) -> int:
        return self.reader.rows if self.reader else 0

    def health(self) -> ProducerHealth:
        notes = [self.detail] if self.detail else []
        if self.connections > 1:
            notes.append(f"connected {self.connections} times")
        return ProducerHealth(self.name, self.state, self.earlier_rows + self.rows, "; ".join(notes))

    def read(self, file: BinaryReader, queue: BatchQueue, admit: Callable[[Producer, Header], None]) -> None:
        """Everything into the queue; never raises for what the input holds.

        admit  called with the header before the first batch; a TelemetryError from it ends the producer
        """
        try:
            self.reader = reader = StreamReader(file, self.name)
            admit(self, reader.header)
            self.state = "live"
            seen_bytes = 0
            for batch in reader:
                size = max(_BATCH_BYTES + _ROW_BYTES * batch.num_rows, reader.bytes_in - seen_bytes)
                seen_bytes = reader.bytes_in
                if not queue.put(Arrived(batch, size, self.origin)):
                    break
            self.detail = "" if reader.ended else "ended without the end-of-stream marker"
            self.state = "ended"
        except TelemetryError as error:
            self.fail(str(error))
        except (OSError, ValueError) as error:  # a socket or pipe that broke, or was closed under us
            self.fail(f"{self.name}: {error}")

    def fail(self, detail: str) -> None:
        """Show it as failed."""
        self.detail = detail
        self.state = "failed"


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
