"""TensorRT files: what trtexec exports and what an IProfiler collected, with exact durations and queue waits."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kineto_samples import MEMORY, rows_of, write
from test_kineto_fuzz import mutate

from fusetui.analysis.quantiles import nearest_rank
from fusetui.importers import tensorrt_layers, tensorrt_profile, tensorrt_times
from fusetui.importers.bytestream import head_of
from fusetui.importers.foreign import recognised
from fusetui.importers.open import open_capture
from fusetui.telemetry.errors import TelemetryError

_CORPUS = os.environ.get("FUSETUI_CORPUS")
_TRACES = Path(_CORPUS or ".") / "traces"
needs_corpus = pytest.mark.skipif(not _CORPUS, reason="set FUSETUI_CORPUS to a folder with traces/")


def inference(
    enqueue: tuple[float, float], h2d: float, compute: tuple[float, float], **more: float
) -> dict[str, float]:
    start, took = compute
    return {
        "startEnqMs": enqueue[0], "endEnqMs": enqueue[1], "startH2dMs": start - h2d, "endH2dMs": start,
        "startComputeMs": start, "endComputeMs": start + took, "startD2hMs": start + took, "endD2hMs": start + took,
        "h2dMs": h2d, "computeMs": took, "d2hMs": 0, "latencyMs": h2d + took, **more,
    }  # fmt: skip


TIMES = [inference((1, 1.5), 0, (2.25, 0.873472)), inference((2, 2.5), 0.25, (4, 0.5))]


def text_of(rows: list[Any]) -> str:
    """As trtexec lays a file out: the comma before a record."""
    return "[\n  " + "\n, ".join(json.dumps(row) for row in rows) + "\n]\n"


def test_inferences_wait_from_their_enqueue_call(tmp_path: Path) -> None:
    capture = tensorrt_times.read(write(tmp_path / "t.json", text_of(TIMES)), MEMORY)
    rows = rows_of(capture)
    keys = ("name", "enqueue_ns", "start_ns", "end_ns", "launch_ns", "request")
    assert [tuple(r[key] for key in keys) for r in rows if r["kind"] == "execution"] == [
        ("compute", 500_000, 1_250_000, 2_123_472, 500_000, 0),
        ("host to device copy", 1_500_000, 2_750_000, 3_000_000, 500_000, 1),
        ("compute", 1_500_000, 3_000_000, 3_500_000, 500_000, 1),
    ]
    assert [tuple(r[key] for key in keys) for r in rows if r["kind"] == "request"] == [
        ("inference", 500_000, 1_250_000, 2_123_472, 500_000, 0),
        ("inference", 1_500_000, 2_750_000, 3_500_000, 500_000, 1),
    ]
    assert capture.notes == ["streams and layers are not in it: use nsys profile for those"]


def test_the_names_of_older_versions(tmp_path: Path) -> None:
    names = {"startH2dMs": "startInMs", "h2dMs": "inMs", "startD2hMs": "startOutMs", "d2hMs": "outMs"}
    old = [{names.get(key, key): value for key, value in row.items()} for row in TIMES]
    rows = rows_of(tensorrt_times.read(write(tmp_path / "t.json", text_of(old)), MEMORY))
    assert rows == rows_of(tensorrt_times.read(write(tmp_path / "u.json", text_of(TIMES)), MEMORY))


def test_a_start_before_the_call_returned_and_coarse_times_are_told(tmp_path: Path) -> None:
    rows = [inference((5000.5, 5000.9), 0, (5000.4, 0.3)), inference((5001, 5001.1), 0, (5001.2, 0.3))]
    capture = tensorrt_times.read(write(tmp_path / "t.json", text_of(rows)), MEMORY)
    assert "computations that began before their enqueue call returned: 1 of 2" in capture.notes
    assert "times have 6 digits: queue waits come in steps of up to 10 us" in capture.notes


def test_a_cut_file_and_bad_records_cost_only_themselves(tmp_path: Path) -> None:
    bad: list[Any] = [
        {**TIMES[0], "computeMs": -1},
        {**TIMES[0], "latencyMs": "long"},
        {**TIMES[0], "startEnqMs": 1e300},
    ]
    text = text_of([*TIMES, *bad, *TIMES])
    capture = tensorrt_times.read(write(tmp_path / "t.json", text[: text.rindex("latencyMs")]), MEMORY)
    assert sum(row["kind"] == "request" for row in rows_of(capture)) == 3
    assert "records left out, unreadable or without usable times: 3" in capture.notes
    with pytest.raises(TelemetryError, match="without one readable inference"):
        tensorrt_times.read(write(tmp_path / "t.json", text_of(bad)), MEMORY)


def test_layer_durations_are_laid_end_to_end(tmp_path: Path) -> None:
    layers = {"Reformatting CopyNode for x": [0.5, 0.25], "/a/Conv + /b/Relu": [1.0, 2.0], "seldom": [1.0]}
    path = write(tmp_path / "t.json", json.dumps(layers, indent=4))
    assert tensorrt_layers.sniff(path.read_bytes())
    capture = tensorrt_layers.read(path, MEMORY)
    rows = rows_of(capture)
    ran = [(r["name"], r["start_ns"], r["end_ns"], r["request"]) for r in rows if r["kind"] == "execution"]
    assert ran == [
        ("Reformatting CopyNode for x", 0, 500_000, 0),
        ("/a/Conv + /b/Relu", 500_000, 1_500_000, 0),
        ("Reformatting CopyNode for x", 1_500_000, 1_750_000, 1),
        ("/a/Conv + /b/Relu", 1_750_000, 3_750_000, 1),
    ]
    asked = [(r["name"], r["start_ns"], r["end_ns"]) for r in rows if r["kind"] == "request"]
    assert asked == [("run", 0, 1_500_000), ("run", 1_500_000, 3_750_000)]
    assert "layers left out, not measured in every run: 1 of 3" in capture.notes


PROFILE = """[
  { "count" : 1 }
, { "name" : "Quantize", "timeMs" : 0.5, "averageMs" : 0.5, "medianMs" : 0.5, "percentage" : 20 }
, { "name" : "w + Conv_9", "timeMs" : 2.0, "averageMs" : 2.0, "medianMs" : 2.0, "percentage" : 80 }
, { "name" : "Quantize", "timeMs" : 0.25, "averageMs" : 0.25, "percentage" : 0 }
]"""


def test_a_profile_of_one_run_is_that_run(tmp_path: Path) -> None:
    path = write(tmp_path / "t.json", PROFILE)
    assert tensorrt_profile.sniff(path.read_bytes())
    capture = tensorrt_profile.read(path, MEMORY)
    assert [(r["kind"], r["name"], r["start_ns"], r["end_ns"], r["request"]) for r in rows_of(capture)] == [
        ("execution", "Quantize", 0, 500_000, 0),
        ("execution", "w + Conv_9", 500_000, 2_500_000, 0),
        ("execution", "Quantize", 2_500_000, 2_750_000, 0),
        ("request", "run", 0, 2_750_000, 0),
    ]
    assert capture.header.source == "tensorrt-iprofiler"


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ('"count" : 1', '"count" : 1200', r"with sums of 1,200 runs, the times of none; profile one run"),
        (PROFILE[PROFILE.index("\n,") :], "]", "without one layer"),
        ("0.25", "-1", "with impossible durations"),
        (PROFILE[-40:], "", "that cannot be read"),
    ],
)
def test_profiles_that_are_no_run_are_refused(tmp_path: Path, old: str, new: str, line: str) -> None:
    with pytest.raises(TelemetryError, match=line):
        open_capture([write(tmp_path / "t.json", PROFILE.replace(old, new))], memory_bytes=MEMORY)


@pytest.mark.parametrize("bad", ['{"/a/Conv": [0.5, NaN]}', '{"/a/Conv": [0.5, 1e9]}', '{"/a/Conv": [0.5,'])
def test_layer_durations_that_make_no_sense_are_refused(tmp_path: Path, bad: str) -> None:
    with pytest.raises(TelemetryError, match=tensorrt_layers.NAME.replace("(", r"\(").replace(")", r"\)")):
        tensorrt_layers.read(write(tmp_path / "t.json", bad), MEMORY)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('{"Layers": [{"Name": "a"}]}', "layer information"),
        ('{"performance_summary": {"Throughput": 1}}', "metadata"),
    ],
)
def test_files_without_times_are_refused_by_name(tmp_path: Path, text: str, named: str) -> None:
    assert named in recognised(text.encode()).what
    with pytest.raises(TelemetryError, match=r"trtexec --exportTimes"):
        open_capture([write(tmp_path / "t.json", text)], memory_bytes=MEMORY)


@pytest.mark.parametrize("block", range(4))
def test_mutations_are_read_or_refused(tmp_path: Path, block: int) -> None:
    samples = [
        (tensorrt_times, text_of(TIMES * 3)),
        (tensorrt_layers, json.dumps({"/a/Conv": [0.5] * 20})),
        (tensorrt_profile, PROFILE),
    ]
    read = 0
    lines: list[str] = []
    for case in range(block, 200, 4):
        module, text = samples[case // 4 % 3]
        path = write(tmp_path / "fuzz.json", mutate(text.encode(), random.Random(case)))
        try:
            rows = rows_of(module.read(path, 1 << 20))
        except TelemetryError as error:
            lines.append(str(error))
        else:
            assert all(row["end_ns"] >= row["start_ns"] for row in rows)
            read += 1
    assert read + len(lines) == 50
    assert read >= 15
    assert not any("\n" in line for line in lines)


def _trtexec_seven(values: list[float]) -> list[float]:
    """[min, max, mean, median, p90, p95, p99] as trtexec reports them."""
    ordered, n = sorted(values), len(values)
    middle = ordered[n // 2] if n % 2 else (ordered[n // 2 - 1] + ordered[n // 2]) / 2
    return [ordered[0], ordered[-1], sum(values) / n, middle, *(ordered[int(n * q)] for q in (0.9, 0.95, 0.99))]


@needs_corpus
@pytest.mark.parametrize(
    ("name", "count", "wait_ms", "early", "seven"),
    [
        (
            "NVIDIA__TensorRT__pytorch_resnet_A100_fp16_resnet.onnx.engine", 3698, None, 1,
            [0.842751, 0.873472, 0.8623544970254233, 0.862183, 0.867432, 0.869324, 0.870605],
        ),
        (
            "fuzzylabs__edge-vision-power-estimation__resnet18_fp16", 10742, (0.08, 0.11, 0.14), 0,
            [0.273438, 0.287109, 0.27698067240739777, 0.276855, 0.278809, 0.279785, 0.280762],
        ),
    ],
)  # fmt: skip
def test_latencies_of_real_runs(
    name: str, count: int, wait_ms: tuple[float, float, float] | None, early: int, seven: list[float]
) -> None:
    path = _TRACES / f"tensorrt_trex/{name}.timing.json"
    raw: list[dict[str, Any]] = json.loads(path.read_text())
    rows = rows_of(tensorrt_times.read(path, MEMORY))
    asked = [row for row in rows if row["kind"] == "request"]
    assert len(asked) == len(raw) == count
    took_ms = [(row["end_ns"] - row["start_ns"]) / 1e6 for row in asked]
    assert sorted(took_ms) == sorted(row["latencyMs"] for row in raw)
    assert _trtexec_seven(took_ms) == pytest.approx(seven, rel=1e-12)
    ours = nearest_rank(np.array([round(t * 1e6) for t in took_ms], np.int64), (0.9, 0.95, 0.99))
    assert [value / 1e6 for value in ours] == seven[4:]  # no tie of the two rules in these runs
    waits = sorted(row["start_ns"] - row["enqueue_ns"] for row in rows if row["kind"] == "execution")
    assert sum(wait < 0 for wait in waits) == early
    if wait_ms is not None:
        assert (waits[0], waits[len(waits) // 2], waits[-1]) == tuple(round(w * 1e6) for w in wait_ms)


@needs_corpus
def test_layers_of_a_real_dump() -> None:
    (path,) = (_TRACES / "tensorrt_iprofiler").glob("*layer_latency.json")
    raw: dict[str, list[float]] = json.loads(path.read_text())
    rows = rows_of(tensorrt_layers.read(path, MEMORY))
    ran = [row for row in rows if row["kind"] == "execution"]
    assert len(ran) == sum(map(len, raw.values())) == 5900
    for name, times in raw.items():
        took = [row["end_ns"] - row["start_ns"] for row in ran if row["name"] == name]
        assert took == [round(ms * 1e6) for ms in times]


@needs_corpus
def test_every_real_file_is_opened_or_named() -> None:
    files = [*(_TRACES / "tensorrt_trex").iterdir(), *(_TRACES / "tensorrt_iprofiler").iterdir()]
    readers = (tensorrt_times, tensorrt_layers, tensorrt_profile)
    claimed = [path for path in files if any(reader.sniff(head_of(path)) for reader in readers)]
    several = [path for path in claimed if path.suffix == ".profile"]
    opened = [path for path in claimed if path not in several]
    assert (len(opened), len(several), len(files)) == (6, 3, 26)
    for path in files:
        if path in opened:
            open_capture([path], memory_bytes=MEMORY).close()
        else:
            with pytest.raises(TelemetryError, match="TensorRT"):
                open_capture([path], memory_bytes=MEMORY)


@needs_corpus
def test_a_real_profile_has_the_time_of_its_run() -> None:
    path = _TRACES / "tensorrt_trex" / "NVIDIA__TensorRT__pytorch_resnet_A100_qat_resnet-qat.onnx.engine.profile.json"
    rows = rows_of(tensorrt_profile.read(path, MEMORY))
    assert sum(row["kind"] == "execution" for row in rows) == 37
    assert rows[-1]["end_ns"] == 1_095_680
