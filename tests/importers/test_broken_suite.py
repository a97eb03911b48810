"""Every file that people have reported as breaking a trace tool, made here: opened with a note, or refused with a line.

`MARKS` has the 34 subjects and where each was reported; every case says whose it is, and the last test that no mark is
without one. The right outcome is the work that is read, its times and joins, and what the notes say of the rest; of a
file with nothing to read it is one line that says what and where, and what to do about it.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import tarfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from import_checks import kind_of, opened
from kineto_samples import BASE, kernel, launch, text_of
from nsys_samples import tables, write_db
from onnxruntime_samples import runs, session
from onnxruntime_samples import text_of as onnx_text
from small_captures import KERNEL_DETAILS, et_node, et_trace, tt_operation, tt_report
from test_rocpd import database
from test_rocpd import tables as rocpd_tables
from test_rocprof_tables import CALLS, KERNELS

from fusetui.importers.open import open_capture
from fusetui.telemetry.errors import TelemetryError

EVENTS = [launch("cudaLaunchKernel", 10, 4, 1), kernel("first", 20, 5, 1), kernel("second", 30.125, 5, 1)]
TEXT = text_of(EVENTS, baseTimeNanoseconds=BASE)
CHROME = [{"ph": "X", "name": f"c{i}", "pid": 1, "tid": 2, "ts": 10 * i + 1, "dur": 5} for i in range(3)]
BOTH = ["first", "second"]
MILLION = 1_000_000


MARKS: Final = {
    1: ("numbers that JSON has not: inf, nan, Infinity", "pytorch/kineto#105"),
    2: ("names that are not UTF-8", "pytorch/kineto#80"),
    3: ("quotes inside a name", "pytorch/kineto#1459, pytorch#146900"),
    4: ("control characters inside a name", "pytorch#130622, pytorch#136180"),
    5: ("single backslashes of Windows paths", "pytorch#98432"),
    6: ("a quote lost before a key", "pytorch#33961"),
    7: ("a bracket in a text behind the events", "pytorch/kineto#888"),
    8: ("a comma after the last event", "onnxruntime PR#11046"),
    9: ("a file of no bytes", "onnxruntime#10975"),
    10: ("an event array that is never closed", "apache/mxnet#10489, mhansen/ansible-trace#6"),
    11: ("a file cut within a text, plain and gzipped", "mlcommons/chakra#192"),
    12: ("times written as texts", "Ascend/pytorch#133"),
    13: ("an event array inside the event array", "catapult#3006"),
    14: ("work at time 0 for no time", "pytorch/kineto#109"),
    15: ("a duration that reaches over the next slice", "TraceLens#669"),
    16: ("nanoseconds that count from a base time", "pytorch/kineto PR#919, #928, #890"),
    17: ("collectives over one another on one stream", "mlcommons/chakra#181"),
    18: ("kernels of a graph launch", "HolisticTraceAnalysis#290"),
    19: ("launch calls of HIP", "HolisticTraceAnalysis#219"),
    20: ("the same ids in several ranks", "TraceLens#581"),
    21: ("idle time that graph replay only seems to have", "TraceLens#728, Hyperloom#1047, #1121"),
    22: ("correlation id 0 means none", "rocm-systems PR#3111"),
    23: ("ids of a table are not those of a database", "rocm-systems PR#3783"),
    24: ("a writer that stops at 1,000,000 events", "jax#21295, xla PR#44702, #21885"),
    25: ("integers beyond 63 bits", "HolisticTraceAnalysis PR#324"),
    26: ("an execution trace in place of a profile", "HolisticTraceAnalysis#233"),
    27: ("a profiler that stops at its own limit", "onnxruntime#17013"),
    28: ("tables that are not there", "nvprof-tools#3"),
    29: ("duration columns with nothing in them", "tt-mlir#552"),
    30: ("most operations without device times", "tt-metal PR#46710"),
    31: ("a word of an enumeration that is new", "tt-metal#43906"),
    32: ("a table of only its heading", "rocprofiler-sdk#137"),
    33: ("a table whose last row is cut", "rocm-systems#5902"),
    34: ("an archive that begins with a Finder file", "mlcommons/chakra json_trace.tar.gz"),
}


@dataclass(frozen=True, slots=True)
class Case:
    """A file, and what must come of it.

    mark    whose case it is; 0: a neighbour of the marks
    what    the variant, in words
    names   executions, in order of end
    note    what the notes say, "" for nothing
    values  column -> its value in each execution, None where it must be absent; times of Kineto from its base
    """

    mark: int
    what: str
    content: Callable[[], str | bytes]
    names: list[str]
    note: str = ""
    values: dict[str, list[Any]] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"mark {self.mark:02} {self.what}"


def text(change: Callable[[str], str]) -> Callable[[], str]:
    return lambda: change(TEXT)


def replaced(old: str, new: str) -> Callable[[], str]:
    assert old in TEXT
    return lambda: TEXT.replace(old, new, 1)


def cut_gzip() -> bytes:
    long = kernel(f"k{random.Random(5).getrandbits(400_000):x}", 40, 5, 2)
    packed = gzip.compress(text_of([*EVENTS[:2], long], baseTimeNanoseconds=BASE).encode())
    return packed[: len(packed) // 2]


def events(*found: dict[str, Any], **top: Any) -> Callable[[], str]:
    return lambda: text_of(list(found), baseTimeNanoseconds=BASE, **top)


def million(line: str, first: str, end: str) -> Callable[[], str]:
    return lambda: first + ",\n" + ",\n".join([line] * (MILLION - 1)) + end


TIMES = {"start_ns": [20_000, 30_125], "end_ns": [25_000, 35_125], "launch_ns": [4_000, 4_000]}
EVERY = [
    Case(1, "inf", replaced("[1, 1, 1]", "inf"), BOTH, values=TIMES),
    Case(1, "nan", replaced("[1, 1, 1]", "nan"), BOTH, values=TIMES),
    Case(1, "-Infinity", replaced("[1, 1, 1]", "-Infinity"), BOTH, values=TIMES),
    Case(2, "a name that is not UTF-8", lambda: TEXT.encode().replace(b"first", b"f\xff"), ["f�", "second"],
         values=TIMES),
    Case(3, "quotes in a name", replaced("first", 'f("a")'), ["second"], "events skipped: 1",
         {"start_ns": [30_125], "launch_ns": [4_000]}),
    Case(4, "control characters in a name", replaced("first", "fi\x01\n"), ["fi· ", "second"], values=TIMES),
    Case(5, "single backslashes", replaced("first", "C:\\Users"), ["C:\\Users", "second"], "mended: 1", TIMES),
    Case(6, "a lost quote", replaced('"tid": 7', 'tid": 7'), ["second"], "events skipped: 1", {"start_ns": [30_125]}),
    Case(7, "a bracket behind the events", lambda: TEXT, BOTH, values=TIMES),
    Case(8, "a comma after the last event", lambda: onnx_text(runs(1)).replace("\n]", ",\n]"),
         ["MatMul_1 (MatMul)", "Gather_2 (Gather)"]),
    Case(10, "no final bracket", lambda: json.dumps(CHROME)[:-1], ["c0", "c1", "c2"],
         "closing ] of the events is missing", {"start_ns": [0, 10_000, 20_000]}),
    Case(11, "cut in a text", text(lambda t: t[: t.index('"second"') + 4]), ["first"],
         "ends in the middle of an event", {"start_ns": [20_000], "launch_ns": [4_000]}),
    Case(11, "cut gzip", cut_gzip, ["first"], "gzip data is cut off", {"start_ns": [20_000], "launch_ns": [4_000]}),
    Case(12, "times as texts", events(kernel("t", "1700000000000123.456", "0.5", 1)), ["t"],
         values={"start_ns": [1_700_000_000_000_123_456], "end_ns": [1_700_000_000_000_123_956]}),
    Case(0, "tabs around times (Ascend/pytorch#27)", lambda: KERNEL_DETAILS,
         ["aclnnMatmul_MatMulV2", "aclnnAdd", "hcom_allReduce__1"], "no queue wait"),
    Case(13, "events in events",
         lambda: '{"traceEvents": [' + json.dumps({"traceEvents": CHROME[:2]}) + "," + json.dumps(CHROME[2]) + "]}",
         ["c0", "c1", "c2"], values={"start_ns": [0, 10_000, 20_000]}),
    Case(14, "time 0 and duration 0", events(*EVENTS, kernel("nil", 0, 0, 9)), BOTH,
         "time 0 and duration 0 left out: 1", TIMES),
    Case(15, "a duration over the next slice", events(kernel("long", 10, 9e6, 1), kernel("next", 20, 5, 2)),
         ["next", "long"], "overlaps its predecessor on the same stream: 1",
         {"end_ns": [25_000, 9_000_010_000]}),
    Case(16, "nanoseconds from a base time", events(kernel("k", 1365627863700.002, 1.9, 3)), ["k"],
         values={"start_ns": [1_365_627_863_700_002], "end_ns": [1_365_627_863_701_902]}),
    Case(17, "collectives over one another", events(kernel("ncclA", 10, 50, 1), kernel("ncclB", 20, 50, 2)),
         ["ncclA", "ncclB"], "same stream: 1", {"start_ns": [10_000, 20_000], "end_ns": [60_000, 70_000]}),
    Case(18, "kernels of a graph launch", events(launch("cudaGraphLaunch", 10, 4, 1), *EVENTS[1:]), BOTH,
         "graph launches, only the first of a stream waits: 2", {"node": [0, 1], "launch_ns": [4_000, 4_000]}),
    Case(19, "HIP names", events(launch("hipExtLaunchKernel", 10, 4, 1, cat="hip_runtime"), *EVENTS[1:]), BOTH,
         values=TIMES),
    Case(21, "nodes of a graph", events(launch("hipGraphLaunch", 10, 4, 1), *EVENTS[1:]), BOTH,
         "idle time between the others may be false"),
    Case(21, "a replay that left no work",
         events(*EVENTS, launch("cudaGraphLaunch", 50, 4, 8), launch("cuGraphLaunch", 60, 4, 9, cat="cuda_driver")),
         BOTH, "graph launches without any device work in the capture: 2 of 2", TIMES),
    Case(22, "correlation 0",
         events(launch("hipLaunchKernel", 10, 4, 0), kernel("a", 20, 5, 0), kernel("b", 30, 5, 0)), ["a", "b"],
         "without its launch call in the capture: 2 of 2", {"launch_ns": [None, None], "node": [None, None]}),
    Case(24, "exactly 1,000,000 events",
         million('{"ph":"M","name":"x","pid":1}', "[" + json.dumps(CHROME[0]), "]"), ["c0"],
         "exactly 1,000,000 events"),
    Case(25, "integers beyond 63 bits", events(EVENTS[0], kernel("c", 20, 5, 1, Id=1 << 70)), ["c"],
         values={"start_ns": [20_000], "launch_ns": [4_000]}),
    Case(26, "an execution trace", lambda: et_trace([et_node(3, "aten::mm", [[8, 4]], ["float"])]),
         [], "no times: an execution trace has operators and shapes only"),
    Case(27, "the profiler stopped at its limit",
         million(json.dumps(session("s", 9, 1)), onnx_text(runs(1))[:-3].rstrip(), "\n]"),
         ["MatMul_1 (MatMul)", "Gather_2 (Gather)"], "the profiler stops at 1,000,000 events"),
    Case(30, "most operations without device times",
         lambda: tt_report([tt_operation("A", 1000, 0, 1000, 1000),
                            *[{"OP CODE": "Lost", "OP TYPE": "tt_dnn_device", "DEVICE ID": 0}] * 4]),
         ["A"], "1 of 5 operations have device times"),
    Case(31, "a math fidelity nobody knew",
         lambda: tt_report([tt_operation("A", 1000, 0, 1000, 1000, ATTRIBUTES="{'math_fidelity': 'HiFi3'}")]), ["A"]),
    Case(33, "a row that is cut", lambda: KERNELS + '"KERNEL_DISPATCH","Agent 4",1',
         ["mul(float*)", "void add<float>(float*, int)", "mul(float*)"], "no rows left out: 1"),
]  # fmt: skip


@pytest.mark.parametrize("case", EVERY, ids=str)
def test_broken_files_are_read_as_far_as_they_make_sense(tmp_path: Path, case: Case) -> None:
    content = case.content()
    path = tmp_path / "capture"
    path.write_bytes(content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content)
    before = path.read_bytes()
    rows, trace = opened(path)
    found = kind_of(rows, "execution")
    assert [row["name"] for row in found] == case.names
    for column, values in case.values.items():
        base = BASE if column in ("start_ns", "end_ns") and trace.header.clock == "epoch" else 0
        assert [row.get(column) for row in found] == [value if value is None else value + base for value in values]
    assert case.note in "; ".join(trace.notes)
    assert [file.name for file in tmp_path.iterdir()] == ["capture"]
    assert path.read_bytes() == before


EMPTY = ("DEVICE FW DURATION [ns]", "DEVICE KERNEL DURATION [ns]")
REFUSED = {
    9: (b"", r"the file is empty; was the profiler stopped before it wrote\?"),
    32: (KERNELS.splitlines()[0].encode() + b"\n", r"nothing ran|empty"),
    29: (
        tt_report([tt_operation("A", 1000, 0, 1000, 1000) | dict.fromkeys(EMPTY, "")]),
        r"device 0 left out: its clock cannot be told from its durations",
    ),
    0: (text_of([]).encode(), r"nothing ran .*; profile some work"),
}  # fmt: skip


def named(mark: int) -> str:
    return f"mark {mark:02} {MARKS[mark][0]}" if mark else "no event at all"


@pytest.mark.parametrize(("content", "line"), REFUSED.values(), ids=map(named, REFUSED))
def test_files_with_nothing_to_read_are_refused_in_one_line(tmp_path: Path, content: bytes, line: str) -> None:
    path = tmp_path / "capture"
    path.write_bytes(content)
    with pytest.raises(TelemetryError, match=line) as caught:
        open_capture([path], memory_bytes=64 << 20)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_ids_of_a_database_are_those_of_its_events(tmp_path: Path) -> None:
    """Mark 23: in rocpd the column `correlation_id` is the program's own, here the same everywhere; another joins."""
    rows, trace = opened(database(tmp_path / "results.db", rocpd_tables("3")))
    launched = [row.get("launch_ns") for row in kind_of(rows, "execution")]
    assert launched == [400, 300, 300, None, 100]
    assert "without its launch call in the capture: 1 of 5" in "; ".join(trace.notes)


@pytest.mark.parametrize("absent", ["CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS", "GPU_METRICS", "META_DATA_EXPORT"])
def test_tables_that_are_not_there_are_no_failure(tmp_path: Path, absent: str) -> None:
    """Mark 28."""
    found = {name: table for name, table in tables().items() if name != absent}
    rows, trace = opened(write_db(tmp_path / "t.sqlite", found))
    assert len(kind_of(rows, "execution")) == 7
    if absent == "CUPTI_ACTIVITY_KIND_RUNTIME":
        assert "nsys profile --trace=cuda" in "; ".join(trace.notes)


def test_graphs_recorded_as_a_whole_are_told(tmp_path: Path) -> None:
    """Mark 21: kernels of a graph that the profiler did not record look like idle time."""
    found = tables()
    columns = "start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, graphId INTEGER"  # noqa: E501
    pid = found["CUPTI_ACTIVITY_KIND_KERNEL"][1][0][5]
    found["CUPTI_ACTIVITY_KIND_GRAPH_TRACE"] = (columns, [(4000, 4500, 0, 7, 3, pid, 5)])
    _, trace = opened(write_db(tmp_path / "t.sqlite", found))
    assert "--cuda-graph-trace=node records their kernels" in "; ".join(trace.notes)


def test_ids_of_several_ranks_do_not_meet(tmp_path: Path) -> None:
    """Mark 20: merged ranks have the same correlation ids."""
    paths = []
    for rank, took in ((0, 4), (1, 9)):
        found = [launch("cudaLaunchKernel", 10, took, 1), kernel(f"r{rank}", 30, 5, 1)]
        paths.append(tmp_path / f"rank{rank}.json")
        paths[-1].write_text(text_of(found, baseTimeNanoseconds=BASE, distributedInfo={"rank": rank}))
    rows, _ = opened(*paths)
    assert {row["name"]: row["launch_ns"] for row in kind_of(rows, "execution")} == {"r0": 4000, "r1": 9000}


def test_ids_of_a_table_and_its_calls_are_of_one_process(tmp_path: Path) -> None:
    """Mark 23: ids are joined within a run, those that nobody launched stay."""
    (tmp_path / "1_kernel_trace.csv").write_text(KERNELS)
    (tmp_path / "1_hip_api_trace.csv").write_text(CALLS)
    rows, trace = opened(tmp_path)
    assert sum("enqueue_ns" in row for row in kind_of(rows, "execution")) == 2
    assert "without its launch call in the capture: 1 of 3" in "; ".join(trace.notes)


def test_an_archive_with_a_finder_file_first(tmp_path: Path) -> None:
    """Mark 34: archives packed on macOS begin with a `._` file that is no JSON."""
    path = tmp_path / "run.tgz"
    with tarfile.open(path, "w:gz") as archive:
        for name, content in (("._a.json", b"\0\5\x16\7" + b"\0" * 326), ("a.json", TEXT.encode())):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    rows, _ = opened(path)
    assert [row["name"] for row in kind_of(rows, "execution")] == BOTH


ALONE: Final = {
    20: test_ids_of_several_ranks_do_not_meet,
    21: test_graphs_recorded_as_a_whole_are_told,
    23: test_ids_of_a_table_and_its_calls_are_of_one_process,
    28: test_tables_that_are_not_there_are_no_failure,
    34: test_an_archive_with_a_finder_file_first,
}


def test_every_mark_has_its_case() -> None:
    assert len(MARKS) == 34
    assert {case.mark for case in EVERY} | set(REFUSED) | set(ALONE) == {0, *MARKS}
