"""MLPerf LoadGen summaries (`mlperf_log_summary.txt`): the verdict and the percentiles of one test.

There are no requests in it, only results: each number is one reading of a counter at time 0, named as the summary names
it. LoadGen takes as the p-th percentile the value at place floor(p · n) of the sorted latencies, counted from 0; ours
is the nearest rank, at place ceil(p · n) - 1, which is the same or the one before.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import numpy as np

from fusetui.importers.bytestream import head_of
from fusetui.importers.capture import Capture
from fusetui.importers.readings import Readings
from fusetui.telemetry.header import Header
from fusetui.telemetry.text import safe_text

NAME: Final = "MLPerf LoadGen summary"

_TITLE: Final = re.compile(rb"(?m)^MLPerf Results Summary\s*$")
_PARAMETERS: Final = "Test Parameters Used"
_RESULT: Final = re.compile(r"(?m)^([\w .]{2,60}?)\s*(?:\((ns)\))?\s*:\s*(-?\d{1,18}(?:\.\d{1,9})?)\s*$")
_FACT: Final = re.compile(r"(?m)^\s*([\w ]{2,60}?)\s*:\s*([^\n]{1,200}?)\s*$")
_TARGET: Final = re.compile(r"(?m)^(?:target_latency|ttft_latency) \(ns\)\s*:\s*(\d{1,18})\s*$")
_FACTS: Final = {"SUT name": "system", "Scenario": "scenario", "Mode": "mode"}
_MOST: Final = 1 << 20


def sniff(head: bytes) -> bool:
    """The title of a summary."""
    return bool(_TITLE.search(head[:4096]))


def read(path: Path, memory_bytes: int) -> Capture:
    """Open a summary. Raises TelemetryError when it has no results."""
    text = head_of(path, _MOST).decode("utf-8", "replace")
    results, _, parameters = text.partition(_PARAMETERS)
    rows = Readings(str(path), memory_bytes)
    found = _RESULT.findall(results)
    rows.add(
        np.zeros(len(found), np.int64), np.array([float(value) for _, _, value in found]),
        name=[name for name, _, _ in found], unit=[unit or _rate(name) for name, unit, _ in found],
    )  # fmt: skip
    facts = dict(_FACT.findall(results))
    target = _TARGET.search(parameters)
    objective_ns = int(target[1]) if target and 0 < int(target[1]) < 1 << 62 else None
    notes = [f"LoadGen's verdict: {safe_text(facts['Result is'], 80)}"] if "Result is" in facts else []
    notes.append("results of the whole test only: mlperf_log_trace.json of the run has every sample")
    build = {ours: safe_text(facts[theirs], 200) for theirs, ours in _FACTS.items() if theirs in facts}
    return rows.capture(Header(source="mlperf-loadgen", clock="trace", build=build, slo_ns=objective_ns), notes)


def _rate(name: str) -> str | None:
    lowered = name.lower()
    return next((f"{what}/s" for what in ("samples", "tokens", "queries") if f"{what} per second" in lowered), None)
