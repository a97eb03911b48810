"""Tenstorrent operation reports: known answers, header generations, and the values of tt-perf-report."""

from __future__ import annotations

import csv
import itertools
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kineto_samples import MEMORY, rows_of, write
from small_captures import tt_operation, tt_report

from fusetui.importers import tenstorrent
from fusetui.importers.tenstorrent_shapes import shape_and_padding
from fusetui.telemetry.errors import TelemetryError

_CORPUS = os.environ.get("FUSETUI_CORPUS")
needs_corpus = pytest.mark.skipif(not _CORPUS, reason="set FUSETUI_CORPUS to a folder with traces/ and reference/")
_ROOT = Path(_CORPUS or ".")
_SIZES = {
    "INPUT_0_W_PAD[LOGICAL]": "1[1]", "INPUT_0_Z_PAD[LOGICAL]": "1[1]", "INPUT_0_Y_PAD[LOGICAL]": "32[19]",
    "INPUT_0_X_PAD[LOGICAL]": "64[64]", "INPUT_0_DATATYPE": "BFLOAT16", "INPUT_1_W_PAD[LOGICAL]": "1[1]",
    "INPUT_1_Z_PAD[LOGICAL]": "1[1]", "INPUT_1_Y_PAD[LOGICAL]": "64[64]", "INPUT_1_X_PAD[LOGICAL]": "32[32]",
    "INPUT_1_DATATYPE": "BFLOAT8_B",
}  # fmt: skip


def opened(tmp_path: Path, rows: list[dict[str, Any]], padded: bool = True) -> tuple[list[dict[str, Any]], Any]:
    path = write(tmp_path / "ops.csv", tt_report(rows, padded))
    capture = tenstorrent.read(path, MEMORY)
    return rows_of(capture), capture


def of(rows: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["kind"] == kind]


def counters(rows: list[dict[str, Any]], name: str) -> list[float]:
    return [row["value"] for row in rows if row["name"] == name]


def test_an_operation_lasts_as_its_kernel_and_stands_where_the_cycles_say(tmp_path: Path) -> None:
    a = tt_operation("Matmul", 1000, 5_000_000, 1350, 1350, **_SIZES)
    b = tt_operation("Softmax", 1500, 5_000_000 + 2700, 2700, 1350)
    rows, capture = opened(tmp_path, [b, a])  # in the wrong order
    first, second = of(rows, "execution")
    assert (first["name"], first["start_ns"], first["end_ns"], first["launch_ns"]) == ("Matmul", 0, 900, 50)
    assert (second["name"], second["start_ns"], second["end_ns"]) == ("Softmax", 2000, 3900)
    assert first["shape"] == "1x1x19x64:bf16 1x1x64x32:bfp8"
    assert "enqueue_ns" not in first
    assert any("no queue wait" in note for note in capture.notes)
    assert any("their kernels, which are 93.3% of the firmware's time" in note for note in capture.notes)
    assert capture.header.hardware == {"device 0": "blackhole at 1350 MHz", "cores": "110"}


def test_each_device_stands_on_the_hosts_clock_as_early_as_can_be(tmp_path: Path) -> None:
    rows, capture = opened(
        tmp_path,
        [
            {"OP CODE": "begin", "OP TYPE": "signpost", "HOST START TS": 900},
            tt_operation("A", 1000, 7_000_000, 1000, 1000),
            tt_operation("B", 1400, 7_000_300, 1000, 1000),  # launched 400 later, ran 300 later: the bound
            tt_operation("C", 1100, 50, 1350, 1350, **{"DEVICE ID": 1}),
        ],
    )
    starts = {row["name"]: (row["start_ns"], row["device"]) for row in of(rows, "execution")}
    assert starts == {"A": (200, 0), "B": (500, 0), "C": (200, 1)}
    assert [(row["name"], row["end_ns"]) for row in of(rows, "mark")] == [("begin", 0)]
    assert capture.header.hardware["device 1"] == "blackhole at 1350 MHz"


def test_what_is_known_of_cores_and_padding_is_counters(tmp_path: Path) -> None:
    spread = {
        "DEVICE KERNEL DURATION PER CORE MIN [ns]": 800, "DEVICE KERNEL DURATION PER CORE MAX [ns]": 900,
        "DEVICE KERNEL DURATION PER CORE AVG [ns]": 600,
    }  # fmt: skip
    rows, capture = opened(tmp_path, [tt_operation("Matmul", 1000, 0, 1000, 1000, **_SIZES, **spread)])
    assert counters(rows, "core imbalance") == [0.5]
    assert counters(rows, "cores used") == [20]
    assert counters(rows, "op to op latency") == [7]
    assert counters(rows, "padding factor") == [(32 * 64 + 64 * 32) / (19 * 64 + 64 * 32)]
    assert {row["unit"] for row in rows if row["name"] == "op to op latency"} == {"ns"}
    assert not any("per core" in note for note in capture.notes)


def test_the_generation_without_padded_sizes_has_shapes_and_no_padding(tmp_path: Path) -> None:
    sizes = {"INPUT_0_W": 1, "INPUT_0_Z": 1, "INPUT_0_Y": 19, "INPUT_0_X": 64, "INPUT_0_DATATYPE": "FLOAT32"}
    rows, capture = opened(tmp_path, [tt_operation("Tanh", 1000, 0, 1000, 1000, **sizes)], padded=False)
    assert of(rows, "execution")[0]["shape"] == "1x1x19x64 f32"
    assert counters(rows, "padding factor") == []
    assert any("no times per core" in note for note in capture.notes)


def test_replayed_operations_are_nodes_of_their_replay(tmp_path: Path) -> None:
    def replay(name: str, at: int, session: int) -> dict[str, Any]:
        more = {"METAL TRACE ID": 4, "METAL TRACE REPLAY SESSION ID": session}
        return tt_operation(name, 1000, at, 1000, 1000, **more)

    rows, _ = opened(
        tmp_path,
        [replay("A", 0, 1), replay("B", 2000, 1), replay("A", 4000, 2), tt_operation("C", 1000, 9000, 1000, 1000)],
    )
    assert [(row["name"], row.get("node")) for row in of(rows, "execution")] == [
        ("A", 0),
        ("B", 1),
        ("A", 0),
        ("C", None),
    ]


def test_operations_of_the_host_and_without_device_times(tmp_path: Path) -> None:
    host = {"OP CODE": "to_torch", "OP TYPE": "python_fallback", "HOST START TS": 2000, "HOST END TS": 2600}
    lost = {"OP CODE": "Lost", "OP TYPE": "tt_dnn_device", "DEVICE ID": 0}
    rows, capture = opened(tmp_path, [tt_operation("A", 1000, 0, 1000, 1000), host, lost])
    ran = {row["name"]: row for row in of(rows, "execution")}
    assert set(ran) == {"A", "to_torch"}
    assert (ran["to_torch"]["start_ns"], ran["to_torch"]["end_ns"], ran["to_torch"].get("device")) == (1000, 1600, None)
    assert any(note.startswith("1 of 3 operations have device times") for note in capture.notes)
    assert "1 rows left out: no times" in capture.notes


def test_a_report_without_times_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TelemetryError, match="no operation has times"):
        opened(tmp_path, [{"OP CODE": "A", "OP TYPE": "tt_dnn_device", "DEVICE ID": 0}])


def test_a_report_with_empty_durations_says_that_its_clock_is_unknown(tmp_path: Path) -> None:
    empty = {"DEVICE FW DURATION [ns]": "", "DEVICE KERNEL DURATION [ns]": ""}
    with pytest.raises(TelemetryError, match="device 0 left out: its clock cannot be told from its durations"):
        opened(tmp_path, [tt_operation("A", 1000, 0, 1000, 1000, **empty)])


def test_shapes() -> None:
    assert shape_and_padding("1x1x32x64:BFLOAT16 1x1x64x8:BFLOAT16")[0] == "1x1x32x64 1x1x64x8 bf16"
    nothing, padding = shape_and_padding("xxx: xxx:")
    assert nothing == ""
    assert np.isnan(padding)
    assert shape_and_padding("1[1]x2[1]:NEWTYPE") == ("1x1 newtype", 2.0)


@needs_corpus
@pytest.mark.parametrize(
    "name", ["bh_64_clip_encoder_1", "wh_clip_encoder_2", "bh20_oft_integral_image_trace", "bh20_oft"]
)
def test_times_are_those_of_tt_perf_report(name: str) -> None:
    stem = f"tenstorrent__tt-perf-report__{name}"
    ours = rows_of(tenstorrent.read(_ROOT / f"traces/tenstorrent_ops_csv/{stem}.csv", MEMORY))
    with (_ROOT / f"reference/traces/tt_perf_report/{stem}.report.csv").open() as file:
        theirs = list(csv.DictReader(file))
    ran = sorted(of(ours, "execution"), key=lambda row: row["start_ns"])
    took = [row["end_ns"] - row["start_ns"] for row in ran]
    expected = [round(float(row["Device Time"]) * 1000) for row in theirs]
    # The tool reports what comes after the last signpost.
    assert took[len(took) - len(expected) :] == expected
    gaps = counters(sorted(ours, key=lambda row: row["start_ns"]), "op to op latency")[len(took) - len(expected) + 1 :]
    assert gaps == pytest.approx([float(row["Op-to-Op Gap"]) * 1000 for row in theirs[1:]])


@needs_corpus
def test_kernels_do_not_overlap_and_their_gaps_are_the_tools() -> None:
    path = _ROOT / "traces/tenstorrent_ops_csv/tenstorrent__tt-perf-report__wh_clip_encoder_2.csv"
    rows = rows_of(tenstorrent.read(path, MEMORY))
    ran = sorted(of(rows, "execution"), key=lambda row: row["start_ns"])
    gaps = np.array([after["start_ns"] - before["end_ns"] for before, after in itertools.pairwise(ran)])
    told = [row["value"] for row in rows if row["name"] == "op to op latency"]
    assert gaps.min() >= 0
    assert np.abs(gaps - np.array(told[1:])).max() <= 45


@needs_corpus
def test_gaps_and_imbalance_of_every_report() -> None:
    known = json.loads((_ROOT / "reference/model/tenstorrent_gaps_imbalance.json").read_text())
    checked = 0
    for path in sorted((_ROOT / "traces/tenstorrent_ops_csv").glob("*.csv")):
        want = next((entry for entry in known if path.name.endswith("__" + entry["file"])), None)
        if want is None:
            continue
        rows = rows_of(tenstorrent.read(path, MEMORY))
        ran = of(rows, "execution")
        assert len(ran) == want["ops"]
        kernel_us = np.median([row["end_ns"] - row["start_ns"] for row in ran]) / 1000
        assert round(float(kernel_us), 2) == pytest.approx(want["kernel_us_p50"], abs=0.011)
        if want["n_imb"]:
            imbalance = np.array(counters(rows, "core imbalance")) + 1
            assert len(imbalance) == want["n_imb"]
            assert round(float(np.median(imbalance)), 3) == want["imbalance_max_over_avg_p50"]
            assert round(float(np.quantile(imbalance, 0.95)), 3) == want["imbalance_p95"]
        checked += 1
    assert checked >= 6
