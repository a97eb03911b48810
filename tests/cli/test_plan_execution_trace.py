"""`fusetui plan` of a PyTorch execution trace."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fusetui import cli


def test_an_execution_trace_is_planned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def tensor(number: int, *shape: int) -> tuple[list[object], list[int]]:
        return [number, number + 100, 0, 0, 4, "cuda:0"], list(shape)

    def call(number: int, name: str, schema: str, *tensors: tuple[list[object], list[int]]) -> dict[str, object]:
        *read, written = tensors
        return {
            "id": number, "name": f"aten::{name}", "parent": 1, "op_schema": f"aten::{name}({schema}) -> Tensor",
            "inputs": [t[0] for t in read], "input_shapes": [t[1] for t in read],
            "input_types": ["Tensor(float)"] * len(read), "outputs": [written[0]], "output_shapes": [written[1]],
            "output_types": ["Tensor(float)"],
        }  # fmt: skip

    x, weight, y, z = tensor(1, 64, 256), tensor(2, 512, 256), tensor(3, 64, 512), tensor(4, 64, 512)
    nodes = [
        call(2, "linear", "Tensor input, Tensor weight", x, weight, y),
        call(3, "relu", "Tensor self", y, z),
    ]
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"schema": "1.0.1", "pid": 1, "nodes": nodes}))
    assert cli.main(["plan", str(path), "--hardware", "h100", "--dtype", "bf16"]) == 0
    out = capsys.readouterr().out
    assert "linear 2 + relu 3" in out
    assert "2 of 2 operators (100%) are known to the model" in " ".join(out.split())
    assert cli.main(["plan", str(path), "--hardware", "h100", "--shapes", "m=4"]) == 2
    path.write_text(path.read_text()[:-9])
    assert cli.main(["plan", str(path), "--hardware", "h100"]) == 3
    assert "is not a whole execution trace" in capsys.readouterr().err
