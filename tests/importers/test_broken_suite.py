"""Every file that people have reported as breaking a trace tool, made here: opened with a note, or refused with a line.

Each case has the thread it comes from. The right outcome is the work that is read and what the notes say of the rest;
of a file with nothing to read it is one line that says what and where, and what to do about it.

Not here, as no file can show it:
- idle time that only seems so, as a profiler under-records graph replay, cannot be told from real idle by the file;
  what can be told is tested: graphs recorded as a whole are named, with the option that records their kernels.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import sqlite3
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from import_checks import kind_of, opened
from kineto_samples import BASE, kernel, launch, text_of
from nsys_samples import tables, write_db
from onnxruntime_samples import runs, session
from onnxruntime_samples import text_of as onnx_text
from small_captures import KERNEL_DETAILS, et_node, et_trace, tt_operation, tt_report
from test_rocprof_tables import CALLS, KERNELS

from fusetui.importers.open import open_capture
from fusetui.telemetry.errors import TelemetryError

EVENTS = [launch("cudaLaunchKernel", 10, 4, 1), kernel("first", 20, 5, 1), kernel("second", 30.125, 5, 1)]
TEXT = text_of(EVENTS, baseTimeNanoseconds=BASE)
CHROME = [{"ph": "X", "name": f"c{i}", "pid": 1, "tid": 2, "ts": 10 * i + 1, "dur": 5} for i in range(3)]
BOTH = ["first", "second"]
MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Case:
    """thread: where it was reported; names: executions, in order of end; note: what the notes say, "" for nothing."""

    thread: str
    content: Callable[[], str | bytes]
    names: list[str]
    note: str = ""


def text(change: Callable[[str], str]) -> Callable[[], str]:
    return lambda: change(TEXT)


def replaced(old: str, new: str) -> Callable[[], str]:
    assert old in TEXT
    return lambda: TEXT.replace(old, new, 1)


def cut_gzip() -> bytes:
    long = kernel(f"k{random.Random(5).getrandbits(400_000):x}", 40, 5, 2)
    packed = gzip.compress(text_of([*EVENTS[:2], long]).encode())
    return packed[: len(packed) // 2]


def events(*found: dict[str, Any], **top: Any) -> Callable[[], str]:
    return lambda: text_of(list(found), baseTimeNanoseconds=BASE, **top)


def million(line: str, first: str, end: str) -> Callable[[], str]:
    return lambda: first + ",\n" + ",\n".join([line] * (MILLION - 1)) + end


EVERY = [
    Case("pytorch/kineto#105: inf", replaced("[1, 1, 1]", "inf"), BOTH),
    Case("pytorch/kineto#105: nan", replaced("[1, 1, 1]", "nan"), BOTH),
    Case("pytorch/kineto#105: -Infinity", replaced("[1, 1, 1]", "-Infinity"), BOTH),
    Case("pytorch/kineto#80: mis-encoded name", lambda: TEXT.encode().replace(b"first", b"f\xff"), ["f�", "second"]),
    Case("pytorch/kineto#1459: quotes in a name", replaced("first", 'f("a")'), ["second"], "events skipped: 1"),
    Case("pytorch#130622: control characters", replaced("first", "fi\x01\n"), ["fi· ", "second"]),
    Case("pytorch#98432: single backslashes", replaced("first", "C:\\Users"), ["C:\\Users", "second"], "mended: 1"),
    Case("pytorch#33961: lost quote", replaced('"tid": 7', 'tid": 7'), ["second"], "events skipped: 1"),
    Case("pytorch/kineto#888: ] behind the events", lambda: TEXT, BOTH),
    Case("onnxruntime PR#11046: trailing comma", lambda: onnx_text(runs(1)).replace("\n]", ",\n]"),
         ["MatMul_1 (MatMul)", "Gather_2 (Gather)"]),
    Case("apache/mxnet#10489: no final bracket", lambda: json.dumps(CHROME)[:-1], ["c0", "c1", "c2"],
         "closing ] of the events is missing"),
    Case("mlcommons/chakra#192: cut in a text", text(lambda t: t[: t.index('"second"') + 4]), ["first"],
         "ends in the middle of an event"),
    Case("mlcommons/chakra#192: cut gzip", cut_gzip, ["first"], "gzip data is cut off"),
    Case("Ascend/pytorch#133: times as texts", events(kernel("t", "1700000000000123.456", "0.5", 1)), ["t"]),
    Case("Ascend/pytorch#27: tabs around times", lambda: KERNEL_DETAILS,
         ["aclnnMatmul_MatMulV2", "aclnnAdd", "hcom_allReduce__1"], "no queue wait"),
    Case("catapult#3006: events in events",
         lambda: '{"traceEvents": [' + json.dumps({"traceEvents": CHROME[:2]}) + "," + json.dumps(CHROME[2]) + "]}",
         ["c0", "c1", "c2"]),
    Case("pytorch/kineto#109: time 0 and duration 0", events(*EVENTS, kernel("nil", 0, 0, 9)), BOTH,
         "time 0 and duration 0 left out: 1"),
    Case("TraceLens#669: a duration over the next slice", events(kernel("long", 10, 9e6, 1), kernel("next", 20, 5, 2)),
         ["next", "long"], "overlaps its predecessor on the same stream: 1"),
    Case("pytorch/kineto PR#919: nanoseconds from a base time", events(kernel("k", 1365627863700.002, 1.9, 3)), ["k"]),
    Case("mlcommons/chakra#181: collectives over one another",
         events(kernel("ncclA", 10, 50, 1), kernel("ncclB", 20, 50, 2)), ["ncclA", "ncclB"], "same stream: 1"),
    Case("HTA#290: kernels of a graph launch", events(launch("cudaGraphLaunch", 10, 4, 1), *EVENTS[1:]), BOTH),
    Case("HTA#219: HIP names", events(launch("hipExtLaunchKernel", 10, 4, 1, cat="hip_runtime"), *EVENTS[1:]), BOTH),
    Case("rocm-systems PR#3111: correlation 0",
         events(launch("hipLaunchKernel", 10, 4, 0), kernel("a", 20, 5, 0), kernel("b", 30, 5, 0)), ["a", "b"],
         "without its launch call in the capture: 2 of 2"),
    Case("HTA PR#324: integers beyond 63 bits", events(EVENTS[0], kernel("c", 20, 5, 1, Id=1 << 70)), ["c"]),
    Case("HTA#233: an execution trace", lambda: et_trace([et_node(3, "aten::mm", [[8, 4]], ["float"])]),
         [], "no times: an execution trace has operators and shapes only"),
    Case("jax#21295: exactly 1,000,000 events",
         million('{"ph":"M","name":"x","pid":1}', "[" + json.dumps(CHROME[0]), "]"), ["c0"],
         "exactly 1,000,000 events"),
    Case("onnxruntime#17013: the profiler stopped at its limit",
         million(json.dumps(session("s", 9, 1)), onnx_text(runs(1))[:-3].rstrip(), "\n]"),
         ["MatMul_1 (MatMul)", "Gather_2 (Gather)"], "the profiler stops at 1,000,000 events"),
    Case("tt-metal PR#46710: most operations without device times",
         lambda: tt_report([tt_operation("A", 1000, 0, 1000, 1000),
                            *[{"OP CODE": "Lost", "OP TYPE": "tt_dnn_device", "DEVICE ID": 0}] * 4]),
         ["A"], "1 of 5 operations have device times"),
    Case("tt-metal#43906: a math fidelity nobody knew",
         lambda: tt_report([tt_operation("A", 1000, 0, 1000, 1000, ATTRIBUTES="{'math_fidelity': 'HiFi3'}")]), ["A"]),
    Case("rocm-systems#5902: incomplete output", lambda: KERNELS + '"KERNEL_DISPATCH","Agent 4",1',
         ["mul(float*)", "void add<float>(float*, int)", "mul(float*)"], "no rows left out: 1"),
]  # fmt: skip


@pytest.mark.parametrize("case", EVERY, ids=lambda case: case.thread)
def test_broken_files_are_read_as_far_as_they_make_sense(tmp_path: Path, case: Case) -> None:
    content = case.content()
    path = tmp_path / "capture"
    path.write_bytes(content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content)
    before = path.read_bytes()
    rows, trace = opened(path)
    assert [row["name"] for row in kind_of(rows, "execution")] == case.names
    assert case.note in "; ".join(trace.notes)
    assert [found.name for found in tmp_path.iterdir()] == ["capture"]
    assert path.read_bytes() == before


def database(path: Path, statement: str) -> Path:
    db = sqlite3.connect(path)
    db.execute(statement)
    db.commit()
    db.close()
    return path


EMPTY = ("DEVICE FW DURATION [ns]", "DEVICE KERNEL DURATION [ns]")
REFUSED = {
    "onnxruntime#10975: nothing was written": (b"", r"the file is empty; was the profiler stopped before it wrote\?"),
    "rocprofiler-sdk#137: a table of only its header": (KERNELS.splitlines()[0].encode() + b"\n", r"nothing ran|empty"),
    "tt-mlir#552: empty duration columns": (
        tt_report([tt_operation("A", 1000, 0, 1000, 1000) | dict.fromkeys(EMPTY, "")]),
        r"device 0 left out: its clock cannot be told from its durations",
    ),
    "pytorch/kineto: no event at all": (text_of([]).encode(), r"nothing ran .*; profile some work"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "line"), REFUSED.values(), ids=REFUSED)
def test_files_with_nothing_to_read_are_refused_in_one_line(tmp_path: Path, content: bytes, line: str) -> None:
    path = tmp_path / "capture"
    path.write_bytes(content)
    with pytest.raises(TelemetryError, match=line) as caught:
        open_capture([path], memory_bytes=64 << 20)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_database_of_another_schema_is_named(tmp_path: Path) -> None:
    """rocm-systems PR#3783: ids of rocpd are not those of the tables; it is not mistaken for an RPD capture."""
    path = database(tmp_path / "results.db", "create table rocpd_kernel_dispatch_abc (id integer, corr_id integer)")
    with pytest.raises(TelemetryError, match=r"rocpd database of rocprofv3 \(SQLite\)"):
        open_capture([path], memory_bytes=64 << 20)


@pytest.mark.parametrize("absent", ["CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS", "GPU_METRICS", "META_DATA_EXPORT"])
def test_tables_that_are_not_there_are_no_failure(tmp_path: Path, absent: str) -> None:
    """nvprof-tools#3: no such table."""
    found = {name: table for name, table in tables().items() if name != absent}
    rows, trace = opened(write_db(tmp_path / "t.sqlite", found))
    assert len(kind_of(rows, "execution")) == 7
    if absent == "CUPTI_ACTIVITY_KIND_RUNTIME":
        assert "nsys profile --trace=cuda" in "; ".join(trace.notes)


def test_graphs_recorded_as_a_whole_are_told(tmp_path: Path) -> None:
    """TraceLens#728, Hyperloom#1047: kernels of a graph that the profiler did not record look like idle time."""
    found = tables()
    columns = "start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, graphId INTEGER"  # noqa: E501
    pid = found["CUPTI_ACTIVITY_KIND_KERNEL"][1][0][5]
    found["CUPTI_ACTIVITY_KIND_GRAPH_TRACE"] = (columns, [(4000, 4500, 0, 7, 3, pid, 5)])
    _, trace = opened(write_db(tmp_path / "t.sqlite", found))
    assert "--cuda-graph-trace=node records their kernels" in "; ".join(trace.notes)


def test_ids_of_several_ranks_do_not_meet(tmp_path: Path) -> None:
    """TraceLens#581: merged ranks have the same correlation ids."""
    paths = []
    for rank, took in ((0, 4), (1, 9)):
        found = [launch("cudaLaunchKernel", 10, took, 1), kernel(f"r{rank}", 30, 5, 1)]
        paths.append(tmp_path / f"rank{rank}.json")
        paths[-1].write_text(text_of(found, baseTimeNanoseconds=BASE, distributedInfo={"rank": rank}))
    rows, _ = opened(*paths)
    assert {row["name"]: row["launch_ns"] for row in kind_of(rows, "execution")} == {"r0": 4000, "r1": 9000}


def test_ids_of_a_table_and_its_calls_are_of_one_process(tmp_path: Path) -> None:
    """rocm-systems PR#3783: ids are joined within a run, those that nobody launched stay."""
    (tmp_path / "1_kernel_trace.csv").write_text(KERNELS)
    (tmp_path / "1_hip_api_trace.csv").write_text(CALLS)
    rows, trace = opened(tmp_path)
    assert sum("enqueue_ns" in row for row in kind_of(rows, "execution")) == 2
    assert "without its launch call in the capture: 1 of 3" in "; ".join(trace.notes)


def test_an_archive_with_a_finder_file_first(tmp_path: Path) -> None:
    """Archives packed on macOS begin with a `._` file that is no JSON."""
    path = tmp_path / "run.tgz"
    with tarfile.open(path, "w:gz") as archive:
        for name, content in (("._a.json", b"\0\5\x16\7" + b"\0" * 326), ("a.json", TEXT.encode())):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    rows, _ = opened(path)
    assert [row["name"] for row in kind_of(rows, "execution")] == BOTH
