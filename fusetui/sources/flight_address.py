"""Arrow Flight addresses as people type them."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from typing import Final, Literal

from fusetui.sources.arrow_listen import is_loopback, tcp_target
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.text import safe_text

SCHEMES: Final = ("grpc", "grpc+tcp", "grpc+tls")
_PLACE: Final = re.compile(r"(\[[0-9a-fA-F:.%\w]+\]|[^\[\]/:@?#]+):(\d{1,5})(?:/(.*))?\Z")


@dataclass(frozen=True, slots=True)
class FlightAddress:
    """scheme "listen" for a place of our own (port 0: any free one), else what to ask with; name: of the stream."""

    scheme: Literal["listen", "grpc", "grpc+tcp", "grpc+tls"]
    host: str
    port: int
    name: str = ""

    @property
    def location(self) -> str:
        """For pyarrow.flight."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'grpc' if self.scheme == 'listen' else self.scheme}://{host}:{self.port}"

    def __str__(self) -> str:
        if self.scheme == "listen":
            return f"flight:{self.location.partition('//')[2]}"
        return f"{self.location}/{self.name}" if self.name else self.location


def parse_flight(spec: str) -> FlightAddress:
    """`grpc://host:port[/name]`, or `flight:host:port[/name]` and `offer:host:port[/name]` for a place of our own.

    Raises TelemetryError that says what is wrong.
    """
    scheme, _, rest = spec.partition(":")
    asks = scheme in SCHEMES
    found = _PLACE.match(rest.removeprefix("//"))
    if (asks and not rest.startswith("//")) or found is None or int(found[2]) > 65535:
        form = "grpc://127.0.0.1:8815/name" if asks else f"{scheme}:127.0.0.1:8815"
        raise TelemetryError(safe_text(spec, 200), "not a Flight address", f"write {form}")
    name = safe_text(found[3] or "", 200)
    known: Literal["listen", "grpc", "grpc+tcp", "grpc+tls"] = "listen"
    if asks:
        known = "grpc+tls" if scheme == "grpc+tls" else "grpc"
    return FlightAddress(known, found[1].strip("[]"), int(found[2]), name)


def check_listen(address: FlightAddress, token: str | None, allow_remote: bool) -> None:
    """Raises TelemetryError when it is wider than allowed, or taken: gRPC itself would share it with who has it."""
    family, target = tcp_target(str(address), address.host, address.port, token, allow_remote)
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        try:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(target)
        except OSError as error:
            raise TelemetryError(str(address), f"cannot listen ({error.strerror or error})") from None


def check_reach(address: FlightAddress, allow_remote: bool) -> None:
    """Raises TelemetryError when a server beyond this machine is asked without leave."""
    try:
        ips = {str(found[4][0]) for found in socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)}
    except OSError as error:
        raise TelemetryError(str(address), f"unknown host ({error.strerror or error})") from None
    if not allow_remote and not all(is_loopback(ip) for ip in ips):
        raise TelemetryError(str(address), "this is another machine", "add --allow-remote to ask it")
