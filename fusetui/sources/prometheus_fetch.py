"""One page of metrics over HTTP, bounded in time and size whatever the server does."""

from __future__ import annotations

import http.client
import re
import socket
import ssl
import time
import zlib
from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from fusetui.sources.prometheus_socket import connect, loopback, secured
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
    """Where a page is: host, port, path with query, and whether it is asked for over TLS."""

    host: str
    port: int
    path: str
    tls: bool = False

    @property
    def here(self) -> bool:
        """Whether it is on this machine."""
        return self.host == "localhost" or loopback(self.host)

    @property
    def place(self) -> str:
        """host:port"""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def __str__(self) -> str:
        return f"http{'s' if self.tls else ''}://{self.place}{self.path}"


@dataclass(frozen=True, slots=True)
class Page:
    """The text of a page, whether it is OpenMetrics, and how many bytes came."""

    text: str
    openmetrics: bool
    bytes_in: int


def parse_target(url: str, *, allow_remote: bool = False) -> Target:
    """`http(s)://host:port/path`. Raises TelemetryError; also for other machines without `allow_remote`."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError as error:
        raise TelemetryError(url, f"not an address ({error})", "write http://127.0.0.1:8000/metrics") from None
    if parts.scheme not in ("http", "https"):
        raise TelemetryError(url, "only http and https are read", "write http://127.0.0.1:8000/metrics")
    if parts.username is not None or parts.password is not None:
        raise TelemetryError("metrics address", "a password in it would be shown and recorded", "use --auth-file")
    path = (parts.path or "/metrics") + (f"?{parts.query}" if parts.query else "")
    if not re.fullmatch(r"[!-~]+", path) or not re.fullmatch(r"[A-Za-z0-9.:_%-]+", host):
        raise TelemetryError(url, "not an address", "write http://127.0.0.1:8000/metrics")
    target = Target(host, port, path, parts.scheme == "https")
    if not allow_remote and not target.here:
        raise TelemetryError(url, "another machine", "say --allow-remote, or open a tunnel to it")
    return target


def fetch(
    target: Target,
    *,
    timeout_s: float,
    authorization: str | None,
    allow_remote: bool,
    tls: ssl.SSLContext | None = None,
) -> Page:
    """The page, whole, within `timeout_s` from connecting to the last byte and 32 MB. Raises FetchError.

    authorization  the value of that header; tls: what `tls_context` made, for a target that asks for it
    """
    deadline = time.monotonic() + timeout_s
    connection: http.client.HTTPConnection | None = None
    try:
        raw: socket.socket = connect(target.host, target.port, deadline, allow_remote)
        if tls is not None:
            raw = secured(raw, tls, target.host, deadline)
        connection = http.client.HTTPConnection(target.host, target.port)
        connection.sock = raw
        headers = {"Accept": _ACCEPT, "Accept-Encoding": "gzip", "Connection": "close", "User-Agent": "fusetui"}
        if authorization:
            headers["Authorization"] = authorization
        connection.request("GET", target.path, headers=headers)
        with connection.getresponse() as response:
            return _page(response, deadline)
    except TimeoutError:
        raise FetchError("hung", f"no whole answer within {timeout_s:g} s") from None
    except ssl.SSLCertVerificationError as error:
        why = safe_text(error.verify_message, 120)
        raise FetchError("failed", f"certificate not trusted ({why}): name who signed it with --cacert") from None
    except ssl.SSLError as error:
        why = safe_text(error.reason or "closed", 60)
        raise FetchError("reconnecting", f"no TLS there ({why}): is it http?") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        why = safe_text(str(error) or type(error).__name__, 120)
        raise FetchError("reconnecting", f"no answer ({why})") from None
    finally:
        if connection is not None:
            connection.close()


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
        raise FetchError("failed", f"access refused (HTTP {status}): give what it wants with --auth-file")
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
