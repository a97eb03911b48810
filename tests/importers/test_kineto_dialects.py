"""Every dialect of Kineto since 2021, with answers worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kineto_samples import BASE, executions, kernel, launch, operator, read, rows_of, text_of

from fusetui.telemetry.errors import TelemetryError


def test_2021_integer_microseconds_and_stream_in_tid(tmp_path: Path) -> None:
    events = [
        {"ph": "X", "cat": "Operator", "name": "aten::mm", "pid": 9, "tid": "9", "ts": 1623142623460000, "dur": 90,
         "args": {"External id": 5, "Input Dims": [[8, 4], [4, 2]], "Input type": ["float", "float"]}},
        {"ph": "X", "cat": "Runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": "9", "ts": 1623142623460010,
         "dur": 12, "args": {"correlation": 77, "external id": 5}},
        {"ph": "X", "cat": "Kernel", "name": "sgemm", "pid": 2, "tid": "stream 20", "ts": 1623142623460030, "dur": 5,
         "args": {"correlation": 77, "external id": 5}},
        {"ph": "f", "id": 77, "pid": 2, "tid": "stream 20", "ts": 1623142623460030, "cat": "async", "name": "launch"},
    ]  # fmt: skip
    capture = read(tmp_path, text_of(events))
    assert capture.header.clock == "epoch"
    assert executions(capture) == [
        {
            "kind": "execution",
            "name": "sgemm",
            "enqueue_ns": 1623142623460022000,
            "start_ns": 1623142623460030000,
            "end_ns": 1623142623460035000,
            "launch_ns": 12000,
            "device": 2,
            "stream": "20",
            "shape": "8x4 4x2 f32",
        }
    ]


def test_relative_nanoseconds_with_a_base_time(tmp_path: Path) -> None:
    events = [launch("cudaLaunchKernel", 1365627863588.761, 57.843, 3), kernel("k", 1365627863700.002, 1.999, 3)]
    capture = read(tmp_path, text_of(events, baseTimeNanoseconds=BASE))
    (row,) = executions(capture)
    assert capture.header.clock == "epoch"
    assert row["enqueue_ns"] == BASE + 1365627863588761 + 57843
    assert row["start_ns"] == BASE + 1365627863700002
    assert row["end_ns"] == BASE + 1365627863700002 + 1999
    assert row["launch_ns"] == 57843


def test_base_time_after_the_events(tmp_path: Path) -> None:
    text = text_of([kernel("k", 12.5, 2.25, 3)]).replace("schemaVersion", "dummy")
    text = text[:-1].rstrip() + f', "baseTimeNanoseconds": {BASE}, "host_name": "box", "schemaVersion": 1}}'
    capture = read(tmp_path, text)
    (row,) = executions(capture)
    assert (row["start_ns"], row["end_ns"]) == (BASE + 12500, BASE + 14750)
    assert capture.header.host == "box"


def test_absolute_time_with_a_fraction_beyond_float64(tmp_path: Path) -> None:
    text = text_of([kernel("k", 0, 0, 3)]).replace('"ts": 0, "dur": 0', '"ts": 1712195498123456.789, "dur": 0.321')
    (row,) = executions(read(tmp_path, text))
    assert float("1712195498123456.789") * 1000 != 1712195498123456789  # why the text must be read
    assert (row["start_ns"], row["end_ns"]) == (1712195498123456789, 1712195498123457110)


def test_times_without_any_epoch_count_from_the_start(tmp_path: Path) -> None:
    capture = read(tmp_path, text_of([launch("cudaLaunchKernel", 500.5, 1, 3), kernel("k", 510.75, 2, 3)]))
    (row,) = executions(capture)
    assert capture.header.clock == "trace"
    assert (row["enqueue_ns"], row["start_ns"], row["end_ns"]) == (1000, 10250, 12250)


@pytest.mark.parametrize("cat", ["hip_runtime", "cuda_driver", "cuda_runtime", "privateuse1_runtime", "HIP_Driver"])
def test_any_runtime_or_driver_call_is_a_launch(tmp_path: Path, cat: str) -> None:
    events = [launch("hipExtModuleLaunchKernel", 10, 4, 8, cat=cat), kernel("k", 20, 5, 8)]
    (row,) = executions(read(tmp_path, text_of(events, baseTimeNanoseconds=BASE)))
    assert (row["enqueue_ns"] - BASE, row["launch_ns"]) == (14000, 4000)


def test_copies_and_sets_are_work_and_annotations_are_not(tmp_path: Path) -> None:
    events = [
        kernel("k", 10, 5, 1),
        kernel("Memcpy DtoH", 20, 5, 2, cat="gpu_memcpy", bytes=1024),
        kernel("Memset", 30, 5, 3, cat="gpu_memset", bytes=8),
        kernel("## fwd ##", 10, 25, 0, cat="gpu_user_annotation"),
        kernel("nvtx", 10, 25, 0, cat="cuda_profiler_range"),
    ]
    found = executions(read(tmp_path, text_of(events)))
    assert [row["name"] for row in found] == ["k", "Memcpy DtoH", "Memset"]
    assert all("dram_bytes" not in row for row in found)


def test_nodes_of_a_graph_launch_count_per_stream(tmp_path: Path) -> None:
    events = [
        launch("hipGraphLaunch", 10, 30, 5),
        kernel("b", 60, 5, 5),
        kernel("a", 50, 5, 5),
        kernel("side", 55, 5, 5, stream=9),
        launch("cudaLaunchKernel", 70, 1, 6),
        kernel("alone", 80, 5, 6),
        kernel("orphan", 90, 5, 99),
        kernel("no id", 95, 5, 0),
        kernel("no id", 97, 5, 0),
    ]
    found = {(row["name"], row["end_ns"]): row for row in executions(read(tmp_path, text_of(events)))}
    nodes = {name: row.get("node") for (name, _), row in found.items()}
    assert nodes == {"a": 0, "b": 1, "side": 0, "alone": None, "orphan": None, "no id": None}
    joined = {name for (name, _), row in found.items() if "enqueue_ns" in row}
    assert joined == {"a", "b", "side", "alone"}


def test_repeated_correlation_goes_to_the_call_before_the_work(tmp_path: Path) -> None:
    events = [
        launch("first", 10, 1, 5),
        launch("second", 100, 2, 5),
        kernel("early", 50, 5, 5, stream=1),
        kernel("late", 150, 5, 5, stream=2),
        kernel("before both", 5, 1, 5, stream=3),
    ]
    found = {row["name"]: row["launch_ns"] for row in executions(read(tmp_path, text_of(events)))}
    assert found == {"early": 1000, "late": 2000, "before both": 1000}


def test_mtia_work_without_the_events_that_order_streams(tmp_path: Path) -> None:
    def mtia(name: str, ts: float, correlation: int | None, stream: int | None = 104) -> dict[str, object]:
        args = {"correlation": correlation, "stream": stream, "packet_ptr": 4}
        return {"ph": "X", "cat": "mtia_ccp_events", "name": name, "pid": 17, "tid": 801, "ts": ts, "dur": 2.5,
                "args": {k: v for k, v in args.items() if v is not None}}  # fmt: skip

    events = [
        launch("runFunction", 10, 4, 20, cat="mtia_runtime"),
        mtia("pe_exe", 20.25, 20),
        mtia("event_wait", 30, None),
        mtia("dma_request", 40, None, None),
    ]
    capture = read(tmp_path, text_of(events))
    found = executions(capture)
    assert [(r["name"], r["device"], r["stream"], r.get("launch_ns")) for r in found] == [
        ("pe_exe", 17, "104", 4000),
        ("dma_request", 17, "801", None),
    ]
    assert any("order streams left out: 1" in note for note in capture.notes)


def test_host_operators_only_without_device_work(tmp_path: Path) -> None:
    host = [
        operator("outer", 10, 50, **{"Input Dims": [[2, 3], []], "Input type": ["c10::BFloat16", "Scalar"]}),
        operator("inner", 15, 10),
        operator("inner of inner", 16, 2),
        operator("next", 60, 5),
        operator("elsewhere", 12, 5, tid=200),
    ]
    capture = read(tmp_path, text_of(host))
    found = executions(capture)
    assert [(r["name"], r["stream"], r["end_ns"] - r["start_ns"]) for r in found] == [
        ("elsewhere", "200", 5000),
        ("outer", "100", 50000),
        ("next", "100", 5000),
    ]
    assert found[1]["shape"] == "2x3 bf16"
    assert all("core" not in r and "device" not in r for r in found)
    assert "nested ones left out: 2" in capture.notes[0]
    with_work = executions(read(tmp_path, text_of([*host, kernel("k", 100, 5, 1)])))
    assert [row["name"] for row in with_work] == ["k"]


def test_steps_are_requests_and_work_belongs_to_the_step_that_launched_it(tmp_path: Path) -> None:
    def step(number: int, ts: int, dur: int) -> dict[str, object]:
        return {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{number}", "pid": 1, "tid": 1, "ts": ts,
                "dur": dur, "args": {}}  # fmt: skip

    events = [
        step(7, 10, 90),
        step(8, 100, 90),
        launch("cudaLaunchKernel", 90, 5, 1),
        kernel("asynchronous", 120, 5, 1),
        kernel("orphan", 150, 5, 9),
        kernel("after", 500, 5, 10),
    ]
    found = rows_of(read(tmp_path, text_of(events, baseTimeNanoseconds=BASE)))
    requests = [row for row in found if row["kind"] == "request"]
    assert all(r.get("enqueue_ns") is None for r in requests)
    assert [(r["request"], r["name"], r["start_ns"] - BASE, r["end_ns"] - BASE) for r in requests] == [
        (7, "ProfilerStep", 10000, 100000),
        (8, "ProfilerStep", 100000, 190000),
    ]
    served = {row["name"]: row.get("request") for row in found if row["kind"] == "execution"}
    assert served == {"asynchronous": 7, "orphan": 8, "after": None}


def test_memory_totals_are_counters(tmp_path: Path) -> None:
    def memory(ts: float, total: int | None, device: int) -> dict[str, object]:
        args = {"Total Allocated": total, "Device Id": device, "Bytes": 4}
        return {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": ts,
                "args": {k: v for k, v in args.items() if v is not None}}  # fmt: skip

    events = [kernel("k", 0.5, 5, 1), memory(2, 4096, 0), memory(3, 512, -1), memory(4, None, 0)]
    counters = [row for row in rows_of(read(tmp_path, text_of(events))) if row["kind"] == "counter"]
    assert [(r["name"], r.get("device"), r["value"], r["unit"], r["start_ns"] == r["end_ns"]) for r in counters] == [
        ("device memory allocated", 0, 4096.0, "bytes", True),
        ("host memory allocated", None, 512.0, "bytes", True),
    ]


def test_external_id_that_repeats_the_correlation_names_no_operator(tmp_path: Path) -> None:
    op = operator("aten::mm", 1, 50, **{"External id": 4, "Input Dims": [[2, 2]], "Input type": ["float"]})
    real = executions(read(tmp_path, text_of([op, kernel("k", 60, 5, 9, **{"External id": 4})])))
    repeated = executions(read(tmp_path, text_of([op, kernel("k", 60, 5, 4, **{"External id": 4})])))
    assert real[0]["shape"] == "2x2 f32"
    assert "shape" not in repeated[0]


def test_header_tells_devices_versions_and_rank(tmp_path: Path) -> None:
    top = {
        "deviceProperties": [{"id": 0, "name": "NVIDIA B200", "numSms": 148, "totalGlobalMem": 191503138816}],
        "cuda_runtime_version": 12090,
        "hip_driver_version": 70253211,
        "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8},
        "host_name": "evil\x1b[31m",
    }
    capture = read(tmp_path, text_of([kernel("k", 1, 5, 1)], **top))
    assert capture.rank == 3
    assert capture.header.hardware == {"device 0": "NVIDIA B200, 148 SMs, 178 GiB"}
    assert capture.header.build == {
        "Kineto schema": "1",
        "CUDA runtime": "12.9",
        "HIP driver": "7.2.53211",
        "distributed backend": "nccl",
        "world size": "8",
    }
    assert "\x1b" not in (capture.header.host or "")


def test_compact_and_indented_layouts_read_alike(tmp_path: Path) -> None:
    events = [launch("cudaLaunchKernel", i * 10, 1, i + 1) for i in range(50)]
    events += [kernel(f"k{i}", i * 10 + 5, 2, i + 1) for i in range(50)]
    document = {"schemaVersion": 1, "traceEvents": events, "baseTimeNanoseconds": BASE}
    texts = [json.dumps(document, separators=(",", ":")), json.dumps(document, indent=4), json.dumps(document)]
    assert len({str(rows_of(read(tmp_path, text))) for text in texts}) == 1


def test_many_windows_lose_nothing(tmp_path: Path) -> None:
    count = 6000
    python = {"ph": "X", "cat": "python_function", "name": "f" * 200, "pid": 1, "tid": 1, "ts": 1, "dur": 1, "args": {}}
    events = [python] * count
    for i in range(count):
        events += [launch("cudaLaunchKernel", i * 10, 1, i + 1), kernel("k", i * 10 + 5, 2, i + 1), python]
    text = text_of(events, baseTimeNanoseconds=BASE)
    assert len(text) > 4_000_000  # many windows, some of them only of Python functions
    found = executions(read(tmp_path, text))
    assert [row["start_ns"] - BASE for row in found] == [i * 10_000 + 5_000 for i in range(count)]
    assert all(row["launch_ns"] == 1000 for row in found)


def test_work_that_no_sorting_may_reorder(tmp_path: Path) -> None:
    found = executions(read(tmp_path, text_of([kernel("late", 50, 5, 1), kernel("early", 10, 5, 2)])))
    assert [row["name"] for row in found] == ["early", "late"]


def test_nothing_ran(tmp_path: Path) -> None:
    with pytest.raises(TelemetryError, match="in which nothing ran"):
        read(tmp_path, text_of([]))
