"""The endpoint of `fusetui record`: right values in valid OpenMetrics text, on loopback, for few clients at a time."""

from __future__ import annotations

import re
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from fusetui.commands.metrics import Measures, Pages
from fusetui.commands.metrics_server import MAX_CLIENTS, MetricsServer
from fusetui.commands.onlookers import Onlookers
from fusetui.commands.openmetrics import CONTENT_TYPE, MAX_LABEL_CHARS, Page
from fusetui.sources.registry import open_source
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header
from fusetui.telemetry.reel import Reel
from fusetui.telemetry.schema import build_batch
from fusetui.telemetry.source import ProducerHealth, SourceHealth, Transport

SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\\\|\\n|\\")*",?)*)\})? (\S+)\Z')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')


class Fixed:
    """A source whose health is given."""

    def __init__(self, now_ns: int | None, **health: object) -> None:
        self.header = Header(source='evil"\n# EOF', host="box")
        self.generation = 0
        self.transport: Transport | None = None
        self._now_ns = now_ns
        self._health = SourceHealth("fixed", "live", **health)  # type: ignore[arg-type]

    def poll(self, timeout_s: float) -> list[pa.RecordBatch]:
        return []

    def now_ns(self) -> int | None:
        return self._now_ns

    def health(self) -> SourceHealth:
        return self._health

    def close(self) -> None:
        """Nothing is open."""


def parsed(page: bytes) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Samples by name and labels; every line must be valid, every family declared once and whole."""
    lines = page.decode().split("\n")
    assert lines[-2:] == ["# EOF", ""]
    found: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
    declared: set[str] = set()
    family = ""
    for line in lines[:-2]:
        if line.startswith("# TYPE "):
            family = line.split()[2]
            assert family not in declared
            declared.add(family)
        elif line.startswith("# "):
            assert line.split()[1] in ("UNIT", "HELP")
            assert line.split()[2] == family
        else:
            match = SAMPLE.match(line)
            assert match is not None, line
            assert match[1].startswith(family)
            key = (match[1], tuple(LABEL.findall(match[2] or "")))
            assert key not in found
            found[key] = float(match[3])
    return found


def rows(n: int, **more: object) -> pa.RecordBatch:
    """Executions that waited 3 µs and ran 5 µs each."""
    at = np.arange(n) * 10_000 + 10**18
    return build_batch(
        {"kind": "execution", "name": "k", "stream": "s", "core": np.arange(n, dtype=np.int32) % 2,
         "mapping": "planned", "enqueue_ns": at - 3000, "start_ns": at, "end_ns": at + 5000, **more}
    )  # fmt: skip


def test_counts_sums_and_buckets_are_those_of_the_rows() -> None:
    measures = Measures(
        Fixed(10**18 + 10**9, rows=100, dropped_rows=7, rejected_batches=2, bytes_in=5000, lag_ns=5 * 10**8)
    )
    measures.add(rows(60))
    measures.add(rows(40, mapping="fallback", stream='a "b"\\\nc'))
    seen = parsed(measures.page())
    assert seen["fusetui_rows_total", (("kind", "execution"),)] == 100
    assert seen["fusetui_mapped_executions_total", (("mapping", "fallback"),)] == 40
    assert seen["fusetui_mapping_share_ratio", (("mapping", "planned"),)] == 0.6
    assert seen["fusetui_source_dropped_rows_total", ()] == 7
    assert seen["fusetui_source_rejected_batches_total", ()] == 2
    assert seen["fusetui_source_lag_seconds", ()] == 0.5
    assert seen["fusetui_source_state", (("fusetui_source_state", "live"),)] == 1
    assert seen["fusetui_source_state", (("fusetui_source_state", "lost"),)] == 0
    assert seen["fusetui_queue_wait_seconds_count", (("stream", "s"),)] == 60
    assert seen["fusetui_queue_wait_seconds_sum", (("stream", "s"),)] == pytest.approx(60 * 3e-6)
    assert seen["fusetui_service_seconds_sum", (("stream", r"a \"b\"\\\nc"),)] == pytest.approx(40 * 5e-6)
    below = {float(dict(labels)["le"]): n for (name, labels), n in seen.items()
             if name == "fusetui_queue_wait_seconds_bucket" and dict(labels)["stream"] == "s"}  # fmt: skip
    bounds = sorted(below)
    assert bounds[-1] == float("inf")
    assert [below[b] for b in bounds] == [60 if b >= 3e-6 else 0 for b in bounds]
    assert sum(b < 3e-6 for b in bounds) > 2
    assert seen["fusetui_window_quantile_seconds", (("measure", "wait"), ("quantile", "0.99"))] == pytest.approx(3e-6)
    assert seen["fusetui_imbalance_ratio", ()] == pytest.approx(0.0)


def test_before_any_row_nothing_is_claimed() -> None:
    seen = parsed(Measures(Fixed(None)).page())
    assert not any(name.startswith(("fusetui_imbalance", "fusetui_window", "fusetui_queue_wait")) for name, _ in seen)
    assert ("fusetui_source_lag_seconds", ()) not in seen
    assert seen["fusetui_rows_total", (("kind", "request"),)] == 0


def test_producers_and_the_recording_are_told(tmp_path: Path) -> None:
    source = Fixed(
        None, producers=(ProducerHealth("a", "live", 1), ProducerHealth("b", "lost", 1), ProducerHealth("c", "live", 1))
    )
    reel = Reel(tmp_path / "r", source, max_bytes=1 << 20, max_seconds=3600)
    reel.lost, reel.gaps, reel.removed = 11, 2, 3
    seen = parsed(Measures(source, reel).page())
    reel.close()
    assert seen["fusetui_source_producers", (("state", "live"),)] == 2
    assert seen["fusetui_source_producers", (("state", "lost"),)] == 1
    assert seen["fusetui_recording_lost_rows_total", ()] == 11
    assert seen["fusetui_recording_gaps_total", ()] == 2
    assert seen["fusetui_recording_removed_segments_total", ()] == 3
    assert seen["fusetui_recording_state", (("fusetui_recording_state", "waiting"),)] == 1


def test_a_label_cannot_leave_its_quotes_nor_grow() -> None:
    page = Page()
    page.gauge("g", 'help\n# TYPE x "y"', [({"a": '"} 1\n# EOF\nx{a="', "b": "\\"}, 1), ({"a": "z" * 500}, 2)])
    seen = parsed(page.text())
    assert len(seen) == 2
    assert [len(dict(labels)["a"]) for _, labels in seen][1] == MAX_LABEL_CHARS


def test_the_reference_parser_takes_the_page() -> None:
    parser = pytest.importorskip("prometheus_client.openmetrics.parser")
    measures = Measures(Fixed(10**18 + 10**9, rows=60))
    measures.add(rows(60))
    families = {family.name: family for family in parser.text_string_to_metric_families(measures.page().decode())}
    assert families["fusetui_queue_wait_seconds"].type == "histogram"
    assert families["fusetui_build"].type == "info"


@pytest.fixture
def served() -> Iterator[tuple[MetricsServer, str]]:
    """A server whose pages are looked after by a thread, as the recording does."""
    server = MetricsServer("127.0.0.1:0")
    measures = Measures(Fixed(10**18 + 10**9, rows=60))
    measures.add(rows(60))
    onlookers = Onlookers([Pages(measures, server)], lambda line: None)
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(0.02):
            onlookers.tick()

    looker = threading.Thread(target=look)
    looker.start()
    yield server, f"http://{server.address}/metrics"
    ended.set()
    looker.join()
    onlookers.close()


def test_a_scrape_gets_the_page_and_its_type(served: tuple[MetricsServer, str]) -> None:
    _, address = served
    with urllib.request.urlopen(address, timeout=5) as answer:
        assert answer.headers["Content-Type"] == CONTENT_TYPE
        seen = parsed(answer.read())
    assert seen["fusetui_rows_total", (("kind", "execution"),)] == 60
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(address.replace("/metrics", "/etc/passwd"), timeout=5)


def test_our_own_live_source_reads_it() -> None:
    server = MetricsServer("127.0.0.1:0")
    measures = Measures(Fixed(10**18 + 10**9))
    measures.add(rows(5))
    pages = Pages(measures, server)
    source = open_source(
        f"http://{server.address}/metrics", memory_bytes=64 << 20, token=None, allow_remote=False, overflow="block"
    )
    counters: dict[str, float] = {}
    deadline = time.monotonic() + 20
    added = False
    while counters.get("queue wait s n") != 60 and time.monotonic() < deadline:
        for batch in source.poll(0.05):
            counters |= dict(zip(batch.column("name").to_pylist(), batch.column("value").to_pylist(), strict=True))
        if "share planned" in counters and not added:
            measures.add(rows(60))
            added = True
        pages.look()
    source.close()
    pages.close()
    assert counters["queue wait s n"] == 60
    assert counters["queue wait s p50 lo"] < 3e-6 <= counters["queue wait s p50 hi"]
    assert counters["share planned"] == 100.0


def test_clients_that_say_nothing_do_not_shut_others_out_for_ever(
    served: tuple[MetricsServer, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, address = served
    host, port = server.address.rsplit(":", 1)
    silent = [socket.create_connection((host, int(port))) for _ in range(MAX_CLIENTS)]
    time.sleep(0.3)
    with pytest.raises(OSError):
        urllib.request.urlopen(address, timeout=5)
    for client in silent:
        client.close()
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            assert urllib.request.urlopen(address, timeout=5).status == 200
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("still shut out")


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("0.0.0.0:0", "other machines could read the measures"),
        ("127.0.0.1", "not an address for --metrics"),
        ("127.0.0.1:70000", "not an address for --metrics"),
    ],
)
def test_addresses_that_are_refused(address: str, says: str) -> None:
    with pytest.raises(TelemetryError, match=says):
        MetricsServer(address)


def test_a_taken_port_is_said(served: tuple[MetricsServer, str]) -> None:
    with pytest.raises(TelemetryError, match="cannot be served there: Address already in use"):
        MetricsServer(served[0].address)


class Broken:
    every_s = 0.0

    def __init__(self) -> None:
        self.asked = self.closed = 0

    def add(self, batch: pa.RecordBatch) -> None:
        self.asked += 1
        raise RuntimeError("no\nidea")

    def look(self) -> list[str]:
        return ["seen"]

    def close(self) -> None:
        self.closed += 1


def test_who_fails_while_looking_on_is_left_out_and_said_once() -> None:
    said: list[str] = []
    broken = Broken()
    onlookers = Onlookers([broken], said.append)
    onlookers.tick()
    onlookers.add(rows(1))
    onlookers.add(rows(1))
    onlookers.tick()
    onlookers.close()
    assert (broken.asked, broken.closed) == (1, 1)
    assert said == ["fusetui: seen", "fusetui: broken ended: RuntimeError('no\\nidea')"]
