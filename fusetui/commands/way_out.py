"""Where `fusetui stream` sends to: a socket, or Arrow Flight through a child process."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator

from fusetui.sources.arrow_listen import is_loopback, parse_address
from fusetui.sources.flight_address import SCHEMES, parse_flight
from fusetui.sources.flight_door import Door, Folder, Mode, open_door
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header
from fusetui.telemetry.sender import Sender


class Way:
    """One target; `address` is the real one (port 0 is replaced)."""

    def __init__(self, target: str, address: str, token: str | None, door: Door | None = None) -> None:
        self.address = address
        self._target = target
        self._token = token
        self._door = door

    @property
    def trouble(self) -> str:
        """What Flight says is wrong, one line; "" while all is well."""
        if self._door is None or not self._door.trouble:
            return ""
        return f"{self.address}: {self._door.trouble}"

    def wrong(self, sender: Sender) -> str:
        """What keeps rows from getting out; behind Flight the sender's own words are of a socket nobody knows."""
        return self.trouble if self._door is not None else sender.error

    def sender(self, header: Header, stop: Callable[[], bool]) -> Sender:
        """A run of rows. Raises TelemetryError when the target cannot be meant."""
        try:
            return Sender(self._target, header, token=self._token, label=self.address, stop=stop)
        except ValueError as error:
            raise TelemetryError(self.address, str(error)) from None


@contextlib.contextmanager
def way_out(spec: str, token: str | None, allow_remote: bool) -> Iterator[Way]:
    """`tcp:host:port`, `unix:path`, `grpc://host:port/name` or `offer:host:port/name`. Raises TelemetryError."""
    scheme = spec.partition(":")[0]
    if scheme in ("tcp", "unix"):
        if scheme == "tcp" and not allow_remote:
            _stays_here(spec, parse_address(spec).host)
        yield Way(spec, spec, token)
        return
    if scheme not in ("offer", *SCHEMES):
        raise TelemetryError(
            spec, "not an address", "give tcp:HOST:PORT, unix:PATH, grpc://HOST:PORT or offer:HOST:PORT"
        )
    address = parse_flight(spec)
    if scheme != "offer" and not allow_remote:
        _stays_here(spec, address.host)
    folder = Folder()
    try:
        mode: Mode = "offer" if scheme == "offer" else "push"
        door = open_door(mode, address, folder.socket, token=token, allow_remote=allow_remote)
        try:
            yield Way(f"unix:{folder.socket}", str(door.address).replace("flight:", "offer:"), None, door)
        finally:
            door.close()
    finally:
        folder.remove()


def _stays_here(spec: str, host: str) -> None:
    """Telemetry leaves this machine only where that was asked for: it travels in the clear."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise TelemetryError(spec, f"unknown host ({error.strerror or error})") from None
    if not all(is_loopback(str(target[0])) for *_, target in found):
        raise TelemetryError(spec, "another machine", "send through a tunnel, or say --allow-remote")
