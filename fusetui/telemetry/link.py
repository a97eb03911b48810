"""The way out of a producer: a socket, a file or standard output."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import sys
from collections.abc import Callable
from typing import Final

TOKEN_PREFIX: Final = b"FUSETUI-TOKEN "
"""With a token, the line `FUSETUI-TOKEN <token>` comes before the Arrow stream."""

CONNECT_S: Final = 2.0
SEND_S: Final = 30.0
"""A viewer that holds back reads nothing for a while; one that never reads is gone."""


class Link:
    """One target: `unix:/path`, `tcp:host:port`, a file path or `-` for standard output."""

    def __init__(self, target: str, token: str | None) -> None:
        """Raises ValueError when the target or the token cannot be meant."""
        self.target = target
        self._token = b"" if token is None else TOKEN_PREFIX + token.encode("ascii") + b"\n"
        if token is not None and ("\n" in token or not token):
            raise ValueError("a token is one line of ASCII")
        self._address: str | tuple[str, int] | None = None
        self._socket: socket.socket | None = None
        self._fd = -1
        self._used = False
        if target.startswith("unix:"):
            self._address = target.removeprefix("unix:")
        elif target.startswith("tcp:"):
            host, _, port = target.removeprefix("tcp:").rpartition(":")
            if not host or not port.isdigit():
                raise ValueError(f"{target!r} is not tcp:host:port")
            self._address = (host.strip("[]"), int(port))

    def open(self) -> None:
        """Connect, or make the file. Raises OSError."""
        if self._address is None:
            if self._used:
                # Opening again would empty the file, or write a second stream into somebody's pipe.
                raise OSError("writing failed before")
            self._used = True
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
            self._fd = os.dup(sys.stdout.fileno()) if self.target == "-" else os.open(self.target, flags, 0o644)
            return
        if isinstance(self._address, str):
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.settimeout(CONNECT_S)
            self._socket.connect(self._address)
        else:
            self._socket = socket.create_connection(self._address, CONNECT_S)
        self._socket.settimeout(SEND_S)
        if self._token:
            self._socket.sendall(self._token)

    def send(self, data: bytes) -> None:
        """All of `data`. Raises OSError, also when the other side reads nothing for SEND_S.

        To one that has said it ends nothing is sent: the system would take it, and nobody might read it.
        """
        if self._socket is not None:
            if _ends(self._socket):
                raise ConnectionError("the other side ends")
            self._socket.sendall(data)
            return
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]

    def receiver(self) -> Callable[[int], bytes]:
        """Reads what the other side says on this connection, b"" once it has gone.

        It raises OSError, TimeoutError when nothing is said for SEND_S. Raises OSError when the target cannot answer.
        """
        if self._socket is None:
            raise OSError("nobody answers there")
        return self._socket.recv

    def abort(self) -> None:
        """Wake a `send` that waits on another thread; it fails."""
        connected = self._socket
        if connected is not None:
            with contextlib.suppress(OSError):
                connected.shutdown(socket.SHUT_RDWR)

    def drop(self) -> None:
        """Disconnect."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _ends(connection: socket.socket) -> bool:
    """Whether the other side has shut its half down; what it said before is left for whoever reads it."""
    poll = select.poll()
    poll.register(connection, getattr(select, "POLLRDHUP", 0))
    return bool(poll.poll(0))
