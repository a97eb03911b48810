"""ONNX files that are not what they should be: one error each, never a crash or a hang."""

from __future__ import annotations

import builtins
import importlib
import os
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx_models import Model, onnx, residual_block, transformer

from fusetui.accelerator import onnx_file
from fusetui.accelerator.errors import AcceleratorError
from fusetui.accelerator.onnx_file import looks_like_onnx, read_model
from fusetui.accelerator.onnx_graph import read_onnx
from fusetui.accelerator.onnx_ops import COPIES, GATHERS, POINTWISE, POOLS, REDUCTIONS, ROWS, VIEWS
from fusetui.accelerator.onnx_products import PRODUCTS

LAYER = transformer(1, 8, 2).bytes()
LAYER_SHAPES = {"batch": 8, "sequence": 8}
CONVOLUTIONS = residual_block(4).bytes()
CONVOLUTION_SHAPES = {"batch": 2, "height": 4, "width": 4}
OPERATORS = sorted(
    {*COPIES, *GATHERS, *POINTWISE, *POOLS, *REDUCTIONS, *ROWS, *VIEWS, *PRODUCTS, "Attention", "If", "X"}
)
ATTRIBUTES = (
    "axis",
    "axes",
    "perm",
    "group",
    "strides",
    "kernel_shape",
    "equation",
    "num_heads",
    "transA",
    "dilations",
)
VALUES = (0, -1, 7, 1 << 40, [0], [1, 5], [-3, 2], "ab,bc->ac", b"\xff")


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "is not an ONNX model, or has no graph"), (b"\x08", "is not an ONNX model, or is truncated"),
     (b"{}", "is not an ONNX model"), (LAYER[: len(LAYER) // 2], "is not an ONNX model, or is truncated"),
     (LAYER.replace(b"Softmax", b"Softm\xff\xff"), "a name in it is not text")],
)  # fmt: skip
def test_what_is_no_model_is_said_in_one_line(content: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    with pytest.raises(AcceleratorError) as failed:
        read_onnx(path, LAYER_SHAPES)
    assert words in str(failed.value)
    assert str(path) in str(failed.value)
    assert "\n" not in str(failed.value)


def test_missing_and_special_files(tmp_path: Path) -> None:
    with pytest.raises(AcceleratorError, match="cannot be read: No such file"):
        read_model(tmp_path / "m.onnx", {})
    os.mkfifo(tmp_path / "pipe.onnx")
    with pytest.raises(AcceleratorError, match="is not a file"):
        read_model(tmp_path / "pipe.onnx", {})


def test_without_the_package_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load = importlib.import_module

    def missing(name: str, *rest: Any) -> Any:
        if name.startswith("onnx"):
            raise ImportError(name)
        return load(name, *rest)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(AcceleratorError, match=r"pip install 'fusetui\[onnx\]'"):
        read_model(tmp_path / "m.onnx", {})


def test_files_and_graphs_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(LAYER)
    monkeypatch.setattr(onnx_file, "NODE_CAP", 50)
    with pytest.raises(AcceleratorError, match="51 nodes are more than 50"):
        read_model(path, LAYER_SHAPES)
    monkeypatch.setattr(onnx_file, "FILE_CAP", 100)
    with pytest.raises(AcceleratorError, match="bytes are more than 100; save its weights as external data"):
        read_model(path, LAYER_SHAPES)


def test_external_weights_are_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    m = onnx.load_model_from_string(LAYER)
    for tensor in m.graph.initializer:
        if len(tensor.dims) == 2:
            onnx.external_data_helper.set_external_data(tensor, "/etc/passwd")
            tensor.ClearField("raw_data")
            tensor.data_location = onnx.TensorProto.EXTERNAL
    path = tmp_path / "m.onnx"
    path.write_bytes(m.SerializeToString())
    opened = []
    real = builtins.open
    monkeypatch.setattr(builtins, "open", lambda name, *a, **k: opened.append(str(name)) or real(name, *a, **k))
    assert len(read_onnx(path, LAYER_SHAPES).graph.operators) == 51
    assert "/etc/passwd" not in opened


def test_a_shape_that_cannot_be_inferred_names_the_node(tmp_path: Path) -> None:
    m = Model()
    m.output(m.node("Relu", m.node("Frobnicate", m.input("x", 4), domain="com.microsoft")))
    with pytest.raises(AcceleratorError, match=r"node Frobnicate0 \(Frobnicate\): the shape of Frobnicate0.0 cannot"):
        m.read(tmp_path)


def test_the_first_bytes_tell_a_model_from_a_capture(tmp_path: Path) -> None:
    path = tmp_path / "model"
    for content, is_model in ((LAYER, True), (b"{}", False), (b"ARROW1\0\0", False), (b"\x1f\x8b\x08", False)):
        path.write_bytes(content)
        assert looks_like_onnx(path) is is_model
    assert not looks_like_onnx(tmp_path / "nothing")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rng=st.randoms(use_true_random=False), layer=st.booleans())
def test_changed_bytes_never_crash(rng: random.Random, layer: bool, tmp_path: Path) -> None:
    content = bytearray(LAYER if layer else CONVOLUTIONS)
    for _ in range(rng.choice((1, 1, 3, 12))):
        at, how = rng.randrange(len(content) or 1), rng.randrange(4)
        if how == 0:
            content[at : at + 1] = bytes([rng.randrange(256)])
        elif how == 1:
            del content[at : at + rng.randrange(1, 9)]
        elif how == 2:
            content[at:at] = rng.randbytes(rng.randrange(1, 9))
        else:
            content[at:at] = content[: rng.randrange(60)]
    _read_or_refuse(tmp_path, bytes(content), LAYER_SHAPES if layer else CONVOLUTION_SHAPES)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rng=st.randoms(use_true_random=False), layer=st.booleans())
def test_changed_nodes_never_crash(rng: random.Random, layer: bool, tmp_path: Path) -> None:
    m = onnx.load_model_from_string(LAYER if layer else CONVOLUTIONS)
    names = [name for node in m.graph.node for name in (*node.input, *node.output)]
    for _ in range(rng.choice((1, 1, 2, 4))):
        node, how = rng.choice(m.graph.node), rng.randrange(6)
        if how < 2:
            node.op_type = rng.choice(OPERATORS)
        elif how == 2 and node.input:
            node.input[rng.randrange(len(node.input))] = rng.choice([*names, "", "nothing"])
        elif how == 3:
            node.input.append(rng.choice(names))
        elif how == 4 and node.input:
            node.input.pop()
        else:
            node.attribute.append(onnx.helper.make_attribute(rng.choice(ATTRIBUTES), rng.choice(VALUES)))
    _read_or_refuse(tmp_path, m.SerializeToString(), LAYER_SHAPES if layer else CONVOLUTION_SHAPES)


def _read_or_refuse(folder: Path, content: bytes, shapes: dict[str, int]) -> None:
    path = folder / "m.onnx"
    path.write_bytes(content)
    try:
        graph = read_onnx(path, shapes).graph
    except AcceleratorError:
        return
    assert graph.operators
    assert all(op.name.isprintable() for op in graph.operators)
