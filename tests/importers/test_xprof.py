"""XProf traces as Chrome JSON: which lines are work, launches joined, steps, and files that are not whole."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from kineto_samples import MEMORY, executions, rows_of, write
from test_kineto_fuzz import mutate

from fusetui.importers import xprof
from fusetui.importers.open import importers
from fusetui.telemetry.errors import TelemetryError


def metadata(what: str, pid: int, tid: int | None, name: str) -> dict[str, Any]:
    place = {"pid": pid} if tid is None else {"pid": pid, "tid": tid}
    return {"ph": "M", **place, "name": what, "args": {"name": name}}


def event(pid: int, tid: int, name: str, ts: Any, dur: Any, **args: Any) -> dict[str, Any]:
    found = {"ph": "X", "pid": pid, "tid": tid, "ts": ts, "dur": dur, "name": name}
    return {**found, "args": args} if args else found


EVENTS = [
    metadata("process_name", 1, None, "/device:GPU:3"),
    metadata("thread_name", 1, 5, "Stream #5(Kernel)"),
    metadata("thread_name", 1, 6, "XLA Ops"),
    metadata("process_name", 701, None, "/host:CPU"),
    metadata("thread_name", 701, 8, "Host Threads/8"),
    event(1, 5, "k1", 30.000499999, 5.25, correlation_id="11", hlo_op="f", hlo_module="jit_f", program_id="7"),
    event(1, 5, "k2", 40, 1e-06, correlation_id="12"),
    event(1, 6, "derived", 30, 5, hlo_op="f", hlo_module="jit_f"),
    event(701, 8, "hipModuleLaunchKernel", 10.5, 4.25, correlation_id="11"),
    event(701, 8, "$python", 0.5, 80),
    event(701, 8, "train", 8, 10, step_num="2"),
    {},
]
TEXT = json.dumps({"displayTimeUnit": "ns", "metadata": {"highres-ticks": True}, "traceEvents": EVENTS})


def read(tmp_path: Path, text: str) -> Any:
    return xprof.read(write(tmp_path / "t.json", text), MEMORY)


def test_streams_are_work_and_join_their_launches(tmp_path: Path) -> None:
    capture = read(tmp_path, TEXT)
    rows = rows_of(capture)
    first, second = [row for row in rows if row["kind"] == "execution"]
    # Time 0 is the beginning of the step.
    assert (first["name"], first["start_ns"], first["end_ns"]) == ("k1", 22_000, 27_250)
    assert (first["enqueue_ns"], first["launch_ns"], first["device"]) == (6_750, 4_250, 3)
    assert (first["stream"], first["plan"], first["request"]) == ("Stream #5(Kernel)", "jit_f #7", 2)
    assert (second["end_ns"] - second["start_ns"], "enqueue_ns" in second) == (0, False)
    assert [(r["request"], r["start_ns"], r["end_ns"]) for r in rows if r["kind"] == "request"] == [(2, 0, 10_000)]
    assert capture.notes == ["device work without its launch call in the capture: 1 of 2"]
    assert (capture.header.source, capture.header.clock) == ("xprof", "trace")


def test_it_goes_before_the_general_importer() -> None:
    assert next(i for i in importers() if i.sniff(TEXT.encode())).NAME == xprof.NAME
    assert not xprof.sniff(b'{"traceEvents": [{"name": "/usr/host: x"}]}')


def test_a_million_events_are_suspicious(tmp_path: Path) -> None:
    filler = json.dumps(event(701, 8, "$p", 1, 1))
    text = TEXT.replace(", {}]", (", " + filler) * (1_000_000 - len(EVENTS) + 1) + "]")
    assert any("exactly 1,000,000 events" in note for note in read(tmp_path, text).notes)


def test_a_cut_file_gives_what_came_before(tmp_path: Path) -> None:
    capture = read(tmp_path, TEXT[: TEXT.index('"derived"')])
    assert [row["name"] for row in executions(capture)] == ["k1", "k2"]
    assert "the file ends in the middle of an event; what came before was read" in capture.notes


def test_odd_types_cost_no_other_event(tmp_path: Path) -> None:
    odd = [
        event(1, 5, "k3", "41.5", "2", correlation_id=13),
        {**event(1, 5, "k4", 50, 1), "args": "none"},
        event(1, 5, "k5", 60, 1, correlation_id=[1], step_num="x"),
        event(1, 5, "no time", None, 1),
    ]
    capture = read(tmp_path, json.dumps({"traceEvents": EVENTS[:-1] + odd}))
    assert [row["name"] for row in executions(capture)] == ["k1", "k2", "k3", "k4", "k5"]
    assert "events left out, without usable times: 1" in capture.notes


def test_nothing_ran(tmp_path: Path) -> None:
    with pytest.raises(TelemetryError, match="in which no kernel and no compiled module ran"):
        read(tmp_path, json.dumps({"traceEvents": [EVENTS[3], EVENTS[9]]}))


@pytest.mark.parametrize("block", range(4))
def test_mutations_are_read_or_refused(tmp_path: Path, block: int) -> None:
    data, read = TEXT.encode(), 0
    lines: list[str] = []
    for case in range(block, 200, 4):
        path = write(tmp_path / "fuzz.json", mutate(data, random.Random(case)))
        try:
            rows = rows_of(xprof.read(path, 1 << 20))
        except TelemetryError as error:
            lines.append(str(error))
        else:
            assert all(row["end_ns"] >= row["start_ns"] for row in rows)
            read += 1
    assert read + len(lines) == 50
    assert read >= 10
    assert not any("\n" in line for line in lines)
