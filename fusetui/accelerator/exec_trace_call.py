"""One call in a PyTorch execution trace: its tensors by id, and its arguments by the names in its schema."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, overload

from fusetui.accelerator.onnx_file import RANK_CAP

Key = tuple[int, int]

# Element types by the numbers that ONNX gives them.
_TYPES: Final[Mapping[str, int]] = {
    "float": 1, "unsigned char": 2, "signed char": 3, "short": 5, "int": 6, "long": 7, "long int": 7, "bool": 9,
    "c10::Half": 10, "half": 10, "double": 11, "c10::BFloat16": 16, "bfloat16": 16, "c10::Float8_e4m3fn": 17,
    "c10::Float8_e4m3fnuz": 18, "c10::Float8_e5m2": 19, "c10::Float8_e5m2fnuz": 20,
}  # fmt: skip
_PARAMETER: Final = re.compile(r"(\w+)(?:=.*)?\Z")
_WEIGHTED: Final = frozenset(
    (
        "linear", "addmm", "conv1d", "conv2d", "conv3d", "convolution", "_convolution", "cudnn_convolution",
        "miopen_convolution", "batch_norm", "native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm", "layer_norm",
        "native_layer_norm", "rms_norm", "group_norm", "native_group_norm",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TracedTensor:
    """A tensor as a call names it: (tensor, storage), sizes, and the number of its element type."""

    key: Key
    shape: tuple[int, ...]
    type: int

    @property
    def points(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class Call:
    """tensors, keys: operands by parameter; values: all arguments by parameter, as they were written."""

    full_name: str
    number: int
    tensors: Mapping[str, list[str]]
    values: Mapping[str, Any]
    keys: Mapping[str, list[Key]]

    @property
    def name(self) -> str:
        """Without namespace and the mark of an in-place call."""
        bare = self.full_name.rpartition("::")[2]
        return bare.removesuffix("_") if not bare.startswith("_foreach") else bare

    @property
    def has_weights(self) -> bool:
        """Whether operands after the first are parameters where nobody computed them."""
        return self.name in _WEIGHTED

    def first(self, *parameters: str) -> str:
        """The tensor of the first of these parameters that has one, "" for none."""
        return next((self.tensors[p][0] for p in parameters if self.tensors.get(p)), "")

    def all_tensors(self, *parameters: str) -> tuple[str, ...]:
        """Tensors of these parameters, of all without any."""
        return tuple(n for p in parameters or self.tensors for n in self.tensors.get(p, ()))

    def integers(self, parameter: str) -> tuple[int, ...]:
        """An argument that is a whole number or a list of them."""
        value = self.values.get(parameter)
        found = value if isinstance(value, list) else [value]
        return tuple(v for v in found if type(v) is int)

    def returns(self, key: Key) -> bool:
        """Whether it gave back what it got, as a conversion to the same type does."""
        return self.name in ("to", "contiguous", "reshape", "expand") and key in self.keys.get("self", ())


def schema_names(node: Mapping[str, Any]) -> list[str]:
    """Parameter names from `aten::mm(Tensor self, Tensor mat2) -> Tensor`; [] when the node has no schema."""
    schema = node.get("op_schema")
    attributes = node.get("attrs")
    for entry in attributes if isinstance(attributes, list) else ():
        if isinstance(entry, dict) and entry.get("name") == "op_schema":
            schema = entry.get("value")
    if not isinstance(schema, str) or "(" not in schema:
        return []
    inside = schema.partition("(")[2].rpartition(" -> ")[0].rpartition(")")[0]
    names = []
    for part in _split(inside):
        match = _PARAMETER.search(part.strip().rpartition(" ")[2] if "=" not in part else part.split("=")[0].strip())
        if match and part.strip() != "*":
            names.append(match[1])
    return names


def _split(text: str) -> Iterator[str]:
    """At the commas that stand in no brackets."""
    depth, begin = 0, 0
    for at, char in enumerate(text):
        depth += (char in "([") - (char in ")]")
        if char == "," and not depth:
            yield text[begin:at]
            begin = at + 1
    yield text[begin:]


@overload
def ids_and_shapes(node: Mapping[str, Any], side: str) -> list[list[TracedTensor]]: ...
@overload
def ids_and_shapes(
    node: Mapping[str, Any], side: str, *, values: Literal[True]
) -> list[tuple[Any, list[TracedTensor]]]: ...
def ids_and_shapes(node: Mapping[str, Any], side: str, *, values: bool = False) -> list[Any]:
    """The tensors of each argument (side "input") or result ("output"); with `values` beside what was written."""
    given = node.get(f"{side}s")
    if isinstance(given, dict):
        columns = [given.get(key) for key in ("values", "shapes", "types")]
    else:
        columns = [given, node.get(f"{side}_shapes"), node.get(f"{side}_types")]
    if not all(isinstance(column, list) for column in columns):
        return []
    found: list[Any] = []
    for value, shape, kind in zip(*columns, strict=False):
        tensors = list(_tensors(value, shape, kind))
        found.append((value, tensors) if values else tensors)
    return found


def _tensors(value: Any, shape: Any, kind: Any) -> Iterator[TracedTensor]:
    if not isinstance(kind, str) or not isinstance(value, list) or not isinstance(shape, list):
        return
    if kind.startswith("GenericList["):
        kinds = kind.removeprefix("GenericList[").removesuffix("]").split(",")
        for one in zip(value, shape, kinds, strict=False):
            yield from _tensors(*one)
    elif kind.startswith("Tensor(") and len(value) >= 2 and _whole(value[:2]) and _whole(shape):
        number = _TYPES.get(kind.removeprefix("Tensor(").removesuffix(")"))
        if number is not None and len(shape) <= RANK_CAP:
            yield TracedTensor((value[0], value[1]), tuple(shape), number)


def _whole(values: Sequence[Any]) -> bool:
    return all(type(v) is int and v >= 0 for v in values)
