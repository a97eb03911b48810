"""Logs of vLLM engines: averages as counters, graph use as mapped counters."""

from __future__ import annotations

from pathlib import Path

import pytest
from kineto_samples import MEMORY, rows_of, write
from small_captures import VLLM_LOG

from fusetui.importers import vllm_log
from fusetui.telemetry.errors import TelemetryError


def test_averages_and_graph_use(tmp_path: Path) -> None:
    assert vllm_log.sniff(VLLM_LOG)
    capture = vllm_log.read(write(tmp_path / "log", VLLM_LOG), MEMORY)
    rows = rows_of(capture)
    assert [(r["name"], r["value"], r.get("unit"), r["stream"]) for r in rows if r.get("stream")] == [
        ("prompt throughput", 16.5, "tokens/s", "engine 3"),
        ("generation throughput", 9.8, "tokens/s", "engine 3"),
        ("running requests", 51, None, "engine 3"),
        ("pending requests", 117, None, "engine 3"),
        ("GPU KV cache", 99.5, "%", "engine 3"),
        ("prefix cache hits", 70, "%", "engine 3"),
    ]
    assert [(r["value"], r["mapping"], r["shape"]) for r in rows if r["name"] == "engine steps"] == [
        (31, "adapted", "tokens=6 padded=8"),
        (4, "planned", "tokens=8"),
        (1, "fallback", "tokens=415"),
    ]
    assert capture.header.build["CUDA graph capture sizes"] == "[1, 2, 4, 8]"


def test_the_year_turns_and_the_older_line_is_known(tmp_path: Path) -> None:
    rows = rows_of(vllm_log.read(write(tmp_path / "log", VLLM_LOG), MEMORY))
    later = {row["name"]: row["value"] for row in rows if row["end_ns"] == 10_000_000_000}
    assert later == {
        "prompt throughput": 0, "generation throughput": 24.1, "running requests": 1, "swapped requests": 0,
        "pending requests": 2, "GPU KV cache": 0.2, "CPU KV cache": 0,
    }  # fmt: skip
    assert {row["end_ns"] for row in rows} == {0, 10_000_000_000}


def test_a_log_with_years_is_since_1970(tmp_path: Path) -> None:
    capture = vllm_log.read(write(tmp_path / "log", VLLM_LOG.replace(b"INFO 01-01", b"INFO 2025-01-01")), MEMORY)
    assert capture.header.clock == "epoch"
    assert rows_of(capture)[-1]["end_ns"] == 1_735_689_605_000_000_000


def test_a_log_without_times_is_refused(tmp_path: Path) -> None:
    line = b"Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 1.0 tokens/s, Running: 1 reqs"
    assert vllm_log.sniff(line)
    with pytest.raises(TelemetryError, match="without one readable line"):
        vllm_log.read(write(tmp_path / "log", line), MEMORY)
