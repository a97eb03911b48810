"""One page of metrics over HTTP, bounded in time and size whatever the server does."""

from __future__ import annotations

import http.client
import ipaddress
import re
import socket
import time
import zlib
from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.text import safe_text

MAX_BYTES: Final = 32 << 20
_CHUNK: Final = 1 << 16
_ACCEPT: Final = "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.9,*/*;q=0.1"

Trouble = Literal["reconnecting", "hung", "failed"]


class FetchError(Exception):
    """A scrape that brought nothing: the state this puts the source in, and one line that says why."""

    def __init__(self, state: Trouble, why: str) -> None:
        super().__init__(why)
        self.state: Trouble = state


@dataclass(frozen=True, slots=True)
class Target:
    """Where a page is: host, port, and path with query."""

    host: str
    port: int
    path: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}{self.path}"


@dataclass(frozen=True, slots=True)
class Page:
    """The text of a page, whether it is OpenMetrics, and how many bytes came."""

    text: str
    openmetrics: bool
    bytes_in: int


def parse_target(url: str, *, allow_remote: bool = False) -> Target:
    """`http://host:port/path`. Raises TelemetryError; also for other machines without `allow_remote`."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or 80
    except ValueError as error:
        raise TelemetryError(url, f"not an address ({error})", "write http://127.0.0.1:8000/metrics") from None
    if parts.scheme != "http":
        raise TelemetryError(url, "only http is read", "open a tunnel to it and read that on 127.0.0.1")
    if parts.username is not None or parts.password is not None:
        raise TelemetryError("metrics address", "a password in it would be shown and recorded", "use --token")
    path = (parts.path or "/metrics") + (f"?{parts.query}" if parts.query else "")
    if not re.fullmatch(r"[!-~]+", path) or not re.fullmatch(r"[A-Za-z0-9.:_%-]+", host):
        raise TelemetryError(url, "not an address", "write http://127.0.0.1:8000/metrics")
    if not allow_remote and host != "localhost" and not _loopback(host):
        raise TelemetryError(url, "another machine", "say --allow-remote, or open a tunnel to it")
    return Target(host, port, path)


def fetch(target: Target, *, timeout_s: float, token: str | None, allow_remote: bool) -> Page:
    """The page, whole, within `timeout_s` from connecting to the last byte and 32 MB. Raises FetchError."""
    deadline = time.monotonic() + timeout_s
    connection: http.client.HTTPConnection | None = None
    try:
        raw = _connect(target, deadline, allow_remote)
        connection = http.client.HTTPConnection(target.host, target.port)
        connection.sock = raw
        headers = {"Accept": _ACCEPT, "Accept-Encoding": "gzip", "Connection": "close", "User-Agent": "fusetui"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        connection.request("GET", target.path, headers=headers)
        with connection.getresponse() as response:
            return _page(response, deadline)
    except TimeoutError:
        raise FetchError("hung", f"no whole answer within {timeout_s:g} s") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        why = safe_text(str(error) or type(error).__name__, 120)
        raise FetchError("reconnecting", f"no answer ({why})") from None
    finally:
        if connection is not None:
            connection.close()


class _DeadlineSocket(socket.socket):
    """A timeout for all reads together: a server that sends a byte now and then gains nothing."""

    deadline: float = 0.0

    def recv_into(self, *args: Any, **kwargs: Any) -> int:
        left_s = self.deadline - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        self.settimeout(left_s)
        return super().recv_into(*args, **kwargs)


def _connect(target: Target, deadline: float, allow_remote: bool) -> _DeadlineSocket:
    last: OSError = OSError("the name has no address")
    for family, kind, protocol, _, address in socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM):
        if not allow_remote and not _loopback(str(address[0])):
            continue
        made = _DeadlineSocket(family, kind, protocol)
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


def _page(response: http.client.HTTPResponse, deadline: float) -> Page:
    _accepted(response)
    kind = (response.getheader("Content-Type") or "").lower()
    length = response.length
    if length is not None and length > MAX_BYTES:
        raise FetchError("failed", f"the page has {length} bytes, over the {MAX_BYTES >> 20} MB limit")
    coding = (response.getheader("Content-Encoding") or "identity").lower()
    if coding not in ("identity", "gzip"):
        raise FetchError("failed", f"the page is packed as {safe_text(coding, 40)}, only gzip is read")
    unpack = zlib.decompressobj(wbits=31) if coding == "gzip" else None
    body, bytes_in = bytearray(), 0
    while chunk := response.read1(_CHUNK):
        if time.monotonic() > deadline:
            raise TimeoutError
        bytes_in += len(chunk)
        if unpack is None:
            body += chunk
        else:
            body += _unpacked(unpack, chunk, MAX_BYTES + 1 - len(body))
        if len(body) > MAX_BYTES:
            raise FetchError("failed", f"the page is over the {MAX_BYTES >> 20} MB limit")
    if (length is not None and bytes_in < length) or (unpack is not None and not unpack.eof):
        raise FetchError("reconnecting", f"the page was cut off after {bytes_in} bytes")
    return Page(body.decode("utf-8", "replace"), "openmetrics" in kind, bytes_in)


def _accepted(response: http.client.HTTPResponse) -> None:
    status, kind = response.status, (response.getheader("Content-Type") or "").lower()
    if 300 <= status < 400:
        where = safe_text(response.getheader("Location") or "?", 120)
        raise FetchError("failed", f"it redirects to {where}: not followed, name the page itself")
    if status in (401, 403):
        raise FetchError("failed", f"access refused (HTTP {status}): give its bearer token with --token")
    if status == 404:
        raise FetchError("failed", "no such page (HTTP 404): engines have it at /metrics")
    if status != 200:
        raise FetchError("reconnecting" if status >= 500 else "failed", f"HTTP {status}")
    if "html" in kind or "json" in kind or "protobuf" in kind:
        raise FetchError("failed", f"{safe_text(kind, 60)}: not a page of metrics in text, is it at /metrics?")


def _unpacked(unpack: Any, chunk: bytes, room: int) -> bytes:
    try:
        data: bytes = unpack.decompress(chunk, max(1, room))
    except zlib.error as error:
        raise FetchError("failed", f"the page's gzip is broken ({error})") from None
    return data


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False
