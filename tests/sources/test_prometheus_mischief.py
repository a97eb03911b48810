"""One source through all that a server can do to it: a state that says what is wrong, and live again by itself."""

from __future__ import annotations

import socket
import struct
import threading
import time
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from functools import partial
from http.server import BaseHTTPRequestHandler

import pytest
from http_servers import TEXT, send, serving

from fusetui.sources.prometheus_fetch import MAX_BYTES, parse_target
from fusetui.sources.prometheus_source import PrometheusSource
from fusetui.sources.prometheus_text import SeriesTable
from fusetui.telemetry.source import SourceHealth

Answer = Callable[[BaseHTTPRequestHandler], None]
GOOD = b"# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting 3\n"


def hang(request: BaseHTTPRequestHandler) -> None:
    time.sleep(1.0)


def dribble(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.end_headers()
    for _ in range(60):
        request.wfile.write(b"a")
        request.wfile.flush()
        time.sleep(0.02)


def ten_gigabytes(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.send_header("Content-Length", str(10 * 10**9))
    request.end_headers()
    for _ in range(10 * 10**9 >> 20):
        request.wfile.write(b"x" * (1 << 20))


def ten_gigabytes_unannounced(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.end_headers()
    for _ in range(10 * 10**9 >> 20):
        request.wfile.write(b"x" * (1 << 20))


def reset(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.send_header("Content-Length", "1000")
    request.end_headers()
    request.wfile.write(b"vllm:num_")
    request.wfile.flush()
    request.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    request.connection.close()


def says(body: bytes, kind: str = TEXT, status: int = 200) -> Answer:
    return lambda request: send(request, body, kind, status)


_HTML = b"<!doctype html><html><body>Sign in</body></html>"
_OPENMETRICS = "application/openmetrics-text; version=1.0.0"
MISCHIEF: dict[str, tuple[Answer, str, str]] = {
    # what it does: the answer, the state, what the state says
    "hangs": (hang, "hung", "no whole answer within 0.4 s"),
    "dribbles": (dribble, "hung", "no whole answer within 0.4 s"),
    "ten gigabytes": (ten_gigabytes, "failed", "10000000000 bytes, over the 32 MB limit"),
    "ten gigabytes unannounced": (ten_gigabytes_unannounced, "failed", "over the 32 MB limit"),
    "HTML": (says(_HTML, "text/html"), "failed", "text/html: not a page of metrics"),
    "HTML that claims to be text": (says(_HTML), "failed", "not one sample on the page"),
    "JSON that claims to be text": (says(b'{"a": 1}'), "failed", "not one sample on the page"),
    "bytes that claim to be text": (says(bytes(range(256)) * 50), "failed", "not one sample on the page"),
    "text that claims to be OpenMetrics": (says(GOOD, _OPENMETRICS), "reconnecting", "no # EOF"),
    "an empty page": (says(b""), "failed", "not one sample on the page"),
    "401": (says(b"", status=401), "failed", "--auth-file"),
    "503": (says(b"", status=503), "reconnecting", "HTTP 503"),
    "resets": (reset, "reconnecting", "no answer"),
}


def until(source: PrometheusSource, met: Callable[[SourceHealth], bool]) -> SourceHealth:
    deadline = time.monotonic() + 20
    while not met(health := source.health()):
        assert time.monotonic() < deadline, health
        source.poll(0.02)
    return health


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fusetui.sources.prometheus_source._MAX_WAIT_S", 0.2)


@pytest.mark.parametrize("name", MISCHIEF)
def test_it_is_told_and_the_source_comes_back_by_itself(name: str) -> None:
    bad, state, why = MISCHIEF[name]
    answers: list[Answer] = [says(GOOD)]
    timeout_s = 15.0 if name == "ten gigabytes unannounced" else 0.4
    with (
        serving(lambda request: answers[0](request)) as url,
        closing(PrometheusSource(parse_target(url), every_s=0.05, timeout_s=timeout_s)) as source,
    ):
        until(source, lambda health: health.state == "live")
        answers[0] = bad
        told = until(source, lambda health: health.state != "live")
        assert told.state == state
        assert why in told.detail
        assert "failed so far" in told.detail
        assert told.last_error.startswith(url)
        assert "\n" not in told.detail
        answers[0] = says(GOOD)
        rows = told.rows
        back = until(source, lambda health: health.state == "live" and health.rows > rows)
        assert back.detail == "vLLM, 1 series"


def test_no_mischief_holds_memory() -> None:
    names = ("ten gigabytes", "bytes that claim to be text", "HTML", "401", "resets")
    answers: list[Answer] = [says(GOOD)]
    asked: list[int] = []

    def answer(request: BaseHTTPRequestHandler) -> None:
        asked.append(1)
        answers[0](request)

    with (
        serving(answer) as url,
        closing(PrometheusSource(parse_target(url), every_s=0.02, timeout_s=0.4)) as source,
    ):
        until(source, lambda health: health.state == "live")
        tracemalloc.start()
        try:
            for name in names:
                answers[0], before = MISCHIEF[name][0], len(asked)
                until(source, lambda health, then=before: len(asked) > then + 4)  # type: ignore[misc]
            held, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert held < 4 << 20
    assert peak < MAX_BYTES


def test_names_that_change_with_every_scrape_are_bounded_and_the_next_engine_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fusetui.sources.prometheus_scraper.SeriesTable", partial(SeriesTable, max_series=1000))
    turn = 0
    lock = threading.Lock()

    def churning(request: BaseHTTPRequestHandler) -> None:
        nonlocal turn
        with lock:
            turn += 1
            now = turn
        lines = "".join(f'made_up_{n}_{now}{{pod="{now}"}} {n}\n' for n in range(300))
        send(request, lines.encode())

    answers: list[Answer] = [churning]
    with (
        serving(lambda request: answers[0](request)) as url,
        closing(PrometheusSource(parse_target(url), every_s=0.01)) as source,
    ):
        until(source, lambda health: turn > 15)
        table = source._scraper.table
        assert 300 <= len(table.series) <= 1000
        answers[0] = says(b'sglang:num_queue_reqs{model_name="m"} 2\n')
        until(source, lambda health: health.state == "live" and health.detail.startswith("SGLang"))
