"""MLPerf logs: a trace that is no JSON, and percentiles by LoadGen's rule and ours."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kineto_samples import MEMORY, rows_of, write
from small_captures import loadgen_trace, mllog

from fusetui.analysis.quantiles import nearest_rank
from fusetui.importers import mlperf, mlperf_summary, mlperf_trace
from fusetui.importers.capture import Importer
from fusetui.importers.open import open_capture
from fusetui.telemetry.errors import TelemetryError

_CORPUS = os.environ.get("FUSETUI_CORPUS")
needs_corpus = pytest.mark.skipif(not _CORPUS, reason="set FUSETUI_CORPUS to a folder with traces/ and reference/")
_SERVING = Path(_CORPUS or ".") / "traces/serving"
_RUN = _SERVING / "mlperf_loadgen_6.0.17_local_server_qps120"
_DETAIL = "\n".join(
    [
        mllog("loadgen_version", "6.0.17", 0.5),
        mllog("effective_scenario", "Server", 1.0),
        mllog("effective_target_latency_ns", 50_000_000, 1.0),
        mllog("power_begin", "07-24-2026 17:39:47", 2.25),
        mllog("result_validity", "INVALID", 15_000.0),
        mllog("result_invalid_reason", "Reduce target QPS.", 15_000.0),
        mllog("result_mean_latency_ns", 13_145_306, 15_000.5),
        ":::MLLOG {broken}",
    ]
).encode()
_SUMMARY = b"""================================================
MLPerf Results Summary
================================================
SUT name : PySUT
Scenario : Server
Mode     : PerformanceOnly
Completed samples per second    : 119.44
Result is : INVALID
Min latency (ns)                : 1572507
99.90 percentile latency (ns)   : 122245158

================================================
Test Parameters Used
================================================
target_latency (ns): 50000000
"""


def opened(importer: Any, tmp_path: Path, content: bytes) -> tuple[list[dict[str, Any]], Any]:
    known: Importer = importer
    assert known.sniff(content)
    capture = known.read(write(tmp_path / "log", content), MEMORY)
    return rows_of(capture), capture


def test_samples_are_requests_since_the_schedule(tmp_path: Path) -> None:
    content = loadgen_trace([("819.795", 250, 3_843_257), ("900", 1_000_000, 2_000_000)])
    rows, capture = opened(mlperf_trace, tmp_path, content)
    zero = 1_796_028_096_247_910_250
    assert [(r["request"], r["enqueue_ns"] - zero, r["start_ns"] - zero, r["end_ns"] - zero) for r in rows] == [
        (1, 900_000, 1_900_000, 2_900_000),
        (0, 819_795, 820_045, 4_663_052),
    ]
    assert capture.header.clock == "epoch"
    path = write(tmp_path / "again", content)
    trace = open_capture([path], memory_bytes=MEMORY)
    assert trace.header.source == "mlperf-loadgen"


def test_a_cut_trace_and_a_machines_own_clock(tmp_path: Path) -> None:
    whole = loadgen_trace([("10.0", 5, 100), ("20.0", 5, 100)], origin="12345.000")
    rows, capture = opened(mlperf_trace, tmp_path, whole)
    assert [row["enqueue_ns"] for row in rows] == [0, 10_000]
    assert capture.header.clock == "trace"
    rows, capture = opened(mlperf_trace, tmp_path, whole[: whole.rindex(b"complete_ns")])
    assert len(rows) == 1
    assert "samples that could not be read: 1" in capture.notes
    assert "the end of the file is missing: later samples are not in it" in capture.notes


def test_a_trace_without_samples_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TelemetryError, match="without one completed sample"):
        opened(mlperf_trace, tmp_path, loadgen_trace([]))


def test_a_detail_log_is_counters_marks_settings_and_a_verdict(tmp_path: Path) -> None:
    rows, capture = opened(mlperf, tmp_path, _DETAIL)
    assert [(r["kind"], r["name"], r["end_ns"], r.get("value"), r.get("unit")) for r in rows] == [
        ("mark", "power_begin: 07-24-2026 17:39:47", 0, None, None),
        ("mark", "result_validity: INVALID", 14_997_750_000, None, None),
        ("mark", "result_invalid_reason: Reduce target QPS.", 14_997_750_000, None, None),
        ("counter", "result_mean_latency_ns", 14_998_250_000, 13_145_306.0, "ns"),
    ]
    assert capture.header.slo_ns == 50_000_000
    assert capture.header.build == {"loadgen": "6.0.17", "scenario": "Server"}
    assert capture.notes[0] == "LoadGen's verdict: INVALID (Reduce target QPS.)"
    assert capture.notes[-1] == "lines that could not be read: 1"


def test_a_training_log_has_intervals_since_1970(tmp_path: Path) -> None:
    lines = [
        mllog("epoch_start", None, 1_700_000_000_000, "INTERVAL_START"),
        mllog("eval_accuracy", 0.75, 1_700_000_001_500),
        mllog("epoch_stop", None, 1_700_000_002_000, "INTERVAL_END"),
    ]
    rows, capture = opened(mlperf, tmp_path, "\n".join(lines).encode())
    assert [(r["name"], r["end_ns"], r.get("value")) for r in rows] == [
        ("epoch start", 1_700_000_000_000_000_000, None),
        ("eval_accuracy", 1_700_000_001_500_000_000, 0.75),
        ("epoch stop", 1_700_000_002_000_000_000, None),
    ]
    assert capture.header.clock == "epoch"


def test_a_summary_is_results_at_one_time(tmp_path: Path) -> None:
    rows, capture = opened(mlperf_summary, tmp_path, _SUMMARY)
    assert [(r["name"], r["value"], r.get("unit")) for r in rows] == [
        ("Completed samples per second", 119.44, "samples/s"),
        ("Min latency", 1572507.0, "ns"),
        ("99.90 percentile latency", 122245158.0, "ns"),
    ]
    assert capture.header.slo_ns == 50_000_000
    assert capture.notes[0] == "LoadGen's verdict: INVALID"


@needs_corpus
def test_percentiles_of_a_real_run_by_loadgens_rule_and_by_ours() -> None:
    rows = rows_of(mlperf_trace.read(_RUN / "mlperf_log_trace.json", MEMORY))
    latency = np.sort([row["end_ns"] - row["enqueue_ns"] for row in rows])
    summary = (_RUN / "mlperf_log_summary.txt").read_text()
    told = re.findall(r"(\d\d\.\d\d) percentile latency \(ns\)\s*: (\d+)", summary)
    assert len(latency) == 1796
    assert len(told) == 6
    for percent, value in told:
        q = float(percent) / 100
        assert latency[int(np.floor(q * len(latency)))] == int(value)
        ours = nearest_rank(latency, [q])[0]
        assert ours in (int(value), latency[int(np.floor(q * len(latency))) - 1])
    assert (latency[0], latency[-1]) == (1572507, 123643827)
    assert int(latency.mean()) == 13145306


@needs_corpus
def test_real_summaries_and_details() -> None:
    rows = rows_of(mlperf_summary.read(next(_SERVING.glob("*llama2-70b*summary.txt")), MEMORY))
    values = {row["name"]: row["value"] for row in rows}
    assert values["99.00 percentile first token latency"] == 461278089
    assert values["99.00 percentile time to output token"] == 175354317
    capture = mlperf.read(_RUN / "mlperf_log_detail.txt", MEMORY)
    assert capture.notes[0].startswith("LoadGen's verdict: INVALID")
    counted = {row["name"]: row.get("value") for row in rows_of(capture)}
    assert counted["result_overlatency_query_count"] is not None
    assert counted["result_mean_latency_ns"] == 13145306
