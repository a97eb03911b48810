"""Shapes of every tensor of a model, node by node: ONNX's own rule for the operator, and values that shapes come from.

Exported models compute sizes (a third of a width, a flattened length) with nodes of their own, which inference over
the whole model gives up on; here such a value is known before the node that needs it is asked for its shape.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from fusetui.accelerator.onnx_values import SMALL, Value, evaluate

# Operators of other domains whose result has the shape of what a standard operator would give.
_STAND_INS: Final[Mapping[str, str]] = {
    "FusedMatMul": "MatMul", "FusedConv": "Conv", "FusedGemm": "Gemm", "BiasGelu": "Add", "BiasAdd": "Add",
    "FastGelu": "Identity", "QuickGelu": "Identity", "Gelu": "Identity", "SkipLayerNormalization": "Identity",
    "SimplifiedLayerNormalization": "Identity", "SkipSimplifiedLayerNormalization": "Identity",
    "LayerNormalization": "Identity", "RotaryEmbedding": "Identity", "MultiHeadAttention": "Identity",
}  # fmt: skip
_DTYPES: Final = frozenset({1, 6, 7, 9, 11})  # element types that sizes are computed in


@dataclass(slots=True)
class Shapes:
    """What is known of each tensor: type numbers, whole shapes, the values of small ones, and why there is no
    shape, in ONNX's words, by the first result of the node."""

    types: dict[str, int] = field(default_factory=dict)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    values: dict[str, Value] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


def infer(model: Any) -> Shapes:
    """Walk the nodes in order. What a node's rule refuses stays unknown; whoever needs it says so."""
    return _Inference(model).run()


class _Inference:
    def __init__(self, model: Any) -> None:
        self._onnx: Any = importlib.import_module("onnx")
        self._rules: Any = importlib.import_module("onnx.shape_inference")
        self._model = model
        self._protos: dict[str, Any] = {}
        self._versions = {o.domain: o.version for o in model.opset_import}
        self._found = Shapes()
        self._refusals = (
            RuntimeError, ValueError, TypeError, IndexError, OverflowError, self._rules.InferenceError,
            self._onnx.defs.SchemaError, self._onnx.checker.ValidationError,
        )  # fmt: skip

    def run(self) -> Shapes:
        for value in self._model.graph.input:
            self._learn(value.name, value.type)
        for weight in self._model.graph.initializer:
            proto = self._onnx.helper.make_tensor_type_proto(weight.data_type, list(weight.dims))
            self._learn(weight.name, proto)
            self._read(weight.name, weight)
        for node in self._model.graph.node:
            self._node(node)
        return self._found

    def _node(self, node: Any) -> None:
        asked = self._standard(node)
        try:
            for name, proto in self._outputs(asked).items():
                self._learn(name, proto)
        except self._refusals as error:
            self._found.refused[next(iter(node.output), "")] = str(error)
            return
        if node.op_type.startswith("Skip") and len(node.output) > 3 and node.output[0] in self._protos:
            self._learn(node.output[3], self._protos[node.output[0]])  # the sum before the norm
        for attribute in node.attribute:
            if node.op_type == "Constant" and attribute.name == "value":
                self._read(node.output[0], attribute.t)
        try:
            self._value(node)
        except self._refusals:
            return

    def _outputs(self, node: Any) -> dict[str, Any]:
        version = self._versions.get(node.domain, self._versions.get("", 1))
        schema = self._onnx.defs.get_schema(node.op_type, version, node.domain)
        inputs = [name for name in node.input if name]
        if any(name not in self._protos for name in inputs):
            return {}
        data = {
            name: self._onnx.numpy_helper.from_array(self._found.values[name])
            for name in inputs
            if name in self._found.values
        }
        found: dict[str, Any] = self._rules.infer_node_outputs(
            schema,
            node,
            {name: self._protos[name] for name in inputs},
            data,
            opset_imports=list(self._model.opset_import),
            ir_version=self._model.ir_version,
        )
        return found

    def _standard(self, node: Any) -> Any:
        """The node, or one of a standard operator whose result has the same shape."""
        standard = _STAND_INS.get(node.op_type)
        if standard is None or node.domain in ("", "ai.onnx"):
            return node
        if standard == "MatMul" and any(a.name in ("transA", "transB") and a.i for a in node.attribute):
            return node
        other = self._onnx.NodeProto()
        other.CopyFrom(node)
        other.domain, other.op_type = "", standard
        kept = [a for a in other.attribute if standard in ("Conv", "Gemm") and not a.name.startswith("activation")]
        del other.attribute[:]
        other.attribute.extend(kept)
        if standard == "Identity":
            del other.input[1:], other.output[1:]
        return other

    def _learn(self, name: str, proto: Any) -> None:
        if not proto.HasField("tensor_type"):
            return
        tensor = proto.tensor_type
        self._protos[name] = proto
        self._found.types[name] = tensor.elem_type
        sizes = [d.dim_value if d.HasField("dim_value") else -1 for d in tensor.shape.dim]
        if tensor.HasField("shape") and min(sizes, default=0) >= 0:
            self._found.shapes[name] = tuple(sizes)

    def _read(self, name: str, tensor: Any) -> None:
        """The values of a small constant that is inside the file."""
        inside = tensor.data_location != self._onnx.TensorProto.EXTERNAL
        if inside and tensor.data_type in _DTYPES and 0 <= math.prod(tensor.dims) <= SMALL:
            try:
                self._found.values[name] = np.asarray(self._onnx.numpy_helper.to_array(tensor))
            except self._refusals:
                return

    def _value(self, node: Any) -> None:
        found = self._found
        if len(node.output) != 1:
            return
        attributes = {a.name: self._onnx.helper.get_attribute_value(a) for a in node.attribute}
        output, inputs = node.output[0], [n for n in node.input if n]
        value: Value | None = None
        if node.op_type in ("Shape", "Size") and inputs and inputs[0] in found.shapes:
            shape = np.array(found.shapes[inputs[0]], dtype=np.int64)
            cut = shape[attributes.get("start", 0) : attributes.get("end", len(shape))]
            value = cut if node.op_type == "Shape" else np.array(math.prod(found.shapes[inputs[0]]), dtype=np.int64)
        elif node.op_type == "ConstantOfShape" and math.prod(found.shapes.get(output, (SMALL + 1,))) <= SMALL:
            fill = self._onnx.numpy_helper.to_array(attributes["value"])[0] if "value" in attributes else np.float32(0)
            value = np.full(found.shapes[output], fill)
        elif node.op_type == "Constant":
            simple = {"value_int", "value_ints", "value_float", "value_floats"}.intersection(attributes)
            value = np.asarray(attributes[simple.pop()]) if simple else None
        elif inputs and all(name in found.values for name in inputs):
            value = evaluate(node.op_type, [found.values[name] for name in inputs], attributes)
        if value is not None and value.size <= SMALL:
            found.values[output] = value
