"""Values between recovered operators: who computed what an operator reads, told from sizes alone."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from fusetui.accelerator.graph import Graph, Operator, Role, Tensor
from fusetui.analysis.recover.shapes import Operand, Shape

Dims = tuple[str, ...]
NO_NAMES: Final[Dims] = ()


_MOST_PARTS: Final = 4  # of one tensor that a split leaves: queries, keys, values and a gate


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor of the graph. `dims` has a name per size, "" for sizes of 1; NO_NAMES when it has dims of its own."""

    name: str
    shape: Shape
    dims: Dims
    residual: bool


class Flow:
    """The graph so far, and which of its values a later operator can be reading.

    A value is read by the operator whose operand has its shape, else as many elements, the newest unread one first. Of
    what views were taken of, parts are found too. A reader that orders or splits dimensions otherwise gets a view.
    """

    def __init__(self, dtype: str) -> None:
        self._dtype = dtype
        self._sizes: dict[str, int] = {}
        self._tensors: dict[str, Tensor] = {}
        self.operators: list[Operator] = []
        self._values: list[Value] = []
        self._unread: set[str] = set()
        self._viewed: set[str] = set()
        self._counts: dict[str, int] = {}

    def graph(self, name: str) -> Graph:
        """What was collected, checked. Raises GraphError."""
        return Graph(name, self._sizes, self._tensors, tuple(self.operators))

    @property
    def work(self) -> int:
        """Operators that are no views."""
        return sum(not op.is_view for op in self.operators)

    def fresh(self, label: str) -> str:
        """`label`, `label.2`, …"""
        self._counts[label] = count = self._counts.get(label, 0) + 1
        return label if count == 1 else f"{label}.{count}"

    def name_dims(self, shape: Sequence[int], taken: Collection[str] = ()) -> Dims:
        """A name per size, none of `taken` and none twice; "" for a size of 1."""
        used = set(taken)
        names = []
        for size in shape:
            name, turn = ("", 0) if size == 1 else (f"n{size}", 1)
            while name and name in used:
                turn += 1
                name = f"n{size}{chr(96 + turn)}" if turn <= 26 else f"n{size}.{turn}"
            if name:
                used.add(name)
                self._sizes[name] = size
            names.append(name)
        return tuple(names)

    def find(self, operand: Operand, *, reread: bool, without: Collection[str] = ()) -> Value | None:
        """The value an operand is; `reread`: also one that was read before, as a residual or a second branch is."""
        known = [v for v in reversed(self._values) if v.name not in without]
        same = [v for v in known if v.shape == operand.shape]
        whole = [v for v in known if math.prod(v.shape) == operand.points]
        parts = [v for v in known if v.name in self._viewed and _holds(v.shape, operand)]
        unread = [v for v in (*same, *whole, *parts) if v.name in self._unread]
        before = [v for v in same if v.residual] if reread else []
        return next(iter((*unread, *before, *parts, *(same if reread else ()))), None)

    def view_taken(self, operand: Operand) -> None:
        """A view was taken of the value that has this shape."""
        value = next((v for v in reversed(self._values) if v.shape == operand.shape), None)
        if value is not None:
            self._viewed.add(value.name)

    def bind(self, value: Value | None, operand: Operand, dims: Sequence[str], role: Role = "input") -> str:
        """The tensor an operator reads as `dims`: the value, a view of it, or a new input when there is none."""
        named = tuple(name for name in dims if name)
        if value is None:
            name = self.fresh(role)
            self._tensors[name] = Tensor(name, named, operand.dtype or self._dtype, role)
            parallel = tuple(dims) if len(dims) == len(operand.shape) else NO_NAMES
            if role == "input":
                self._values.append(Value(name, operand.shape, parallel, residual=True))
            return name
        self._unread.discard(value.name)
        if self._tensors[value.name].dims == named:
            return value.name
        view = self.fresh("view")
        self._tensors[view] = Tensor(view, named, self._tensors[value.name].dtype)
        self.operators.append(
            Operator(view, "layout", (value.name,), view, flops_per_point=0.0, cost_class="copy", is_view=True)
        )
        return view

    def dims_of(self, value: Value | None, operand: Operand) -> Dims:
        """How an operator that takes its operand as it comes sees it."""
        if value is not None and value.shape == operand.shape and value.dims:
            return value.dims
        return self.name_dims(operand.shape)

    def append(self, op: Operator, dims: Sequence[str]) -> None:
        """An operator whose result nobody looks for."""
        self._tensors[op.output] = Tensor(op.output, tuple(name for name in dims if name), self._dtype)
        self.operators.append(op)

    def add(
        self, op: Operator, shape: Shape, dims: Sequence[str], *, residual: bool = False, viewed: bool = False
    ) -> Value:
        """Append an operator whose result has these sizes, named by `dims`; later operators may read it."""
        self.append(op, dims)
        value = Value(op.output, shape, tuple(dims) if len(dims) == len(shape) else NO_NAMES, residual)
        self._values.append(value)
        self._unread.add(value.name)
        if viewed or not value.dims:
            self._viewed.add(value.name)
        return value


def _holds(shape: Shape, operand: Operand) -> bool:
    """Whether a view of a tensor can be `operand`: all of its elements, or one of a few equal parts."""
    points = math.prod(shape)
    return points % operand.points == 0 and points // operand.points <= _MOST_PARTS
