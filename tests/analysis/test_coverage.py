"""What a capture tells: cells counted per kind of row, notes sorted by what they are about."""

from __future__ import annotations

from typing import Any

import pytest

from fusetui.analysis.coverage import Coverage, loss_of
from fusetui.analysis.snapshot import Launch
from fusetui.telemetry.schema import build_batch


def summary(source: str, *notes: str) -> dict[str, Any]:
    found = Coverage()
    rows = {"kind": ["execution", "execution", "counter", "request"], "name": "x", "start_ns": [1, 2, 3, 4]}
    more = {"end_ns": [1, 2, 3, 4], "enqueue_ns": [0, None, None, 4], "value": [None, None, 2.5, None]}
    for _ in range(2):
        found.add(build_batch({**rows, **more, "request": [None, None, None, 7]}))
    return found.summary(source, Launch(joined=2, total=4, orphans=2), notes)


def test_cells_are_counted_per_kind() -> None:
    told = summary("kineto")
    assert told["rows"] == {"executions": 4, "requests": 2, "counters": 2, "marks": 0}
    facts = {fact["fact"]: (fact["rows"], fact["total"], fact["of"]) for fact in told["facts"]}
    assert facts["queue wait"] == (2, 4, "executions")
    assert facts["requests"] == (2, 2, "requests")
    assert facts["counters"] == (2, 2, "counters")
    assert facts["cores"] == (0, 4, "executions")
    assert told["columns"]["enqueue_ns"] == {"rows": 4, "share": 0.5}
    assert told["columns"]["plan"] == {"rows": 0, "share": 0.0}


@pytest.mark.parametrize(
    ("source", "option"),
    [
        ("kineto", "profile(record_shapes=True)"),
        ("perfetto", None),
        ("my-server", "the producer of it, as column shape"),
    ],
)
def test_the_option_is_that_of_the_tool(source: str, option: str | None) -> None:
    fact = next(fact for fact in summary(source)["facts"] if fact["fact"] == "shapes")
    assert fact["unknown"].startswith("which sizes came")
    assert fact["record"] == option


@pytest.mark.parametrize(
    ("note", "kind", "count"),
    [
        ("device work without its launch call in the capture: 1,810 of 3,442", "orphans", 1810),
        ("device work that began before its launch call returned, wait 0: 3,061 of 10,356", "clipped", 3061),
        ("device work that began before its launch call did (clock error): 2", "clock", 2),
        ("device work that overlaps its predecessor on the same stream: 7", "overlapping", 7),
        ("the file ends in the middle of an event; what came before was read", "truncated", None),
        ("exactly 1,000,000 events: some writers stop there, so the end may be missing", "event cap", None),
        ("unreadable events skipped: 4", "broken", 4),
        ("table rocpd_op is damaged (database disk image is malformed): 171 rows of it were read", "broken", 171),
        ("the file is cut off: 68,768 of 98,304 bytes are there", "truncated", 68768),
        ("events with time 0 and duration 0 left out: 3", "clock", 3),
        ("the log does not know the chip's clock: times are cycles, not ns", "units", None),
        ("slices inside others of their thread left out: 12", "left out", 12),
        ("35 of 35 nodes have no start: such a trace is made to be simulated", "not recorded", 35),
        ("results of the whole test only: mlperf_log_trace.json of the run has every sample", "not recorded", None),
        ("no API calls in it, so no queue wait: record with --hip-trace too", "not recorded", None),
        ("device work of graph launches, only the first of a stream waits: 1,566; idle time between the others may be "
         "false, as profilers miss kernels of a replay", "graph replay", 1566),
        ("graph launches without any device work in the capture: 2 of 9; the device may have run them while it seems "
         "idle", "graph replay", 2),
        ("CUDA graphs are recorded as a whole: --cuda-graph-trace=node records their kernels", "graph replay", None),
        ("kernels ran again for each pass of counters: 6 runs are shown", "remark", 6),
    ],
)  # fmt: skip
def test_notes_are_sorted_by_what_was_lost(note: str, kind: str, count: int | None) -> None:
    assert loss_of(note) == {"kind": kind, "count": count, "note": note}


def test_a_missing_end_and_a_limit_are_flags() -> None:
    told = summary("onnxruntime", "the closing ] of the events is missing; what came before was read")
    assert (told["truncated"], told["capped"]) == (True, False)
    told = summary("onnxruntime", "the profiler stops at 1,000,000 events: what ran later is not in it")
    assert (told["truncated"], told["capped"]) == (False, True)
    assert summary("kineto")["losses"] == []
    assert summary("kineto")["idle_doubtful"] is False
    assert summary("kineto", "graph launches without any device work in the capture: 1 of 1")["idle_doubtful"] is True
