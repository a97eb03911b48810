"""A page of text over HTTP, on loopback: a scrape asks whoever measures for a new page, and waits a little for it."""

from __future__ import annotations

import ipaddress
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from fusetui import __version__
from fusetui.commands.openmetrics import CONTENT_TYPE
from fusetui.telemetry.errors import TelemetryError

MAX_CLIENTS: Final = 8
CLIENT_S: Final = 5.0
"""A client that sends or takes nothing for so long is let go."""
FRESH_S: Final = 1.0


class MetricsServer:
    """Serves the newest page at /metrics until closed. `address` is where it listens, `host:port`."""

    def __init__(self, address: str, *, allow_remote: bool = False) -> None:
        """Raises TelemetryError: not host:port, taken, or wider than loopback without `allow_remote`."""
        family, target = _target(address, allow_remote)
        try:
            self._server = _server_class(family)(target, _Handler)
        except OSError as error:
            raise TelemetryError(address, f"metrics cannot be served there: {error.strerror or error}") from None
        host, port = self._server.server_address[:2]
        self.address = f"[{host!s}]:{port}" if family == socket.AF_INET6 else f"{host!s}:{port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.2,), name="metrics", daemon=True)
        self._thread.start()

    @property
    def wanted(self) -> bool:
        """Somebody waits for a new page."""
        return self._server.wanted

    def put(self, page: bytes) -> None:
        """The newest page."""
        with self._server.changed:
            self._server.page, self._server.wanted = page, False
            self._server.changed.notify_all()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=2.0)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, *args: Any) -> None:
        self.page = b""
        self.wanted = False
        self.changed = threading.Condition()
        self._free = threading.BoundedSemaphore(MAX_CLIENTS)
        super().__init__(*args)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Refuse without a word while MAX_CLIENTS are served: nobody is to fill memory with threads."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def fresh_page(self) -> bytes:
        """A new page, or the last one when none comes in time."""
        with self.changed:
            self.wanted = True
            self.changed.wait_for(lambda: not self.wanted, FRESH_S)
            return self.page

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away in the middle is no news."""


class _ServerV6(_Server):
    address_family = socket.AF_INET6


def _server_class(family: socket.AddressFamily) -> type[_Server]:
    return _ServerV6 if family == socket.AF_INET6 else _Server


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = CLIENT_S
    server_version = f"fusetui/{__version__}"
    sys_version = ""

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def _answer(self, *, body: bool) -> None:
        if self.path.partition("?")[0] != "/metrics":
            self.send_error(404, explain="the measures are at /metrics")
            return
        page = self.server.fresh_page()
        self.send_response(200)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        if body:
            self.wfile.write(page)

    def log_message(self, format: str, *args: object) -> None:
        """A scrape every few seconds is nothing to log."""


def _target(address: str, allow_remote: bool) -> tuple[socket.AddressFamily, tuple[str, int]]:
    host, colon, port = address.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not (port.isascii() and port.isdigit() and int(port) <= 65535) or (not colon and not port):
        raise TelemetryError(address, "not an address for --metrics", "write 127.0.0.1:9464")
    try:
        family, _, _, _, target = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise TelemetryError(address, f"unknown host ({error.strerror or error})") from None
    found = str(target[0]).partition("%")[0]
    if not ipaddress.ip_address(found).is_loopback and not allow_remote:
        raise TelemetryError(address, "other machines could read the measures", "use 127.0.0.1, or --allow-remote")
    return family, (found, int(port))
