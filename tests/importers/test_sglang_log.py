"""Logs of SGLang: batches as counters, the use of captured graphs, and requests."""

from __future__ import annotations

from pathlib import Path

import pytest
from kineto_samples import MEMORY, rows_of, write
from small_captures import SGLANG_LOG, sglang_requests

from fusetui.importers import sglang_log
from fusetui.importers import sglang_requests as requests
from fusetui.telemetry.errors import TelemetryError

_AT = 1_748_376_878_000_000_000


def test_batches_are_counters(tmp_path: Path) -> None:
    assert sglang_log.sniff(SGLANG_LOG)
    capture = sglang_log.read(write(tmp_path / "log", SGLANG_LOG), MEMORY)
    rows = rows_of(capture)
    cache = [(r["end_ns"] - _AT, r["value"], r["unit"], r.get("stream")) for r in rows if r["name"] == "GPU KV cache"]
    assert cache == [(0, 2.0, "%", "TP0"), (0, 50.0, "%", "TP0"), (1_000_000_000, 25.0, "%", None)]
    graphs = [(r["value"], r["mapping"], r["shape"]) for r in rows if r["name"] == "decode graph"]
    assert graphs == [(0.0, "fallback", "batch=18"), (1.0, "planned", "batch=4")]
    values = {row["name"]: row["value"] for row in rows if row["end_ns"] == _AT and row["name"].startswith("p")}
    assert values == {"pending requests": 3.0, "prefill requests": 1.0, "prefill tokens": 115.0}
    assert capture.header.clock == "epoch"


def test_requests_with_and_without_what_the_server_may_tell(tmp_path: Path) -> None:
    tokens = {"prompt_tokens": 23, "completion_tokens": 412}
    content = sglang_requests(
        [
            {"e2e_latency": 2.5, "response_sent_to_client_ts": 1003.0, **tokens},
            {"e2e_latency": 2.0, "request_received_ts": 1000.0, "queue_time": 0.25, **tokens},
            {"e2e_latency": 2.0, "request_received_ts": 1000.0, "request_finished_ts": 1002.5,
             "forward_entry_time": 1000.5, "queue_time": 0.25, **tokens},
            {"e2e_latency": 2.0, **tokens},
        ]
    )  # fmt: skip
    assert requests.sniff(content)
    capture = requests.read(write(tmp_path / "log", content), MEMORY)
    rows = rows_of(capture)
    times = [[row[key] / 1e9 for key in ("enqueue_ns", "start_ns", "end_ns")] for row in rows]
    assert times == [[1000.0, 1000.25, 1002.0], [1000.0, 1000.5, 1002.5], [1000.5, 1000.5, 1003.0]]
    assert {row["shape"] for row in rows} == {"tokens=23 output=412"}
    assert capture.notes[0] == "requests left out: no times, or unreadable: 1"
    assert capture.notes[1].startswith("requests that do not say when they were scheduled: 1;")


def test_logs_without_times_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TelemetryError, match="without one request that has times"):
        requests.read(write(tmp_path / "a", sglang_requests([{"e2e_latency": 1.0}])), MEMORY)
    bad = SGLANG_LOG.replace(b"05-27", b"99-99")
    with pytest.raises(TelemetryError, match="without one readable line"):
        sglang_log.read(write(tmp_path / "b", bad), MEMORY)
