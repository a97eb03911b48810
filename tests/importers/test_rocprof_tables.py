"""rocprofv3 and rocprof-compute tables: alone, and as the folder of one run."""

from __future__ import annotations

from pathlib import Path

import pytest
from import_checks import MEMORY, corpus, fuzzed, kind_of, opened, rows_of

from fusetui.importers import rocprof_compute, rocprof_csv
from fusetui.telemetry.errors import TelemetryError

KERNELS = """"Kind","Agent_Id","Queue_Id","Thread_Id","Kernel_Name","Correlation_Id","Start_Timestamp","End_Timestamp"
"KERNEL_DISPATCH","Agent 4",1,9,"void add<float>(float*, int)",5,1000500,1000900
"KERNEL_DISPATCH","Agent 4",2,9,"mul(float*)",6,1000600,1000700
"KERNEL_DISPATCH","Agent 4",1,9,"mul(float*)",0,1002000,1002100
"""
CALLS = """"Domain","Function","Process_Id","Thread_Id","Correlation_Id","Start_Timestamp","End_Timestamp"
"HIP_RUNTIME_API_EXT","hipLaunchKernel",77,77,5,1000000,1000200
"HIP_RUNTIME_API_EXT","hipLaunchKernel",77,77,6,1000300,1000650
"HIP_RUNTIME_API_EXT","hipMemcpy",77,77,7,1000700,1003500
"""
COPIES = """"Kind","Direction","Stream_Id","Source_Agent_Id","Destination_Agent_Id","Correlation_Id","Start_Timestamp","End_Timestamp"
"MEMORY_COPY","MEMORY_COPY_DEVICE_TO_HOST",0,"Agent 4","Agent 0",7,1003000,1003400
"""  # noqa: E501
MARKERS = CALLS.splitlines()[0] + '\n"MARKER_CORE_API","step one",77,77,1,1000000,1003600\n'
COUNTED = """"Correlation_Id","Dispatch_Id","Agent_Id","Queue_Id","Kernel_Name","Counter_Name","Counter_Value","Start_Timestamp","End_Timestamp"
1,1,"Agent 1",1,"add","SQ_WAVES",16.000000,100,200
1,1,"Agent 1",1,"add","SQ_INSTS",7,100,200
2,2,"Agent 1",1,"add","SQ_WAVES",18,300,450
"""  # noqa: E501


def folder(path: Path, **tables: str) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    for name, text in tables.items():
        (path / f"{name.lstrip('_')}.csv").write_text(text)
    return path


def test_a_folder_of_one_run_is_joined(tmp_path: Path) -> None:
    run = folder(tmp_path / "host", _77_kernel_trace=KERNELS, _77_hip_api_trace=CALLS, _77_memory_copy_trace=COPIES,
                 _77_marker_api_trace=MARKERS)  # fmt: skip
    (tmp_path / "notes.txt").write_text("a run\n")
    rows, trace = opened(tmp_path)
    ran = kind_of(rows, "execution")
    assert [(r["name"], r["device"], r["stream"]) for r in ran] == [
        ("mul(float*)", 4, "2"),
        ("void add<float>(float*, int)", 4, "1"),
        ("mul(float*)", 4, "1"),
        ("MEMORY_COPY_DEVICE_TO_HOST", 4, "copies 0"),
    ]
    assert [(r["start_ns"], r.get("enqueue_ns"), r.get("launch_ns")) for r in ran] == [
        (600, 650, 350),
        (500, 200, 200),
        (2000, None, None),
        (3000, 3500, 2800),
    ]
    (mark,) = kind_of(rows, "mark")
    assert (mark["name"], mark["value"], mark["unit"], mark["stream"]) == ("step one", 3600.0, "ns", "thread 77/77")
    text = "; ".join(trace.notes)
    assert "without its launch call in the capture: 1 of 4" in text
    assert "files beside them that are no captures: 1" in text
    # The same tables by name.
    assert [row["name"] for row in opened(*sorted(run.iterdir()))[0]] == [row["name"] for row in rows]


def test_processes_do_not_meet(tmp_path: Path) -> None:
    folder(tmp_path, _77_kernel_trace=KERNELS, _78_kernel_trace=KERNELS, _77_hip_api_trace=CALLS)
    ran = kind_of(opened(tmp_path)[0], "execution")
    assert {(r["stream"][:2], "enqueue_ns" in r) for r in ran if r["name"].startswith("void")} == {
        ("77", True),
        ("78", False),
    }


def test_tables_of_several_runs_are_refused(tmp_path: Path) -> None:
    later = KERNELS.replace("100", "9000000000000")
    folder(tmp_path, _77_kernel_trace=KERNELS, _78_kernel_trace=later)
    with pytest.raises(TelemetryError, match="tables of several runs"):
        opened(tmp_path)


def test_calls_alone_are_shown_as_host_work(tmp_path: Path) -> None:
    path = folder(tmp_path, hip_trace=CALLS) / "hip_trace.csv"
    rows, trace = opened(path)
    assert [row["name"] for row in kind_of(rows, "execution")] == ["hipLaunchKernel", "hipLaunchKernel", "hipMemcpy"]
    assert any("no device work in it" in note for note in trace.notes)


def test_counted_dispatches_run_once(tmp_path: Path) -> None:
    path = folder(tmp_path, counter_collection=COUNTED) / "counter_collection.csv"
    rows = rows_of(rocprof_csv.read(path, MEMORY))
    assert [(r["start_ns"], r["end_ns"]) for r in kind_of(rows, "execution")] == [(0, 100), (200, 350)]
    assert [(r["name"], r["value"], r["end_ns"]) for r in kind_of(rows, "counter")] == [
        ("SQ_WAVES", 16.0, 100), ("SQ_INSTS", 7.0, 100), ("SQ_WAVES", 18.0, 350),
    ]  # fmt: skip


def test_broken_rows_are_counted(tmp_path: Path) -> None:
    broken = KERNELS + '"KERNEL_DISPATCH","Agent 4"\n' + KERNELS.splitlines()[1].replace("1000900", "1000400") + "\n"
    path = folder(tmp_path, k=broken) / "k.csv"
    capture = rocprof_csv.read(path, MEMORY)
    assert len(rows_of(capture)) == 3
    assert "work without usable times left out: 1" in capture.notes
    assert "k.csv: lines that are no rows left out: 1" in capture.notes


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('"Name","Calls","TotalDurationNs","AverageNs"\n"HIP_API",13,458514859,35270373\n', "totals of a run"),
        ('"Sample_Timestamp","Exec_Mask","Dispatch_Id"\n1,1,1\n', "instruction samples"),
        ("\n".join(line.rsplit(",", 2)[0] for line in COUNTED.splitlines()), "counters of dispatches without times"),
        ("workload_name,command,gpu_arch\nx,./x,gfx90a\n", "description of a machine"),
        ("device,HBMBw,HBMBwLow,L2Bw\n0,1,2,3\n", "measured peaks of a machine"),
        ("Dispatch_ID,GPU_ID,LDS_Per_Workgroup,Kernel_Name,SQ_WAVES\n0,2,0,k,4\n", "counters per dispatch without"),
    ],
)
def test_tables_without_work_are_named(tmp_path: Path, text: str, what: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(TelemetryError, match=what):
        opened(path)


TIMES = """Dispatch_ID,Kernel_Name,GPU_ID,queue-id,LDS_Per_Workgroup,DispatchNs,Start_Timestamp,End_Timestamp
0,"copy(double*, int) [clone .kd]",2,0,0,1000,1100,1300
1,"copy(double*, int) [clone .kd]",2,0,0,1350,1300,1400
"""


def test_compute_times_have_the_dispatch_as_enqueue(tmp_path: Path) -> None:
    folder(tmp_path, timestamps=TIMES, sysinfo="workload_name,gpu_model,gpu_arch,cu_per_gpu\nx,MI200,gfx90a,104\n")
    rows, trace = opened(tmp_path)
    assert [(r["name"], r["start_ns"], r["end_ns"], r["enqueue_ns"], r.get("launch_ns")) for r in rows] == [
        ("copy(double*, int)", 100, 300, 0, None),
        ("copy(double*, int)", 300, 400, 350, None),
    ]
    assert trace.header.hardware["cu_per_gpu"] == "104"


def test_rounded_times_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "timestamps.csv"
    path.write_text(TIMES.replace("1100", "8.1097E+14").replace("1300", "8.1097E+14"))
    with pytest.raises(TelemetryError, match="lost all but five digits"):
        opened(path)


@pytest.mark.parametrize("text", [KERNELS, CALLS, COUNTED])
def test_mutated_tables_are_read_or_refused(tmp_path: Path, text: str) -> None:
    fuzzed(text.encode(), tmp_path / "fuzz.csv", rocprof_csv.read, least=10)


def test_mutated_compute_tables_are_read_or_refused(tmp_path: Path) -> None:
    fuzzed(TIMES.encode(), tmp_path / "fuzz.csv", rocprof_compute.read, least=5)


@pytest.mark.parametrize(
    ("name", "ran", "counted"),
    [
        ("ROCm__rocm-systems__vcopy_MI300X_A1_rocpd_pmc_perf.csv", 36, 6027),
        ("ROCm__rocprofiler-compute__vcopy_MI200_timestamps.csv", 3, 0),
        ("ROCm__rocprofiler-compute__vcopy_MI100_pmc_perf.csv", 3, 2847),
    ],
)
def test_compute_workloads_open(name: str, ran: int, counted: int) -> None:
    rows = rows_of(rocprof_compute.read(corpus("rocprof_compute_csv", name), MEMORY))
    assert (len(kind_of(rows, "execution")), len(kind_of(rows, "counter"))) == (ran, counted)


def test_documented_tables_open() -> None:
    rows = rows_of(rocprof_csv.read(corpus("rocprofv3_csv", "ROCm__rocm-systems__docs_kernel_trace.csv"), MEMORY))
    assert len(rows) == 9
    assert {row["stream"] for row in rows} == {"1", "2", "3", "4"}
    assert sum(row["end_ns"] - row["start_ns"] for row in rows) == 96160
