"""Small traces and the reports of them, for tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from fusetui.analysis.compare.comparison import changes_within
from fusetui.analysis.expression.rows import Rows
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import build_batch
from fusetui.triage.judge import triage
from fusetui.triage.report.content import report_of
from fusetui.triage.report.material import Material, TraceFile

MS = 1_000_000
EPOCH_NS = 1_772_334_641_250_000_000
"""2026-03-01 03:10:41.250 UTC."""


def requests(latency_ns: np.ndarray, header: Header, **words: str) -> Rows:
    """One execution per request, 10 ms apart, that waits as long as its latency is over 1 ms."""
    n = len(latency_ns)
    came = EPOCH_NS + np.arange(n) * 10 * MS
    end = came + latency_ns
    begin = end - 1 * MS
    both = {
        "kind": pa.array(["execution", "request"] * n),
        "name": words.get("name", "k"),
        "enqueue_ns": np.repeat(came, 2),
        "start_ns": np.repeat(begin, 2),
        "end_ns": np.repeat(end, 2),
        "request": np.repeat(np.arange(n), 2),
        "stream": pa.array([words.get("stream", "a"), "other"] * n) if "other" in words else words.get("stream", "a"),
        "device": np.zeros(2 * n, np.int32),
        "core": np.zeros(2 * n, np.int32),
    }
    if "host" in words:
        both["host"] = words["host"]
    return Rows([build_batch(both)], header)


def even(n: int = 1000) -> np.ndarray:
    """About 2 ms; on no grid, which would be a finding of its own."""
    return np.random.default_rng(7).integers(1_900_000, 2_000_001, n)


def stepped(n: int = 1000, slow_from: int = 500) -> np.ndarray:
    """2 ms, and 40 ms from an item on."""
    latency = np.full(n, 2 * MS)
    latency[slow_from:] = 40 * MS
    return latency


def material(rows: Rows, **changed: Any) -> Material:
    """As the command makes it, without a twin."""
    scope = rows.scope()
    changes, why = changes_within(scope)
    made = Material(
        spec="trace.arrows",
        files=(TraceFile("trace.arrows", "ab" * 32, 123),),
        rows=len(scope.columns),
        first_ns=scope.snapshot.window_start_ns,
        header=rows.header,
        snapshot=scope.snapshot,
        triage=triage(scope.snapshot, None, rows.header),
        causes="no twin in this test",
        changes=changes,
        changes_why=why,
        notes=rows.notes,
    )
    return replace(made, **changed)


def told(rows: Rows, rename: Callable[[str], str] = str, **changed: Any) -> dict[str, Any]:
    """The report of the rows."""
    return report_of(material(rows, **changed), rename)
