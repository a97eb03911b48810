"""PyTorch execution traces: operators in order, with shapes and no times."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from kineto_samples import MEMORY, rows_of, write
from small_captures import et_node, et_trace

from fusetui.importers import exectrace
from fusetui.telemetry.errors import TelemetryError

_CORPUS = os.environ.get("FUSETUI_CORPUS")
_ROOT = Path(_CORPUS or ".") / "traces"
_MM = et_node(9, "aten::mm", [[2, 3], [3, 4], []], ["Tensor(c10::Half)", "Tensor(c10::Half)", "Int"])
_CAT = et_node(4, "aten::cat", [[[2, 3], [5, 3]], []], ["GenericList[Tensor(float),Tensor(float)]", "Int"])
_SUM = {"collective_name": "allreduce", "in_msg_nelems": 1000, "dtype": "float", "pg_size": 8}
_COMM = et_node(12, "record_param_comms", [[1000]], ["Tensor(float)"], **_SUM)


def opened(tmp_path: Path, content: bytes) -> tuple[list[dict[str, Any]], list[str]]:
    capture = exectrace.read(write(tmp_path / "et.json", content), MEMORY)
    return rows_of(capture), capture.notes


def test_operators_are_marks_in_order_of_their_numbers(tmp_path: Path) -> None:
    rows, notes = opened(tmp_path, et_trace([_MM, _CAT, _COMM]))
    assert [(row["name"], row.get("shape"), row.get("stream"), row["end_ns"]) for row in rows] == [
        ("aten::cat", "2x3 5x3 f32", "thread 3", 0),
        ("aten::mm", "2x3 3x4 f16", "thread 3", 0),
        ("record_param_comms (allreduce)", "elements=1000 float ranks=8", "thread 3", 0),
        ("end of the execution trace", None, None, 68_000_000),
    ]
    assert {row["kind"] for row in rows} == {"mark"}
    assert notes[0].startswith("no times")
    assert notes[1] == "operators with shapes: 3 of 3"


def test_the_first_schema(tmp_path: Path) -> None:
    node = {
        "name": "aten::relu", "id": 5, "tid": 1, "inputs": [[1, 2, 0, 4, 4, "cpu"]], "input_shapes": [[512, 1024]],
        "input_types": ["Tensor(float)"],
    }  # fmt: skip
    rows, _ = opened(tmp_path, json.dumps({"schema": "1.0.1", "nodes": [node]}).encode())
    assert [(row["name"], row["shape"], row["stream"]) for row in rows] == [("aten::relu", "512x1024 f32", "thread 1")]


def test_a_cut_file_gives_its_whole_nodes(tmp_path: Path) -> None:
    whole = et_trace([_CAT, _MM, _COMM])
    rows, notes = opened(tmp_path, whole[: whole.index(b"record_param") + 5])
    assert [row["name"] for row in rows] == ["aten::cat", "aten::mm"]
    assert notes[0] == "the file is cut or broken: unreadable nodes: 1"


def test_a_trace_without_operators_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TelemetryError, match="without one readable operator"):
        opened(tmp_path, et_trace([]))


@pytest.mark.skipif(not _CORPUS, reason="set FUSETUI_CORPUS to a folder with traces/ and reference/")
@pytest.mark.parametrize(
    ("name", "operators"),
    [
        ("pytorch_et/facebookresearch__HolisticTraceAnalysis__execution_trace_benchmark_simple_add_et.json.gz", 38),
        ("pytorch_et/facebookresearch__param__1.1.0-chakra.0.0.4_resnet_2gpu_et.json.gz", 14392),
        ("pytorch_et/facebookresearch__param__linear_et.json.gz", 931),
        ("local/torch/torch_train_step_et.json", 907),
    ],
)
def test_real_traces(name: str, operators: int) -> None:
    capture = exectrace.read(_ROOT / name, 256 << 20)
    rows = rows_of(capture)
    assert len(rows) == operators + 1
    if "2gpu" in name:
        reduced = [row["shape"] for row in rows if row["name"].startswith("record_param_comms (allreduce)")]
        assert len(reduced) + sum("(broadcast)" in row["name"] for row in rows) > 0
        assert all("ranks=2" in shape for shape in reduced)
