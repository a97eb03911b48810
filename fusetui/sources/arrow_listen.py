"""Where producers are heard: addresses as people type them, and the sockets behind them."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import stat
import threading
from dataclasses import dataclass
from typing import Any, Final, Literal

from fusetui.telemetry.errors import TelemetryError

_MAX_UNIX_PATH: Final = 103  # macOS; Linux allows 107
_BACKLOG: Final = 128
_umask_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Address:
    """kind "stdin"; "path" and "unix" with a path; "tcp" with host and port (0: any free one)."""

    kind: Literal["stdin", "path", "unix", "tcp"]
    path: str = ""
    host: str = ""
    port: int = 0

    def __str__(self) -> str:
        if self.kind == "tcp":
            host = f"[{self.host}]" if ":" in self.host else self.host
            return f"tcp:{host}:{self.port}"
        return {"stdin": "stdin", "path": self.path, "unix": f"unix:{self.path}"}[self.kind]


def parse_address(text: str) -> Address:
    """`-` or `stdin`, `unix:/path`, `tcp:host:port` (IPv6 in brackets), or the path of a pipe or file.

    Raises TelemetryError that says what is wrong.
    """
    kind, _, rest = text.partition(":")
    if text in ("-", "stdin"):
        return Address("stdin")
    if kind == "unix":
        return Address("unix", _unix_path(text, rest))
    if kind == "tcp":
        return _tcp_address(text, rest)
    if not text or "\0" in text:
        raise TelemetryError(text or "address", "not a path", "give -, unix:/path, tcp:host:port, or a path")
    return Address("path", text)


def _unix_path(text: str, path: str) -> str:
    if not path or "\0" in path:
        raise TelemetryError(text, "no socket path", "write unix:/path/to/socket")
    if len(os.fsencode(path)) > _MAX_UNIX_PATH:
        raise TelemetryError(text, f"the socket path is over {_MAX_UNIX_PATH} bytes", "use a shorter folder")
    return path


def _tcp_address(text: str, rest: str) -> Address:
    host, colon, port = rest.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise TelemetryError(text, "an IPv6 address goes in brackets", "write tcp:[::1]:9999")
    if not colon or not host:
        raise TelemetryError(text, "no host and port", "write tcp:127.0.0.1:9999")
    if not (port.isascii() and port.isdigit() and int(port) <= 65535):
        raise TelemetryError(text, f"{port!r} is not a port", "give a number from 0 to 65535")
    return Address("tcp", host=host, port=int(port))


class Listener:
    """A listening socket; `address` is where it really listens.

    A Unix socket is made with mode 0600, replaces the one a dead server left, and is removed on close.
    Raises TelemetryError when the address is taken, cannot be made, or is wider than loopback without
    `allow_remote` and a token.
    """

    def __init__(self, address: Address, *, token: str | None = None, allow_remote: bool = False) -> None:
        self._identity: tuple[int, int] | None = None
        if address.kind == "unix":
            self.socket = _bind_unix(address)
            made = os.lstat(address.path)
            self._identity = (made.st_dev, made.st_ino)
        else:
            self.socket, address = _bind_tcp(address, token, allow_remote)
        self.address = address

    def close(self) -> None:
        """Stop listening."""
        self.socket.close()
        if self._identity is None:
            return
        with contextlib.suppress(OSError):
            found = os.lstat(self.address.path)
            # Someone else may listen there by now.
            if (found.st_dev, found.st_ino) == self._identity:
                os.unlink(self.address.path)


def _bind_unix(address: Address) -> socket.socket:
    _remove_stale(address)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with _umask_lock:
        old = os.umask(0o177)
        try:
            listener.bind(address.path)
        except OSError as error:
            listener.close()
            raise TelemetryError(str(address), f"cannot listen ({error.strerror or error})") from None
        finally:
            os.umask(old)
    listener.listen(_BACKLOG)
    return listener


def _remove_stale(address: Address) -> None:
    try:
        mode = os.lstat(address.path).st_mode
    except OSError:
        return
    if not stat.S_ISSOCK(mode):
        raise TelemetryError(str(address), "there is a file that is not a socket", "choose another path")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(address.path)
        except ConnectionRefusedError:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(address.path)
            return
        except FileNotFoundError:
            return
        except OSError as error:
            raise TelemetryError(str(address), f"there is a socket ({error.strerror or error})") from None
    raise TelemetryError(str(address), "another program listens there", "stop it, or choose another path")


def tcp_target(
    where: str, host: str, port: int, token: str | None, allow_remote: bool
) -> tuple[socket.AddressFamily, Any]:
    """What to bind to, to listen on a TCP port: the address family and the socket address.

    Raises TelemetryError for an unknown host, and for one wider than loopback without `allow_remote` and a token.
    """
    try:
        family, _, _, _, target = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except OSError as error:
        raise TelemetryError(where, f"unknown host ({error.strerror or error})") from None
    if not is_loopback(str(target[0])) and not (allow_remote and token):
        raise TelemetryError(
            where, "other machines could send here", "listen on 127.0.0.1, or allow remote producers and set a token"
        )
    return family, target


def is_loopback(ip: str) -> bool:
    """Whether an IP address (IPv6 perhaps with a scope) is of this machine alone."""
    return ipaddress.ip_address(ip.partition("%")[0]).is_loopback


def _bind_tcp(address: Address, token: str | None, allow_remote: bool) -> tuple[socket.socket, Address]:
    family, target = tcp_target(str(address), address.host, address.port, token, allow_remote)
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(target)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise TelemetryError(str(address), f"cannot listen ({error.strerror or error})") from None
    return listener, Address("tcp", host=address.host, port=listener.getsockname()[1])
