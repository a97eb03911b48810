"""Eight endpoints at 1 Hz, each a large page: `python tests/bench/bench_scrape.py [--seconds 20] [PAGE.prom ...]`.

A second process serves the pages, counters and buckets growing from scrape to scrape. Prints the share of a core that
a source of all of them takes without a view, what a scrape takes, and, with the whole application in a pty of 120x40,
its share of a core and how late its event loop came back from a sleep of 10 ms. Without pages: one like Ray Serve's.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
from bench_live_app import WARM_UP_S, left, wait_until_up, watch
from bench_prometheus import made_up
from terminal import Terminal

from fusetui.sources.registry import open_source

ENDPOINTS = 8
_GROWS = ("_bucket", "_sum", "_count", "_total")


def grown(text: str, turns: int) -> list[bytes]:
    """The page at so many scrapes: what only grows has grown by a hundredth each time."""
    lines = []
    for line in text.splitlines():
        key, _, value = line.rpartition(" ")
        grows = not line.startswith("#") and key.partition("{")[0].endswith(_GROWS)
        lines.append((key, float(value)) if grows else line)
    return [
        "\n".join(a if isinstance(a, str) else f"{a[0]} {a[1] * (1 + turn / 100)}" for a in lines).encode() + b"\n"
        for turn in range(turns)
    ]


def serve(pages: list[str], turns: int) -> None:
    """ENDPOINTS servers in this process; prints their ports and stays until it is ended."""

    def server_of(versions: list[bytes]) -> ThreadingHTTPServer:
        asked = iter(range(1 << 30))

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = versions[min(next(asked), len(versions) - 1)]
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        return ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    versions = [grown(text, turns) for text in pages]
    servers = [server_of(versions[n % len(versions)]) for n in range(ENDPOINTS)]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    print(json.dumps([server.server_port for server in servers]), flush=True)
    sys.stdin.read()


def headless(spec: str, seconds: float) -> None:
    with closing(open_source(spec)) as source:
        until_s = time.monotonic() + 3
        while time.monotonic() < until_s:
            source.poll(0.1)
        rows, bytes_in, used_s, began_s = (
            source.health().rows,
            source.health().bytes_in,
            time.process_time(),
            time.monotonic(),
        )
        while time.monotonic() < began_s + seconds:
            source.poll(0.25)
        used_s, took_s, health = time.process_time() - used_s, time.monotonic() - began_s, source.health()
        megabytes = (health.bytes_in - bytes_in) / took_s / 1e6
        print(f"source alone: {100 * used_s / took_s:.1f} % of a core, {megabytes:.1f} MB/s,", end=" ")
        print(f"{(health.rows - rows) / took_s:,.0f} rows/s; {health.detail}")


def whole(spec: str, seconds: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        report = f"{folder}/report"
        terminal = Terminal([sys.executable, __file__, "--watch", spec, report])
        wait_until_up(terminal)
        terminal.read_for(WARM_UP_S)
        cpu_s = terminal.cpu_s()
        terminal.read_for(seconds)
        spent, rss = terminal.cpu_s() - cpu_s, terminal.rss_mib()
        seen = left(terminal, report)
    late = np.sort(np.array(seen["late_ms"])[:-50])
    print(f"application: {100 * spent / seconds:.1f} % of a core, {rss:.0f} MiB; event loop late", end=" ")
    print(f"p50 {np.quantile(late, 0.5):.1f} ms, p99 {np.quantile(late, 0.99):.1f} ms, worst {late[-1]:.1f} ms")


def main() -> None:
    if sys.argv[1:2] == ["--watch"]:
        return watch(sys.argv[2], sys.argv[3])
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="*", type=Path)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--serve", action="store_true", help="only serve the pages")
    args = parser.parse_args()
    pages = [page.read_text() for page in args.pages] or [made_up()]
    if args.serve:
        return serve(pages, int(3 * args.seconds) + 30)
    command = [sys.executable, __file__, "--serve", "--seconds", str(args.seconds), *map(str, args.pages)]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdout is not None
    ports = json.loads(server.stdout.readline())
    sizes = ", ".join(f"{len(page):,}" for page in pages)
    print(f"{ENDPOINTS} endpoints at 1 Hz, pages of {sizes} bytes")
    spec = ",".join(f"http://127.0.0.1:{port}/metrics" for port in ports)
    headless(spec, args.seconds)
    whole(spec, args.seconds)
    server.communicate()
    return None


if __name__ == "__main__":
    main()
