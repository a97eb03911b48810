"""Small ONNX models, built when a test asks for one; `onnx` is an optional dependency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fusetui.accelerator.onnx_graph import OnnxGraph, read_onnx

onnx: Any = pytest.importorskip("onnx")


class Model:
    """Nodes are named by their operator and number; every value is float32 unless told."""

    def __init__(self, opset: int = 17) -> None:
        self._opset = opset
        self._nodes: list[Any] = []
        self._weights: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    def input(self, name: str, *shape: int | str, kind: str = "FLOAT") -> str:
        self._inputs.append(onnx.helper.make_tensor_value_info(name, getattr(onnx.TensorProto, kind), shape))
        return name

    def weight(self, *shape: int) -> str:
        return self.constant(np.zeros(shape, np.float32))

    def constant(self, value: Any) -> str:
        name = f"w{len(self._weights)}"
        self._weights.append(onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(self, op: str, *inputs: str, outputs: int = 1, domain: str = "", **attributes: Any) -> Any:
        name = f"{op}{len(self._nodes)}"
        made = [f"{name}.{i}" for i in range(outputs)]
        self._nodes.append(onnx.helper.make_node(op, inputs, made, name=name, domain=domain, **attributes))
        return made[0] if outputs == 1 else made

    def output(self, *names: str) -> Model:
        for name in names:
            self._outputs.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None))
        return self

    def bytes(self) -> bytes:
        graph = onnx.helper.make_graph(self._nodes, "g", self._inputs, self._outputs, self._weights)
        opsets = [onnx.helper.make_opsetid("", self._opset), onnx.helper.make_opsetid("com.microsoft", 1)]
        model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)
        return bytes(model.SerializeToString())

    def save(self, folder: Path, name: str = "model.onnx") -> Path:
        path = folder / name
        path.write_bytes(self.bytes())
        return path

    def read(self, folder: Path, shapes: Mapping[str, int] | None = None, dtype: str | None = None) -> OnnxGraph:
        return read_onnx(self.save(folder), shapes or {}, dtype)


def norm_of_nine(m: Model, x: str, width: int) -> str:
    """LayerNorm as exporters without the operator write it."""
    centred = m.node("Sub", x, m.node("ReduceMean", x, axes=[-1]))
    variance = m.node("ReduceMean", m.node("Pow", centred, m.constant(np.float32(2))), axes=[-1])
    deviation = m.node("Sqrt", m.node("Add", variance, m.constant(np.float32(1e-5))))
    scaled = m.node("Mul", m.node("Div", centred, deviation), m.weight(width))
    return str(m.node("Add", scaled, m.weight(width)))


def linear(m: Model, x: str, rows: int, columns: int) -> str:
    """A product and its bias as two nodes."""
    return str(m.node("Add", m.node("MatMul", x, m.weight(rows, columns)), m.weight(columns)))


def layer(m: Model, x: str, width: int, heads: int) -> str:
    """A pre-norm transformer layer with an exact GELU: 50 nodes."""

    def split(y: str, order: Sequence[int]) -> str:
        shape = m.constant(np.array([0, 0, heads, width // heads]))
        return str(m.node("Transpose", m.node("Reshape", y, shape), perm=order))

    y = norm_of_nine(m, x, width)
    q, k, v = (split(linear(m, y, width, width), [0, 2, 1, 3]) for _ in "qkv")
    scores = m.node("MatMul", q, m.node("Transpose", k, perm=[0, 1, 3, 2]))
    weights = m.node("Softmax", m.node("Div", scores, m.constant(np.float32(8))), axis=-1)
    mixed = m.node("Transpose", m.node("MatMul", weights, v), perm=[0, 2, 1, 3])
    merged = m.node("Reshape", mixed, m.constant(np.array([0, 0, width])))
    x = m.node("Add", x, linear(m, merged, width, width))
    u = linear(m, norm_of_nine(m, x, width), width, 4 * width)
    e = m.node("Erf", m.node("Div", u, m.constant(np.float32(2**0.5))))
    u = m.node("Mul", m.node("Mul", u, m.node("Add", e, m.constant(np.float32(1)))), m.constant(np.float32(0.5)))
    return str(m.node("Add", x, linear(m, u, 4 * width, width)))


def transformer(layers: int = 1, width: int = 256, heads: int = 4) -> Model:
    """`layers` layers over x(batch, sequence, width) and an identity at the end."""
    m = Model()
    x = m.input("x", "batch", "sequence", width)
    for _ in range(layers):
        x = layer(m, x, width, heads)
    return m.output(m.node("Identity", x))


def residual_block(channels: int = 64) -> Model:
    """Two 3 x 3 convolutions with batch normalisation around a residual: 8 nodes."""
    m = Model()
    x = m.input("x", "batch", channels, "height", "width")

    def convolution(y: str) -> str:
        y = m.node("Conv", y, m.weight(channels, channels, 3, 3), kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        return str(m.node("BatchNormalization", y, *(m.weight(channels) for _ in range(4))))

    y = convolution(m.node("Relu", convolution(x)))
    return m.output(m.node("Identity", m.node("Relu", m.node("Add", y, x))))
