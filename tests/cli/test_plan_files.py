"""`fusetui plan` of a model file and of a capture, and the calibration it finds by itself."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

from fusetui.accelerator.constants import default_constants, save_constants
from fusetui.accelerator.presets import load_hardware
from fusetui.cli import main

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = tmp_path / "config" / "fusetui" / "constants"
    folder.mkdir(parents=True)
    return folder


def model(folder: Path, name: str = "net.onnx", *, known: bool = True) -> str:
    """x(batch, 64) @ (64, 32), a bias and a ReLU, or an operator nobody knows."""
    onnx = pytest.importorskip("onnx")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"], name="product"),
        helper.make_node("Add", ["p", "b"], ["s"], name="bias"),
        helper.make_node("Relu" if known else "CumSum", ["s"] if known else ["s", "axis"], ["y"], name="last"),
    ]
    weights = [
        helper.make_tensor("w", kind, [64, 32], b"\0" * 8192, raw=True),
        helper.make_tensor("b", kind, [32], b"\0" * 128, raw=True),
        helper.make_tensor("axis", onnx.TensorProto.INT64, [], [0]),
    ]
    x = helper.make_tensor_value_info("x", kind, ["batch", 64])
    y = helper.make_tensor_value_info("y", kind, ["batch", 32])
    graph = helper.make_graph(nodes, "g", [x], [y], weights)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = folder / name
    path.write_bytes(made.SerializeToString())
    return str(path)


def test_a_model_file_is_planned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", model(tmp_path), "--shapes", "batch=512", "--hardware", "A100", "--json"]) == 0
    sheet = json.loads(capsys.readouterr().out)
    assert sheet["block"] == "net"
    assert sheet["dtype"] == "fp32"
    assert [group["ops"] for group in sheet["groups"]] == [["product", "bias", "last"]]
    assert sheet["policies"]["none"]["launches"] == 3
    assert sheet["totals"]["dram_lower_bound_bytes"] == 4 * (512 * 64 + 64 * 32 + 32 + 512 * 32)
    assert sheet["notes"] == []


def test_content_tells_a_model_without_its_ending(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", model(tmp_path, "net.bin"), "--shapes", "batch=8", "--dtype", "fp16"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("net on H100, fp16")
    assert out.rstrip().endswith("note: the file holds fp32: planned as if it were converted to fp16")


@pytest.mark.parametrize("form", [["--markdown"], []])
def test_what_is_not_known_is_on_the_worksheet(
    form: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", model(tmp_path, known=False), "--shapes", "batch=8", *form]) == 0
    assert "not known to the model, taken for data movement: CumSum" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("shapes", "code", "words"),
    [("", 2, "net.onnx, input x: axis 0 has no size; --shapes batch=SIZE"),
     ("batch=4,tokens=1", 2, "--shapes tokens: is no symbolic dimension; it has batch"),
     ("model=gpt2,batch=4", 2, "--shapes model: ")],
)  # fmt: skip
def test_shapes_are_checked(
    shapes: str, code: int, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", model(tmp_path), "--shapes", shapes]) == code
    streams = capsys.readouterr()
    assert streams.out == ""
    assert words in streams.err
    assert streams.err.count("\n") == 1


def test_files_that_are_nothing_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("hello\n")
    assert main(["plan", str(text)]) == 3
    assert "notes.txt" in capsys.readouterr().err
    broken = tmp_path / "broken.onnx"
    pytest.importorskip("onnx")
    broken.write_bytes(b"\x08\x07\x3a\xff")
    assert main(["plan", str(broken)]) == 3
    assert "is not an ONNX model, or is truncated" in capsys.readouterr().err


def test_a_capture_is_planned_beside_what_it_took(capsys: pytest.CaptureFixture[str]) -> None:
    capture = ["plan", "sample:torch-training", "--hardware", "host"]
    assert main([*capture, "--json"]) == 0
    sheet = json.loads(capsys.readouterr().out)
    assert sheet["dtype"] == "fp32"
    assert [row["ops"] for row in sheet["measured"]] == [group["ops"] for group in sheet["groups"]]
    timed = [row for row in sheet["measured"] if row["measured"] is not None]
    assert timed
    for row in timed:
        if row["residual"] is not None:
            assert row["residual"] == pytest.approx(row["measured"]["p50_ns"] / row["predicted_ns"] - 1)
    assert main(capture) == 0
    out = capsys.readouterr().out
    assert "predicted beside measured" in out
    assert sheet["notes"]
    assert all(note in out for note in sheet["notes"])


def saved(folder: Path, name: str, hardware: str, dtype: str, error: float) -> Path:
    constants = default_constants(load_hardware(hardware), dtype)
    path = folder / name
    known = {"matmul": error, "vector": error}
    save_constants(path, [dataclasses.replace(constants, calibrated=True, family_median=known)])
    return path


def test_a_saved_calibration_is_used_and_named(configuration: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved(configuration, "other.json", "A100", "fp16", 0.5)
    path = saved(configuration, "a100.json", "A100", "bf16", 0.0625)
    assert main(["plan", "mlp", "--hardware", "A100", "--json"]) == 0
    sheet = json.loads(capsys.readouterr().out)
    assert sheet["calibrated"] is True
    assert sheet["totals"]["predicted_error"] == 0.0625
    assert sheet["notes"] == [f"constants: the saved calibration {path}"]
    assert main(["plan", "mlp", "--hardware", "H100", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["calibrated"] is False


def test_a_broken_saved_file_is_named_and_passed_over(configuration: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (configuration / "broken.json").write_text("{")
    assert main(["plan", "mlp", "--hardware", "A100", "--json"]) == 0
    streams = capsys.readouterr()
    assert json.loads(streams.out)["calibrated"] is False
    assert "broken.json: passed over" in streams.err


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys, contextlib\nfrom fusetui.cli import main\n"
        "with contextlib.suppress(SystemExit): main(['plan', '--help'])\n"
        "print('loaded', sorted({'numpy', 'polars', 'pyarrow', 'onnx', 'textual'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert "BLOCK|FILE" in done.stdout
    assert done.stdout.rstrip().endswith("loaded []")


def test_tiles_to_choose_between(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["plan", model(tmp_path), "--shapes", "batch=4096", "--hardware", "A100", "--json"]
    assert main([*command, "--pareto"]) == 0
    (group,) = json.loads(capsys.readouterr().out)["groups"]
    assert group["tiles"]
    assert main(command) == 0
    (group,) = json.loads(capsys.readouterr().out)["groups"]
    assert not group.get("tiles")
