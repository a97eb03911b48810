"""Reading an ONNX file as plain nodes, shapes and small constants. Nothing is executed and no weight is loaded."""

from __future__ import annotations

import importlib
import math
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fusetui.accelerator.errors import AcceleratorError
from fusetui.accelerator.graph import GraphError
from fusetui.accelerator.onnx_shapes import Shapes, infer
from fusetui.accelerator.onnx_values import SMALL

FILE_CAP: Final = 1 << 30
NODE_CAP: Final = 20_000
ELEMENT_CAP: Final = 1 << 48
RANK_CAP: Final = 64
_FIELD_TAGS: Final = frozenset(b"\x12\x1a\x22\x28\x32\x3a\x42\x72\xa2\xca")

# ONNX element types by their number in the format; the model knows integers by their width only.
_TYPES: Final[Mapping[int, str]] = {
    1: "fp32", 2: "int8", 3: "int8", 4: "fp16", 5: "fp16", 6: "fp32", 7: "fp64", 9: "int8", 10: "fp16", 11: "fp64",
    12: "fp32", 13: "fp64", 16: "bf16", 17: "fp8", 18: "fp8", 19: "fp8", 20: "fp8", 21: "nvfp4", 22: "nvfp4",
    23: "nvfp4", 24: "fp8",
}  # fmt: skip
FLOATS: Final = frozenset({1, 10, 11, 16, 17, 18, 19, 20, 23})


@dataclass(frozen=True, slots=True)
class Node:
    """One node; absent optional inputs are ""."""

    name: str
    op: str
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, int | tuple[int, ...] | str]

    def integer(self, name: str, default: int) -> int:
        """An attribute that is one number."""
        value = self.attributes.get(name)
        return value if isinstance(value, int) else default

    def integers(self, name: str) -> tuple[int, ...]:
        """An attribute that is a list of numbers, () without it."""
        value = self.attributes.get(name)
        return value if isinstance(value, tuple) else ()


@dataclass(frozen=True, slots=True)
class OnnxModel:
    """A model with every dimension bound.

    shapes, types   of every tensor known; types as numbers of the format
    constants       initializers; `values` of the small integer ones
    refused         why a node's result has no shape, by its first result
    """

    where: str
    opset: int
    nodes: tuple[Node, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constants: frozenset[str]
    shapes: Mapping[str, tuple[int, ...]]
    types: Mapping[str, int]
    values: Mapping[str, tuple[int, ...]]
    refused: Mapping[str, str]


def looks_like_onnx(path: Path) -> bool:
    """Whether the name or the first bytes say ONNX: a version number, then another field of a model."""
    if path.suffix.lower() == ".onnx":
        return True
    try:
        with path.open("rb") as file:
            head = file.read(3)
    except OSError:
        return False
    return len(head) == 3 and head[0] == 8 and 1 <= head[1] <= 32 and head[2] in _FIELD_TAGS


def element_type(number: int) -> str:
    """The model's type of the same width and, for floats, the same kind."""
    return _TYPES.get(number, "fp32")


def read_model(path: Path, bindings: Mapping[str, int]) -> OnnxModel:
    """Parse `path`, bind symbolic dimensions by name (``INPUT.AXIS`` names one that has none), infer shapes.

    Raises AcceleratorError where the file cannot be read or `onnx` is missing, GraphError naming the dimension that
    is not bound, or a binding that the model has no use for.
    """
    try:
        onnx: Any = importlib.import_module("onnx")
        importlib.import_module("onnx.shape_inference")
    except ImportError:
        raise AcceleratorError(str(path), "reading ONNX needs a package", "pip install 'fusetui[onnx]'") from None
    model = _parse(path, onnx)
    where = str(path)
    try:
        _strip(model)
        _bind(model, bindings, where)
        if model.functions:
            model = importlib.import_module("onnx.inliner").inline_local_functions(model)
        nodes = tuple(_node(n, i, onnx) for i, n in enumerate(model.graph.node))
        for value in (*model.graph.input, *model.graph.output, *model.graph.initializer):
            _text(value.name)
        return _collect(model, nodes, infer(model), where)
    except (RuntimeError, ValueError, TypeError) as error:
        raise AcceleratorError(where, f"is not a valid ONNX model: {error}") from None


def _parse(path: Path, onnx: Any) -> Any:
    from_string = onnx.load_model_from_string
    decode_error = importlib.import_module("google.protobuf.message").DecodeError
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise AcceleratorError(str(path), "is not a file")
        size = status.st_size
        if size > FILE_CAP:
            remedy = "save its weights as external data; they are not needed"
            raise AcceleratorError(str(path), f"{size:,} bytes are more than {FILE_CAP:,}", remedy)
        model = from_string(path.read_bytes())
    except OSError as error:
        raise AcceleratorError(str(path), f"cannot be read: {error.strerror}") from None
    except (decode_error, ValueError, RuntimeError, TypeError):
        raise AcceleratorError(str(path), "is not an ONNX model, or is truncated") from None
    if not model.graph.node:
        raise AcceleratorError(str(path), "is not an ONNX model, or has no graph")
    if len(model.graph.node) > NODE_CAP:
        raise AcceleratorError(str(path), f"{len(model.graph.node):,} nodes are more than {NODE_CAP:,}")
    return model


def _strip(model: Any) -> None:
    """Drop the values of weights, which only cost memory, and the types of values, which are inferred."""
    for tensor in model.graph.initializer:
        if math.prod(tensor.dims) > SMALL:
            for field in ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data"):
                tensor.ClearField(field)
    del model.graph.value_info[:]
    for value in model.graph.output:
        value.ClearField("type")


def _bind(model: Any, bindings: Mapping[str, int], where: str) -> None:
    unused, known = set(bindings), dict[str, str]()
    weights = {t.name for t in model.graph.initializer}
    for value in model.graph.input:
        if value.name in weights or not value.type.HasField("tensor_type"):
            continue
        if not value.type.tensor_type.HasField("shape"):
            raise GraphError(f"{where}, input {value.name}", "has no shape", "export the model with input shapes")
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.HasField("dim_value") and dim.dim_value >= 0:
                continue
            place = f"{_text(value.name)}.{axis}"
            name = _text(dim.dim_param) or place
            given = bindings.get(place, bindings.get(name))
            known[name] = place
            unused -= {place, name}
            if given is None:
                raise GraphError(f"{where}, input {value.name}", f"axis {axis} has no size", f"--shapes {name}=SIZE")
            dim.dim_value = given
    for name in sorted(unused):
        raise GraphError(f"--shapes {name}", "is no symbolic dimension", f"it has {', '.join(known) or 'none'}")


def _text(name: str | bytes) -> str:
    """The format's strings come as bytes where they are not UTF-8."""
    if isinstance(name, bytes):
        raise ValueError("a name in it is not text")
    return name


def _node(node: Any, index: int, onnx: Any) -> Node:
    attributes: dict[str, int | tuple[int, ...] | str] = {}
    for a in node.attribute:
        if a.type == onnx.AttributeProto.INT:
            attributes[_text(a.name)] = int(a.i)
        elif a.type == onnx.AttributeProto.INTS:
            attributes[_text(a.name)] = tuple(a.ints)
        elif a.type == onnx.AttributeProto.STRING:
            attributes[_text(a.name)] = a.s.decode("utf-8", "replace")
    op = _text(node.op_type)
    inputs, outputs = (tuple(map(_text, names)) for names in (node.input, node.output))
    return Node(_text(node.name) or f"{op}_{index}", op, _text(node.domain), inputs, outputs, attributes)


def _collect(model: Any, nodes: tuple[Node, ...], known: Shapes, where: str) -> OnnxModel:
    graph = model.graph
    shapes = known.shapes
    for name, shape in shapes.items():
        if len(shape) > RANK_CAP or min(shape, default=0) < 0 or math.prod(shape) > ELEMENT_CAP:
            raise GraphError(f"{where}, tensor {name}", f"shape {list(shape)[:8]} is not possible")
    constants = frozenset(w.name for w in graph.initializer)
    return OnnxModel(
        where=where,
        opset=max((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), default=1),
        nodes=nodes,
        inputs=tuple(v.name for v in graph.input if v.name not in constants),
        outputs=tuple(v.name for v in graph.output),
        constants=constants,
        shapes=shapes,
        types=known.types,
        values={n: tuple(v.ravel().tolist()) for n, v in known.values.items() if v.dtype.kind in "iu"},
        refused=known.refused,
    )
