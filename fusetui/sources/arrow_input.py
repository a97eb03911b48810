"""The two ways batches come in: one file or pipe read here, or connections to a socket."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import threading
from typing import BinaryIO, Final, Protocol

from fusetui.sources.arrow_conn import BUFFER_BYTES, TOKEN_TIMEOUT_S, Producer, check_token
from fusetui.sources.arrow_crowd import Crowd
from fusetui.sources.arrow_listen import Address, Listener
from fusetui.sources.arrow_queue import BatchQueue
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.stamp import BYE

_ACCEPT_WAIT_S: Final = 0.25
_MAX_HANDSHAKES: Final = 64


class Input(Protocol):
    """Feeds the queue from threads of its own until closed.

    address  where it really reads or listens
    done     nothing more can come
    trouble  what keeps anything from coming, one line; "" while all is well
    """

    @property
    def address(self) -> object: ...
    @property
    def done(self) -> bool: ...
    @property
    def trouble(self) -> str: ...
    def finish(self) -> None: ...
    def close(self) -> None: ...


class PathInput:
    """Standard input, a file, or a named pipe that is opened again whenever its writer goes."""

    trouble = ""

    def __init__(self, address: Address, crowd: Crowd, queue: BatchQueue, stdin: BinaryIO | None = None) -> None:
        self.address = address
        self._crowd = crowd
        self._queue = queue
        self._stdin = stdin
        self._closed = False
        self._again = address.kind == "path" and _is_pipe(address.path)
        self._thread = threading.Thread(target=self._run, name=f"read {address}", daemon=True)
        self._thread.start()

    @property
    def done(self) -> bool:
        return not self._thread.is_alive()

    def finish(self) -> None:
        """Whoever writes into a file or pipe cannot be told."""

    def close(self) -> None:
        self._closed = True
        if self._again:
            # Wakes an open() that still waits for a writer.
            with contextlib.suppress(OSError):
                os.close(os.open(self.address.path, os.O_WRONLY | os.O_NONBLOCK))

    def _run(self) -> None:
        while not self._closed:
            producer = Producer(str(self.address))
            try:
                with self._open() as file:
                    if self._closed or not self._crowd.join(producer):
                        return
                    producer.read(file, self._queue, self._crowd.admit)
            except OSError as error:
                self._crowd.join(producer)
                producer.fail(f"{self.address}: {error.strerror or error}")
                return
            if not self._again:
                return

    def _open(self) -> BinaryIO:
        if self.address.kind == "stdin":
            return self._stdin or open(0, "rb", BUFFER_BYTES, closefd=False)
        return open(self.address.path, "rb", BUFFER_BYTES)


class ListenInput:
    """Accepts producers on a socket, each read in its own thread."""

    trouble = ""

    def __init__(
        self,
        listener: Listener,
        crowd: Crowd,
        queue: BatchQueue,
        *,
        token: str | None = None,
        token_timeout_s: float = TOKEN_TIMEOUT_S,
    ) -> None:
        self.address = listener.address
        self._listener = listener
        self._crowd = crowd
        self._queue = queue
        self._token = token
        self._token_timeout_s = token_timeout_s
        self._closed = threading.Event()
        self._finishing = threading.Event()
        self._connections: dict[socket.socket, Producer] = {}
        self._handshakes = threading.Semaphore(_MAX_HANDSHAKES)
        self._number = 0
        listener.socket.settimeout(_ACCEPT_WAIT_S)
        self._thread = threading.Thread(target=self._accept, name=f"listen {self.address}", daemon=True)
        self._thread.start()

    @property
    def done(self) -> bool:
        return self._closed.is_set()

    @property
    def busy(self) -> bool:
        """Somebody is connected."""
        return bool(self._connections)

    def finish(self) -> None:
        """Listen no more, and end our half of each connection: a producer that looks goes away."""
        if self._finishing.is_set():
            return
        self._finishing.set()
        self._listener.close()
        for connection, producer in list(self._connections.items()):
            with contextlib.suppress(OSError):
                if producer.watch.stamped:
                    # One that reads answers waits for the last of them, and so knows what has come.
                    connection.send(BYE, socket.MSG_DONTWAIT)
                else:
                    connection.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._closed.set()
        self.finish()
        for connection in list(self._connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._thread.join(timeout=1.0)

    def _accept(self) -> None:
        while not self._finishing.is_set():
            try:
                connection, _ = self._listener.socket.accept()
            except TimeoutError:
                continue
            except OSError:
                # Out of file descriptors, or a client that went before it was accepted: neither is the end.
                self._finishing.wait(_ACCEPT_WAIT_S)
                continue
            if not self._handshakes.acquire(blocking=False):
                self._crowd.refuse()
                connection.close()
                continue
            self._number += 1
            peer = f"{self.address.kind} client {self._number}"
            producer = self._connections[connection] = Producer(peer, connection)
            threading.Thread(target=self._serve, args=(connection, producer), name=peer, daemon=True).start()

    def _serve(self, connection: socket.socket, producer: Producer) -> None:
        try:
            with connection:
                if self._welcome(connection, producer):
                    with connection.makefile("rb", BUFFER_BYTES) as file:
                        producer.read(file, self._queue, self._crowd.admit)
                    if not self._finishing.is_set():
                        self._crowd.left(producer)
        finally:
            self._connections.pop(connection, None)

    def _welcome(self, connection: socket.socket, producer: Producer) -> bool:
        try:
            connection.settimeout(None)
            if self._token and not check_token(connection, self._token, self._token_timeout_s):
                self._crowd.refuse()
                return False
        finally:
            self._handshakes.release()
        return not self._closed.is_set() and self._crowd.join(producer)


def check_path(address: Address) -> None:
    """Raises TelemetryError when there is nothing to read at a path."""
    try:
        mode = os.stat(address.path).st_mode
    except OSError as error:
        raise TelemetryError(
            address.path, error.strerror or str(error), "give an existing file or pipe, -, unix:/path or tcp:host:port"
        ) from None
    if stat.S_ISSOCK(mode):
        raise TelemetryError(address.path, "this is a socket", f"write unix:{address.path}")
    if stat.S_ISDIR(mode):
        raise TelemetryError(address.path, "this is a folder", "give a file or pipe; replay opens recordings")


def _is_pipe(path: str) -> bool:
    return stat.S_ISFIFO(os.stat(path).st_mode)
