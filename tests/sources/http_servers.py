"""Servers on loopback for the scraper: any answer to a GET, also over TLS."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = Callable[[BaseHTTPRequestHandler], None]
TEXT = "text/plain; version=0.0.4; charset=utf-8"


def send(request: BaseHTTPRequestHandler, body: bytes, kind: str = TEXT, status: int = 200, **headers: str) -> None:
    request.send_response(status)
    request.send_header("Content-Type", kind)
    request.send_header("Content-Length", str(len(body)))
    for name, value in headers.items():
        request.send_header(name.replace("_", "-"), value)
    request.end_headers()
    request.wfile.write(body)


@contextmanager
def serving(answer: Answer, port: int = 0, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """The address of a server that answers every GET so."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            try:
                answer(self)
            except OSError:
                self.close_connection = True  # the client had enough

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def get_request(self) -> tuple[object, object]:  # type: ignore[override]
            connection, address = self.socket.accept()
            if tls is not None:
                connection = tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
            return connection, address

        def handle_error(self, request: object, client_address: object) -> None:
            pass  # a client that does not like the certificate

    server = Server(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
