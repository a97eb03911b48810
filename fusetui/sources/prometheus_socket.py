"""Sockets whose reads together end at a deadline, plain or over TLS: a server that dribbles gains nothing."""

from __future__ import annotations

import ipaddress
import socket
import ssl
import time
from typing import Any

from fusetui.telemetry.errors import TelemetryError


class DeadlineSocket(socket.socket):
    """A timeout for all reads together."""

    deadline: float = 0.0

    def recv_into(self, *args: Any, **kwargs: Any) -> int:
        self.settimeout(left_s(self.deadline))
        return super().recv_into(*args, **kwargs)


class DeadlineTls(ssl.SSLSocket):
    """The same over TLS."""

    deadline: float = 0.0

    def recv_into(self, *args: Any, **kwargs: Any) -> int:
        self.settimeout(left_s(self.deadline))
        return super().recv_into(*args, **kwargs)


def left_s(deadline: float) -> float:
    """Seconds until `deadline`. Raises TimeoutError when it is past."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def connect(host: str, port: int, deadline: float, allow_remote: bool) -> DeadlineSocket:
    """A connection to the first address that answers, other machines' only with `allow_remote`. Raises OSError."""
    last: OSError = OSError("the name has no address")
    for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        if not allow_remote and not loopback(str(address[0])):
            continue
        made = DeadlineSocket(family, kind, protocol)
        made.deadline = deadline
        try:
            made.settimeout(max(0.001, deadline - time.monotonic()))
            made.connect(address)
        except OSError as error:
            made.close()
            last = error
        else:
            return made
    raise last


def tls_context(cacert: str | None) -> ssl.SSLContext:
    """Certificates and names are always checked. cacert: who may sign, besides nobody; None: whom the system trusts.

    Raises TelemetryError when that file is not one of certificates.
    """
    try:
        context = ssl.create_default_context(cafile=cacert)
    except (OSError, ValueError) as error:
        raise TelemetryError(str(cacert), f"no file of certificates ({error})", "give a PEM file") from None
    context.sslsocket_class = DeadlineTls
    return context


def secured(raw: socket.socket, context: ssl.SSLContext, host: str, deadline: float) -> DeadlineTls:
    """TLS over a connection, which it takes over. Raises OSError."""
    try:
        raw.settimeout(left_s(deadline))
        made = context.wrap_socket(raw, server_hostname=host)
    except BaseException:
        raw.close()
        raise
    assert isinstance(made, DeadlineTls)
    made.deadline = deadline
    return made


def loopback(host: str) -> bool:
    """Whether an address, not a name, is of this machine."""
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False
