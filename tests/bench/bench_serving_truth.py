"""A real exporter under a real load against the truth: `python tests/bench/bench_serving_truth.py LOG.json`.

`prometheus_client` (which must be installed) serves vLLM's histograms and gauges while the requests of a BurstGPT
request log happen again, `--speed` times as fast; their latencies stay what they were. The server notes what it had
observed at every scrape, so the truth of every bracket is known: the nearest-rank quantile of the requests between the
two scrapes it is of. First a source is polled, then `fusetui snapshot` runs as a program.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fusetui.sources.registry import open_source

QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
TTFT = (
    0.001,
    0.005,
    0.01,
    0.02,
    0.04,
    0.06,
    0.08,
    0.1,
    0.25,
    0.5,
    0.75,
    1,
    2.5,
    5,
    7.5,
    10,
    20,
    40,
    80,
    160,
    640,
    2560,
)
E2E = (0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680)
NAMES = {"ttft": "time_to_first_token", "e2e": "e2e_request_latency"}
Row = tuple[float | None, str | None]


class Scrape(NamedTuple):
    """How many requests had a first token and had ended, how many waited and ran, when a page was made."""

    ttft: int
    e2e: int
    waiting: int
    running: int


class Engine:
    """The requests of a log, happening again; scrapes are noted as they come."""

    def __init__(self, path: Path, speed: float) -> None:
        import prometheus_client as prometheus

        rows = list(json.loads(path.read_text()).values())
        end = np.array([row["record_time"] for row in rows])
        arrival = end - [row["total_chunk_time"] for row in rows]
        first = arrival + [row["first_chunk_time"] for row in rows]
        zero = arrival.min()
        self.observed = {"ttft": (first - arrival)[np.argsort(first)], "e2e": (end - arrival)[np.argsort(end)]}
        self.times = {"arrival": np.sort(arrival) - zero, "ttft": np.sort(first) - zero, "e2e": np.sort(end) - zero}
        self.scrapes: list[Scrape] = []
        self._done = {"ttft": 0, "e2e": 0}
        self._speed, self._began_s = speed, time.monotonic()
        self._prometheus, self._registry = prometheus, prometheus.CollectorRegistry()
        self._lock = threading.Lock()
        self._histograms = {
            row: prometheus.Histogram(f"vllm:{name}_seconds", row, buckets=buckets, registry=self._registry)
            for (row, name), buckets in zip(NAMES.items(), (TTFT, E2E), strict=True)
        }
        self._gauges = {
            what: prometheus.Gauge(f"vllm:num_requests_{what}", what, registry=self._registry)
            for what in ("running", "waiting")
        }

    def page(self, accept: str) -> tuple[bytes, str]:
        """The page of now, in the format that is asked for."""
        with self._lock:
            now_s = (time.monotonic() - self._began_s) * self._speed
            for row, histogram in self._histograms.items():
                until = int(np.searchsorted(self.times[row], now_s, "right"))
                for value in self.observed[row][self._done[row] : until]:
                    histogram.observe(value)
                self._done[row] = until
            arrived = int(np.searchsorted(self.times["arrival"], now_s, "right"))
            seen, ended = self._done["ttft"], self._done["e2e"]
            self.scrapes.append(Scrape(seen, ended, arrived - seen, seen - ended))
            self._gauges["waiting"].set(arrived - seen)
            self._gauges["running"].set(seen - ended)
            encode, kind = self._prometheus.exposition.choose_encoder(accept)
            return encode(self._registry), kind

    def left_s(self) -> float:
        """Seconds until the last request ends."""
        return float(self.times["e2e"][-1]) / self._speed - (time.monotonic() - self._began_s)


class Verdict:
    """Rows of scrapes held against the truth."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.brackets = self.counts = self.gauges = 0
        self.wrong: list[str] = []

    def judge(self, scrape: Scrape, rows: dict[str, Row]) -> None:
        """rows: name -> (value, unit) of one scrape."""
        for what in ("waiting", "running"):
            self.gauges += 1
            if rows[f"requests {what}"][0] != getattr(scrape, what):
                self.wrong.append(f"{what}: {rows[f'requests {what}']} is not {getattr(scrape, what)}")
        for row in NAMES:
            n = int(rows.get(f"{row} n", (0, None))[0] or 0)
            until = getattr(scrape, row)
            if n:
                self._interval(row, rows, np.sort(self.engine.observed[row][until - n : until]), until - n)

    def _interval(self, row: str, rows: dict[str, Row], values: Any, since: int) -> None:
        self.counts += 1
        if since not in [getattr(scrape, row) for scrape in self.engine.scrapes]:
            self.wrong.append(f"{row}: an interval from request {since}, where no scrape was")
        for label, q in QUANTILES.items():
            lo, hi = (rows.get(f"{row} {label} {end}", (None, None))[0] for end in ("lo", "hi"))
            if lo is None:
                continue
            truth = float(values[int(np.ceil(q * len(values) - 1e-9)) - 1])
            self.brackets += 1
            if not lo < truth <= (np.inf if hi is None else hi):
                self.wrong.append(f"{row} {label}: {truth} is not in ({lo}, {hi}]")

    def __str__(self) -> str:
        wrong = "none wrong" if not self.wrong else f"{len(self.wrong)} WRONG: {'; '.join(self.wrong[:5])}"
        return f"{self.brackets} brackets, {self.counts} counts and {self.gauges} gauges held to the truth, {wrong}"


def serve(engine: Engine) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body, kind = engine.page(self.headers["Accept"] or "")
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def poll(engine: Engine, url: str, verdict: Verdict, for_s: float) -> None:
    """A live source, scrape by scrape."""
    with closing(open_source(f"{url}#every=0.5,window=5")) as source:
        until_s, taken = time.monotonic() + for_s, 0
        while time.monotonic() < until_s:
            for batch in source.poll(0.2):
                rows = {r["name"]: (r["value"], r["unit"]) for r in batch.to_pylist() if r["kind"] == "counter"}
                verdict.judge(engine.scrapes[taken], rows)
                taken += 1
        print(f"live source: {taken} scrapes, {verdict}; {source.health().detail}")


def snapshot(engine: Engine, url: str, verdict: Verdict) -> None:
    """The program, as a person runs it; what it tells is of its last scrape."""
    program = "import sys, fusetui.cli; sys.exit(fusetui.cli.main())"
    command = [sys.executable, "-c", program, "snapshot", f"{url}#every=0.5,window=5", "--window", "6s", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)["counters_by_name"]
    rows: dict[str, Row] = {row["name"]: (row["last"], row["unit"]) for row in told}
    candidates = []
    for scrape in engine.scrapes[-3:]:  # one more scrape may be on its way when it stops
        candidates.append(Verdict(engine))
        candidates[-1].judge(scrape, rows)
    best = min(candidates, key=lambda one: len(one.wrong))
    verdict.wrong += best.wrong
    print(f"fusetui snapshot: {best}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", type=Path, help="a request log of the BurstGPT load generator")
    parser.add_argument("--speed", type=float, default=10.0)
    parser.add_argument("--for", dest="for_s", type=float, default=7.0, help="seconds the live source is polled")
    args = parser.parse_args()
    engine = Engine(args.log, args.speed)
    server = serve(engine)
    url = f"http://127.0.0.1:{server.server_port}/metrics"
    verdict = Verdict(engine)
    print(f"{args.log.name}: {len(engine.observed['e2e'])} requests, {engine.left_s():.0f} s at {args.speed:g}x")
    poll(engine, url, verdict, args.for_s)
    snapshot(engine, url, verdict)
    server.shutdown()
    sys.exit(1 if verdict.wrong else 0)


if __name__ == "__main__":
    main()
