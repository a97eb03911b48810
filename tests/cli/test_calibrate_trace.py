"""`fusetui calibrate` and the plan's subject from a capture: constants that made the times are found again."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from fusetui.accelerator.constants import default_constants, load_constants
from fusetui.accelerator.matmul import price_matmuls
from fusetui.accelerator.presets import load_hardware
from fusetui.cli import main
from fusetui.commands.plan_trace import captured_of
from fusetui.telemetry.errors import TelemetryError

L4 = load_hardware("L4")
TRUE = dataclasses.replace(default_constants(L4, "fp32"), start_ns=9000.0, eta_matrix=0.5)
SHAPES = [(512, 256, 256), (1024, 512, 256), (2048, 2048, 512), (256, 1024, 1024), (4096, 512, 1024), (64, 4096, 4096)]


def profile(path: Path, runs: int = 6) -> Path:
    """Products on a device with known constants, 4 % of noise."""
    random = np.random.default_rng(5)
    m, n, k = np.array(SHAPES, float).T
    took = price_matmuls(L4, TRUE, np.ones(len(SHAPES)), m, n, k, dtype="fp32").time_ns / 1e3
    events, at = [], 0.0
    for _ in range(runs):
        start = at
        for i, (rows, columns, inner) in enumerate(SHAPES):
            duration = round(took[i] * random.normal(1, 0.04), 3)
            args = {"op_name": "MatMul", "provider": "CUDAExecutionProvider",
                    "input_type_shape": [{"float": [rows, inner]}, {"float": [inner, columns]}],
                    "output_type_shape": [{"float": [rows, columns]}]}  # fmt: skip
            events.append({"cat": "Node", "name": f"m{i}_kernel_time", "ts": at, "dur": duration, "args": args})
            at = round(at + duration + 1, 3)
        events.append({"cat": "Session", "name": "model_run", "ts": start, "dur": round(at - start, 3), "args": {}})
    path.write_text(json.dumps(events))
    return path


def test_a_capture_calibrates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = profile(tmp_path / "run.json"), tmp_path / "l4.json"
    assert main(["calibrate", str(path), "--hardware", "L4", "--json", "-o", str(out)]) == 0
    sheet = json.loads(capsys.readouterr().out)
    (score,) = sheet["scores"]
    assert (score["family"], score["dtype"], score["train"], score["held_out"]) == ("matmul", "fp32", 6, 6)
    before = sheet["uncalibrated_median_error"]["matmul"]
    assert before > 0.3, "the default constants are far from the true ones"
    assert score["median_error"] < 0.06
    fitted = load_constants(out, "fp32")
    assert fitted.calibrated
    assert fitted.fitted == ("matmul",)
    apart = sheet["left_out_median_error"]["matmul"]
    assert fitted.median_error == pytest.approx(apart)
    assert apart < before / 4


def test_the_two_errors_stand_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", str(profile(tmp_path / "run.json")), "--hardware", "L4"]) == 0
    out = capsys.readouterr().out
    assert "% before, " in out
    assert "% on shapes left out" in out
    assert "held out is the second half of the same operators" in out


def test_one_run_is_too_little(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", str(profile(tmp_path / "run.json", runs=1)), "--hardware", "L4"]) != 0
    assert "0 operators of one kind that ran more than once; at least 4 are needed" in capsys.readouterr().err


def test_captured_of_a_profile(tmp_path: Path) -> None:
    captured = captured_of(profile(tmp_path / "run.json"))
    assert [captured.measured[name].runs for name in captured.measured] == [6] * len(SHAPES)
    assert captured.explained_ns == captured.window_ns


def test_samples_that_ship() -> None:
    from fusetui.commands.inputs import capture_path

    captured = captured_of(capture_path("sample:torch-training"))
    assert captured.explained_ns / captured.window_ns > 0.4
    assert any("steps have these sizes and took 45% of the time" in note for note in captured.notes)
    with pytest.raises(TelemetryError, match=r"are not those of operators .* plan a block of the model instead"):
        captured_of(capture_path("sample:torch-serving"))
