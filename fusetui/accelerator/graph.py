"""A block as a graph of operators: loop nests over named dimensions.

Dimensions are named once for the whole graph and have one size each, so a tensor is a tuple of names and every
operator's loops follow from the tensors it touches: its output's dimensions and the ones it reduces.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, get_args

from fusetui.accelerator.errors import AcceleratorError
from fusetui.accelerator.hardware import dtype_bytes

Kind = Literal["matmul", "conv", "elementwise", "reduction", "gather", "scan", "layout"]
Role = Literal["input", "weight", "value"]

KINDS: Final[tuple[str, ...]] = get_args(Kind)
ANCHORS: Final = frozenset({"matmul", "conv"})


class GraphError(AcceleratorError):
    """A graph or a shape the model cannot make sense of."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """Named dimensions and an element type; `role` tells weights and inputs from what operators compute."""

    name: str
    dims: tuple[str, ...]
    dtype: str
    role: Role = "value"


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator.

    inputs          tensor names; of a matmul or conv exactly two, the second one holds the weights or right side
    reduced         contracted dimensions of a matmul or conv, the row of a reduction, the serial ones of a scan
    flops_per_point arithmetic per point of the loop nest (2 for a multiply-add)
    cost_class      which measured efficiency of vector operators applies ("elementwise", "softmax", "norm", …)
    kernel, stride  of a convolution, in both spatial dimensions
    is_view         a layout change that moves no byte and needs no kernel
    online          a reduction that can be finished from partial rows (softmax inside attention)
    causal          a mask that hides later keys, so that a kernel holding the scores can skip them
    """

    name: str
    kind: Kind
    inputs: tuple[str, ...]
    output: str
    reduced: tuple[str, ...] = ()
    flops_per_point: float = 1.0
    cost_class: str = "elementwise"
    kernel: int = 1
    stride: int = 1
    is_view: bool = False
    online: bool = False
    causal: bool = False


@dataclass(frozen=True, eq=False)
class Graph:
    """Operators in topological order, checked when built. Compared by identity: what is derived from it is kept.

    Raises GraphError naming the operator and the dimension at fault.
    """

    name: str
    sizes: Mapping[str, int]
    tensors: Mapping[str, Tensor]
    operators: tuple[Operator, ...]

    def __post_init__(self) -> None:
        _check_sizes(self)
        made: set[str] = set()
        names: set[str] = set()
        for op in self.operators:
            if op.name in names:
                raise GraphError(f"operator {op.name}", "is named twice")
            names.add(op.name)
            _check_operator(self, op, made)
            made.add(op.output)

    @cached_property
    def producer(self) -> dict[str, int]:
        """Index of the operator that computes each value."""
        return {op.output: i for i, op in enumerate(self.operators)}

    @cached_property
    def consumers(self) -> dict[str, tuple[int, ...]]:
        """Indices of the operators that read each tensor."""
        found: dict[str, list[int]] = {name: [] for name in self.tensors}
        for i, op in enumerate(self.operators):
            for name in dict.fromkeys(op.inputs):
                found[name].append(i)
        return {name: tuple(users) for name, users in found.items()}

    @cached_property
    def predecessors(self) -> tuple[int, ...]:
        """Per operator, the bitmask of the operators it reads from."""
        masks = []
        for op in self.operators:
            mask = 0
            for name in op.inputs:
                if name in self.producer:
                    mask |= 1 << self.producer[name]
            masks.append(mask)
        return tuple(masks)

    @cached_property
    def _loops(self) -> dict[str, tuple[str, ...]]:
        return {op.name: tuple(dict.fromkeys(self.tensors[op.output].dims + op.reduced)) for op in self.operators}

    def loops(self, op: Operator) -> tuple[str, ...]:
        """The loop nest of `op`: the output's dimensions, then the reduced ones it does not keep."""
        return self._loops[op.name]

    @cached_property
    def _points(self) -> dict[tuple[str, ...], int]:
        return {}

    def points(self, dims: Sequence[str]) -> int:
        """Product of the sizes of `dims`."""
        key = tuple(dims)
        known = self._points.get(key)
        if known is None:
            known = self._points[key] = math.prod(self.sizes[d] for d in key)
        return known

    def tensor_bytes(self, name: str) -> float:
        """Bytes of a whole tensor."""
        tensor = self.tensors[name]
        return self.points(tensor.dims) * dtype_bytes(tensor.dtype)

    def read_bytes(self, op: Operator, name: str) -> float:
        """Bytes `op` reads of one of its inputs: all of it, or of a gathered table only the rows asked for."""
        if op.kind == "gather" and name == op.inputs[0]:
            return self.tensor_bytes(op.output)
        return self.tensor_bytes(name)

    def flops(self, op: Operator) -> float:
        """Arithmetic of one operator, once."""
        return self.points(self.loops(op)) * op.flops_per_point

    def op_bytes(self, op: Operator) -> float:
        """Bytes read and written when `op` runs alone."""
        if op.is_view:
            return 0.0
        read = sum(self.read_bytes(op, name) for name in dict.fromkeys(op.inputs))
        return read + self.tensor_bytes(op.output)

    @property
    def total_flops(self) -> float:
        """Arithmetic of the whole block."""
        return sum(self.flops(op) for op in self.operators)

    @cached_property
    def results(self) -> tuple[str, ...]:
        """What the block returns: values that nobody in it reads."""
        return tuple(op.output for op in self.operators if not self.consumers[op.output])

    @property
    def compulsory_bytes(self) -> float:
        """Bytes no plan can avoid: every input and weight read once, every result written once."""
        read = 0.0
        for name, tensor in self.tensors.items():
            if tensor.role != "value" and self.consumers[name]:
                read += max(self.read_bytes(self.operators[i], name) for i in self.consumers[name])
        return read + sum(self.tensor_bytes(name) for name in self.results)


def matmul_shape(graph: Graph, op: Operator) -> tuple[int, int, int, int]:
    """(batch, m, n, k) of a matmul or of a conv as an implicit matrix product.

    A dimension of the output that both sides have is batch; of the left side only, m; of the right side only, n.
    """
    out = graph.tensors[op.output].dims
    left = set(graph.tensors[op.inputs[0]].dims)
    right = set(graph.tensors[op.inputs[1]].dims)
    if op.kind == "conv":
        n_dims = [d for d in out if d in right]
        m_dims = [d for d in out if d not in right]
        return 1, graph.points(m_dims), graph.points(n_dims), graph.points(op.reduced)
    batch = [d for d in out if d in left and d in right]
    m_dims = [d for d in out if d in left and d not in right]
    n_dims = [d for d in out if d in right and d not in left]
    return graph.points(batch), graph.points(m_dims), graph.points(n_dims), graph.points(op.reduced)


def _check_sizes(graph: Graph) -> None:
    for dim, size in graph.sizes.items():
        if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= 1 << 40:
            raise GraphError(f"graph {graph.name}, dimension {dim}", f"size {size!r} is not a whole number from 1 up")
    if not graph.operators:
        raise GraphError(f"graph {graph.name}", "has no operators")
    for tensor in graph.tensors.values():
        dtype_bytes(tensor.dtype)
        for dim in tensor.dims:
            if dim not in graph.sizes:
                raise GraphError(f"tensor {tensor.name}", f"dimension {dim} has no size")


def _check_operator(graph: Graph, op: Operator, made: set[str]) -> None:
    where = f"operator {op.name}"
    if op.kind not in KINDS:
        raise GraphError(where, f"kind {op.kind!r} is not known", f"one of {', '.join(KINDS)}")
    for name in (*op.inputs, op.output):
        if name not in graph.tensors:
            raise GraphError(where, f"tensor {name} does not exist")
    for name in op.inputs:
        if graph.tensors[name].role == "value" and name not in made:
            raise GraphError(where, f"reads {name} before any operator computes it")
    if graph.tensors[op.output].role != "value" or op.output in made:
        raise GraphError(where, f"writes {op.output}, which is an input or written twice")
    for dim in op.reduced:
        if dim not in graph.sizes:
            raise GraphError(where, f"dimension {dim} has no size")
    _check_dims(graph, op, where)


def _check_dims(graph: Graph, op: Operator, where: str) -> None:
    out = set(graph.tensors[op.output].dims)
    read = set().union(*(graph.tensors[name].dims for name in op.inputs)) if op.inputs else set()
    if op.kind in ANCHORS and len(op.inputs) != 2:
        raise GraphError(where, f"needs two inputs and has {len(op.inputs)}")
    if op.kind == "matmul":
        left, right = (set(graph.tensors[name].dims) for name in op.inputs)
        for dim in op.reduced:
            if dim not in left or dim not in right:
                raise GraphError(where, f"contracted dimension {dim} is not in both inputs")
    if op.kind in ("matmul", "elementwise", "reduction", "scan"):
        for dim in sorted(read - out - set(op.reduced)):
            raise GraphError(where, f"dimension {dim} of its inputs is neither kept nor reduced")
        for dim in sorted(out - read):
            raise GraphError(where, f"dimension {dim} of its output is in none of its inputs")
    if op.kind == "reduction":
        for dim in op.reduced:
            if dim not in read:
                raise GraphError(where, f"row dimension {dim} is not in its input")
        if not op.reduced:
            raise GraphError(where, "reduces no dimension")
