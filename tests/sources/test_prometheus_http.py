"""A real server on loopback: pages replayed, and servers that are gone, slow, wrong or hostile."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler

import pytest
from http_servers import TEXT, send, serving
from prometheus_pages import histogram

from fusetui.cli import main
from fusetui.sources.prometheus import open_spec
from fusetui.sources.prometheus_fetch import MAX_BYTES, FetchError, fetch, parse_target
from fusetui.sources.prometheus_source import PrometheusSource
from fusetui.sources.spec import OpenOptions
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.gate import Gate
from fusetui.telemetry.source import SourceHealth


@contextmanager
def raw_server(data: bytes, *, drip_s: float = 0.0) -> Iterator[str]:
    """Sends these bytes to whoever connects, whatever it asked; with drip_s one by one and then on for ever."""
    stop = threading.Event()

    def run(listener: socket.socket) -> None:
        while not stop.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                try:
                    if not drip_s:
                        connection.recv(4096)
                        connection.sendall(data)
                    for byte in data if drip_s else b"":
                        connection.sendall(bytes([byte]))
                        stop.wait(drip_s)
                    while drip_s and not stop.is_set():
                        connection.sendall(b"x")
                        stop.wait(drip_s)
                except OSError:
                    continue

    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        thread = threading.Thread(target=run, args=(listener,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/metrics"
        finally:
            stop.set()
            listener.shutdown(socket.SHUT_RDWR)


def failure(url: str, timeout_s: float = 5.0) -> FetchError:
    with pytest.raises(FetchError) as caught:
        fetch(parse_target(url), timeout_s=timeout_s, authorization=None, allow_remote=False)
    assert "\n" not in str(caught.value)
    return caught.value


def until(source: PrometheusSource, met: Callable[[SourceHealth], bool]) -> SourceHealth:
    deadline = time.monotonic() + 10
    while not met(health := source.health()):
        assert time.monotonic() < deadline, health
        source.poll(0.02)
    return health


def watching(url: str) -> PrometheusSource:
    return PrometheusSource(parse_target(url), every_s=0.05, timeout_s=1.0)


def test_pages_are_replayed_into_checked_batches() -> None:
    asked: list[str] = []

    def answer(request: BaseHTTPRequestHandler) -> None:
        n = 3 * len(asked)
        asked.append(f"{request.path} {request.headers['Accept-Encoding']} {request.headers['Authorization']}")
        text = f"vllm:num_requests_running {n}\n" + histogram(
            "vllm:e2e_request_latency_seconds", ["1.0", "2.0", "+Inf"], [0, n, n], 1.5 * n
        )
        send(request, gzip.compress(text.encode()), Content_Encoding="gzip")

    found: dict[str, set[float]] = {}
    with (
        serving(answer) as url,
        closing(open_spec(f"{url}?all=1#every=0.1", OpenOptions(authorization="Bearer secret"))) as source,
    ):
        deadline = time.monotonic() + 10
        while len(asked) < 4 and time.monotonic() < deadline:
            for batch in source.poll(0.1):
                kept, dropped = Gate(batch.schema, "test").conform(batch, "test")
                assert dropped == 0
                for row in kept.to_pylist():
                    found.setdefault(row["name"], set()).add(row["value"])
        health = source.health()
        assert source.now_ns() is not None
        assert source.header.build == {"engine": "vLLM"}
    assert asked[0] == "/metrics?all=1 gzip Bearer secret"
    assert (health.state, health.detail, health.bad_rows) == ("live", "vLLM, 6 series", 0)
    assert health.rows > 0 < health.bytes_in
    assert {0.0, 3.0} <= found["requests running"]
    assert (found["e2e p95 lo"], found["e2e p95 hi"], found["e2e mean"]) == ({1.0}, {2.0}, {1.5})
    assert "secret" not in str(health)


@pytest.mark.parametrize(
    ("status", "kind", "state", "why"),
    [
        (401, TEXT, "failed", "what it wants with --auth-file"),
        (403, TEXT, "failed", "access refused"),
        (404, TEXT, "failed", "engines have it at /metrics"),
        (503, TEXT, "reconnecting", "HTTP 503"),
        (418, TEXT, "failed", "HTTP 418"),
        (302, TEXT, "failed", "it redirects to http://203.0.113.1/"),
        (200, "text/html", "failed", "text/html: not a page of metrics"),
        (200, "application/vnd.google.protobuf", "failed", "not a page of metrics in text"),
    ],
)
def test_an_answer_that_is_no_page(status: int, kind: str, state: str, why: str) -> None:
    with serving(lambda r: send(r, b"a 1\n", kind, status, Location="http://203.0.113.1/")) as url:
        error = failure(url)
    assert error.state == state
    assert why in str(error)


@pytest.mark.parametrize(
    ("data", "state", "why"),
    [
        (b"", "reconnecting", "no answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\na 1\n", "reconnecting", "cut off after 4 bytes"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\na 1\n", "failed", "over the 32 MB limit"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\na 1", "reconnecting", "no answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nnot gzip at all", "failed", "gzip is broken"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\n\r\nxx", "failed", "packed as br"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\na 1", "reconnecting", "no answer"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\na 1", "reconnecting", "no answer"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "reconnecting", "no answer"),
    ],
)
def test_bytes_that_are_no_page(data: bytes, state: str, why: str) -> None:
    with raw_server(data) as url:
        error = failure(url)
    assert error.state == state
    assert why in str(error)


@pytest.mark.parametrize("begin", [b"", b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_a_dribble_is_left_at_the_deadline(begin: bytes) -> None:
    with raw_server(begin, drip_s=0.01) as url:
        began = time.monotonic()
        error = failure(url, timeout_s=0.6)
        assert time.monotonic() - began < 3
    assert error.state in ("hung", "reconnecting")
    if begin:
        assert str(error) == "no whole answer within 0.6 s"


def test_an_endless_body_and_a_bomb_stop_at_the_limit() -> None:
    def endless(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.end_headers()
        while True:
            request.wfile.write(b"x" * 65536)

    bomb = gzip.compress(b"a" * (4 * MAX_BYTES), 1)
    with serving(endless) as url:
        assert "over the 32 MB limit" in str(failure(url, timeout_s=30))
    with serving(lambda r: send(r, bomb, Content_Encoding="gzip")) as url:
        assert "over the 32 MB limit" in str(failure(url, timeout_s=30))


def test_openmetrics_is_known_by_its_content_type_and_must_have_its_end() -> None:
    kind = "application/openmetrics-text; version=1.0.0; charset=utf-8"
    whole, cut = b"vllm:num_requests_running 1\n# EOF\n", b"vllm:num_requests_running 1\n"
    with serving(lambda r: send(r, whole, kind)) as url, closing(watching(url)) as source:
        until(source, lambda health: health.state == "live")
    with serving(lambda r: send(r, cut, kind)) as url, closing(watching(url)) as source:
        assert "no # EOF" in until(source, lambda health: health.state == "reconnecting").detail


def test_a_server_that_was_gone_is_taken_up_again() -> None:
    with serving(lambda r: send(r, b"sglang:num_queue_reqs 2\n")) as url:
        source = watching(url)
        until(source, lambda health: health.state == "live")
    with closing(source):
        lost = until(source, lambda health: health.state == "reconnecting")
        assert "refused" in lost.detail
        assert lost.last_error.startswith(url)
        assert "failed so far" in lost.detail
        assert lost.rejected_batches == 0
        with serving(lambda r: send(r, b"", TEXT, 401), int(url.split(":")[2].split("/")[0])):
            until(source, lambda health: health.state == "failed")
        with serving(lambda r: send(r, b"sglang:num_queue_reqs 3\n"), int(url.split(":")[2].split("/")[0])):
            back = until(source, lambda health: health.state == "live")
            assert back.detail == "SGLang, 1 series"
    assert source.health().state == "ended"


def test_a_server_that_hangs_says_so_and_closing_does_not_wait_for_it() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    with closing(listener), closing(watching(f"http://127.0.0.1:{listener.getsockname()[1]}")) as source:
        assert until(source, lambda health: health.state == "hung").detail.startswith("no whole answer within 1 s; ")
        assert source.poll(0.0) == []
    assert source.health().state == "ended"


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("http://192.0.2.7:8000/metrics", "another machine; say --allow-remote"),
        ("http://example.org/metrics", "another machine"),
        ("http://127.0.0.1.example.org/metrics", "another machine"),
        ("http://user:pass@127.0.0.1/metrics", "use --auth-file"),
        ("http://", "not an address"),
        ("http://127.0.0.1:99999/metrics", "not an address"),
        ("http://127.0.0.1:8000/a b", "not an address"),
        ("http://127.0.0.1:8000/#every=0", "out of range"),
        ("http://127.0.0.1:8000/#every=nan", "out of range"),
        ("http://127.0.0.1:8000/#window=0.5", "out of range"),
        ("http://127.0.0.1:8000/#every=0.1,window=3600", "over 1,000 scrapes"),
        ("http://127.0.0.1:8000/#often=1", "unknown parameter 'often'; known: every, window"),
    ],
)
def test_an_address_that_is_not_read(spec: str, complaint: str) -> None:
    with pytest.raises(TelemetryError, match=complaint) as caught:
        open_spec(spec, OpenOptions())
    assert "pass@" not in str(caught.value)


def test_other_machines_when_told() -> None:
    assert str(parse_target("http://192.0.2.7:9400", allow_remote=True)) == "http://192.0.2.7:9400/metrics"
    assert str(parse_target("http://[::1]:9400/x?y=1")) == "http://[::1]:9400/x?y=1"


def test_the_command_line_takes_an_address_for_a_live_source(capsys: pytest.CaptureFixture[str]) -> None:
    with serving(lambda r: send(r, b"vllm:num_requests_waiting 98\n")) as url:
        assert main(["snapshot", url, "--window", "2s", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    [row] = told["counters_by_name"]
    assert (row["name"], row["last"]) == ("requests waiting", 98.0)
    assert told["header"]["build"] == {"engine": "vLLM"}


def test_what_people_read_is_the_counters_and_no_table_of_dashes(capsys: pytest.CaptureFixture[str]) -> None:
    page = b"vllm:num_requests_waiting 98\nvllm:num_requests_running 12\n"
    with serving(lambda r: send(r, page)) as url:
        assert main(["snapshot", url, "--window", "2s"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line for line in shown if line.startswith(("work", "latency", "time"))] == [
        "work         0 executions, 0 requests"
    ]
    at = shown.index(f"{'counters':13}{'requests running':44}  12")
    assert shown[at + 1] == f"{'':13}{'requests waiting':44}  98"
