"""Request logs: found by content, known answers on small files, no latency where none was measured."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from request_log_samples import ALL, AZURE, AZURE_T0, BURSTGPT_1, BURSTGPT_3, DETAIL, GPU, MOONCAKE, SCHEDULER

from fusetui.analysis.summary import summarise_trace
from fusetui.importers.open import importers, open_capture
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.source import Trace

MEMORY = 64 << 20
S = 1_000_000_000


def opened(tmp_path: Path, *contents: bytes) -> Trace:
    paths = []
    for number, content in enumerate(contents):
        path = tmp_path / f"file{number}.dat"
        path.write_bytes(content)
        paths.append(path)
    trace = open_capture(paths, memory_bytes=MEMORY)
    assert trace.wait_complete(30)  # type: ignore[attr-defined]
    return trace


def rows_of(trace: Trace) -> list[dict[str, Any]]:
    return [row for number in range(len(trace.index().rows)) for row in trace.read(number).to_pylist()]


def test_each_is_found_by_its_content_alone(tmp_path: Path) -> None:
    for name, content in ALL.items():
        claims = [module.__name__.rpartition(".")[2] for module in importers() if module.sniff(content)]  # type: ignore[attr-defined]
        assert claims == [name]


def test_azure_keeps_seven_digits_and_says_nothing_of_latency(tmp_path: Path) -> None:
    trace = opened(tmp_path, AZURE)
    rows = rows_of(trace)
    assert [row["end_ns"] - AZURE_T0 for row in rows] == [0, 52_000_000, 1_020_040_000]
    assert [row["shape"] for row in rows] == ["tokens=4808 output=10", "tokens=3180 output=8", "tokens=110 output=27"]
    assert [(row["kind"], row["name"], row["value"], row["unit"], row["request"]) for row in rows] == [
        ("counter", "prompt tokens", 4808.0, "tokens", 0), ("counter", "prompt tokens", 3180.0, "tokens", 1),
        ("counter", "prompt tokens", 110.0, "tokens", 2),
    ]  # fmt: skip
    assert trace.header.clock == "epoch"
    summary = summarise_trace(trace)
    assert summary["latency_ns"]["n"] == 0
    assert summary["latency_ns"]["p50"] is None
    assert any("arrivals only" in note for note in summary["notes"])


def test_azure_of_2024_has_a_zone(tmp_path: Path) -> None:
    trace = opened(tmp_path, b"TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00.009930+00:00,2162,5\r\n")
    assert [row["end_ns"] for row in rows_of(trace)] == [1_715_299_200_009_930_000]


def test_bad_rows_are_counted_and_left_out(tmp_path: Path) -> None:
    bad = b"2023-02-30 00:00:00,1,1\n2023-11-16 25:00:00,1,1\nnow,1,1\n2023-11-16 18:17:06,-4,1\n2023-11-16,1\n,,\n"
    trace = opened(tmp_path, AZURE + bad + b"2023-11-16 18:17:07,1e3,1\n2023-11-16 18:17:08,\xff,1\n")
    assert len(rows_of(trace)) == 3
    assert any(note.startswith("8 rows left out") for note in trace.notes)


def test_mooncake_counts_from_its_first_request(tmp_path: Path) -> None:
    trace = opened(
        tmp_path, MOONCAKE.replace(b'{"timestamp": 27003', b'{"timestamp": 27003.5, "x": 1}\n{"timestamp": 27003')
    )
    assert [(row["end_ns"], row["shape"]) for row in rows_of(trace)] == [
        (0, "tokens=6758 output=500"), (3_000_000, "tokens=12 output=3"), (3 * S, "tokens=900 output=44"),
    ]  # fmt: skip
    assert any(note.startswith("1 rows left out") for note in trace.notes)
    assert trace.header.clock == "trace"


def test_arrivals_rounded_to_seconds_are_told(tmp_path: Path) -> None:
    lines = [b'{"timestamp": %d, "input_length": 1, "output_length": 1}\n' % (i // 10 * 3000) for i in range(200)]
    trace = opened(tmp_path, b"".join(lines))
    assert any("steps of about 3 s (20 distinct of 200)" in note for note in trace.notes)
    even = opened(
        tmp_path, b"".join(b'{"timestamp": %d, "input_length": 1, "output_length": 1}\n' % i for i in range(200))
    )
    assert not any("steps" in note for note in even.notes)


def test_burstgpt_before_version_3_has_arrivals_only(tmp_path: Path) -> None:
    trace = opened(tmp_path, BURSTGPT_1)
    rows = rows_of(trace)
    assert [(row["kind"], row["end_ns"], row["stream"], row["shape"]) for row in rows] == [
        ("counter", 0, "ChatGPT", "tokens=472 output=18"), ("counter", 40 * S, "GPT-4", "tokens=1087 output=230"),
        ("counter", 41 * S, "GPT-4", "tokens=50 output=0"),
    ]  # fmt: skip
    assert "1 requests failed: no response tokens" in trace.notes


def test_burstgpt_3_has_latencies_but_not_of_failures(tmp_path: Path) -> None:
    trace = opened(tmp_path, BURSTGPT_3)
    rows = {row["request"]: row for row in rows_of(trace)}
    assert [(rows[i]["kind"], rows[i]["enqueue_ns"], rows[i]["end_ns"]) for i in range(3)] == [
        ("request", 0, 43 * S), ("request", 61 * S, 63 * S), ("counter", None, 62 * S),
    ]  # fmt: skip
    assert [rows[i]["name"] for i in range(3)] == ["Conversation log", "API log", "prompt tokens"]
    latency = summarise_trace(trace)["latency_ns"]
    assert (latency["n"], latency["max"]) == (2, 43 * S)


def test_measured_requests_have_their_latency(tmp_path: Path) -> None:
    trace = opened(tmp_path, DETAIL)
    rows = rows_of(trace)
    told = [(row["kind"], row["request"], row["enqueue_ns"], row["end_ns"], row["value"]) for row in rows]
    assert told == [
        ("request", 0, 0, None, None), ("counter", None, None, S // 4, 0.25), ("request", 1, S, None, None),
        ("counter", None, None, 3 * S // 2, 0.5), ("request", 1, S, 5 * S // 2, None), ("request", 0, 0, 3 * S, None),
    ]  # fmt: skip
    assert rows[0]["shape"] == rows[5]["shape"] == "tokens=476 characters=409"
    assert summarise_trace(trace)["requests"] == 2


def test_logs_of_one_run_open_together_on_one_clock(tmp_path: Path) -> None:
    trace = opened(tmp_path, DETAIL, SCHEDULER, GPU)
    rows = rows_of(trace)
    assert all(row["host"] is None for row in rows)
    events = [row["enqueue_ns"] if row["end_ns"] is None else row["end_ns"] for row in rows]
    assert events == sorted(events)
    # The scheduler's first sample is half a second before the first arrival, at 1001 s.
    assert {row["end_ns"] for row in rows if row["name"] == "pending requests"} == {0, S}
    asked = [(row["enqueue_ns"], row["end_ns"] is None) for row in rows if row["kind"] == "request"]
    assert asked == [(S // 2, True), (3 * S // 2, True), (3 * S // 2, False), (S // 2, False)]
    used = [(row["end_ns"], row["value"], row["unit"], row["device"]) for row in rows if row["name"] == "utilisation"]
    assert used == [(S // 4, 0.0, "%", 0), (3 * S // 4, 74.0, "%", 0)]
    assert not any(row["name"] == "temperature" for row in rows), "it was not measured"


def test_gzip_and_a_cut_end(tmp_path: Path) -> None:
    assert len(rows_of(opened(tmp_path, gzip.compress(AZURE)))) == 3
    cut = opened(tmp_path, DETAIL[:-30])
    assert [row["request"] for row in rows_of(cut) if row["kind"] == "request"] == [1, 1]


@pytest.mark.parametrize(
    "content",
    [AZURE[:40], b"TIMESTAMP,TIMESTAMP,ContextTokens,GeneratedTokens\n1,2,3,4\n", MOONCAKE[:5] + b"x" * (5 << 20)],
)
def test_nothing_readable_is_one_line(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(TelemetryError) as caught:
        opened(tmp_path, content)
    assert "\n" not in str(caught.value)
