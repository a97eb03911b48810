"""Writing operators down whose tensors have positions instead of names: dimensions are joined as operators need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fusetui.accelerator.graph import Graph, GraphError, Kind, Operator, Role, Tensor
from fusetui.accelerator.onnx_dims import Axis, Dims

_NAME_CAP: Final = 80


def printable(text: str) -> str:
    """A name from a file as it may be shown: no control characters, the end of a long one."""
    clean = "".join(c if c.isprintable() else "�" for c in text)
    return clean if len(clean) <= _NAME_CAP else f"…{clean[1 - _NAME_CAP :]}"


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    kind: Kind
    inputs: tuple[str, ...]
    output: str
    reduced: tuple[Axis, ...]
    flops: float
    cost_class: str
    kernel: int
    stride: int
    is_view: bool
    online: bool


class Writer:
    """Collects tensors and operators; `graph()` names the dimensions and checks."""

    def __init__(self, where: str) -> None:
        self.dims = Dims()
        self._where = where
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._tensors: dict[str, tuple[str, Role]] = {}
        self._entries: list[_Entry] = []
        self._names: dict[str, int] = {}

    def has(self, tensor: str) -> bool:
        """Whether the tensor was made or given."""
        return tensor in self._tensors

    def role(self, tensor: str) -> Role:
        """Input, weight or value."""
        return self._tensors[tensor][1]

    def shape(self, tensor: str) -> tuple[int, ...]:
        """Sizes by position."""
        return self._shapes[tensor]

    def give(self, tensor: str, shape: Sequence[int], dtype: str, role: Role = "value") -> str:
        """A tensor with axes of its own."""
        self.dims.place(tensor, [self.dims.fresh(size) for size in shape])
        return self._keep(tensor, shape, dtype, role)

    def alias(self, tensor: str) -> str:
        """The same tensor under new axes: a view."""
        return self.view(tensor, self._shapes[tensor])

    def view(self, tensor: str, shape: Sequence[int]) -> str:
        """The same elements as another shape, under new axes."""
        copy = f"{tensor}.view{len(self._entries)}"
        self.give(copy, shape, self._tensors[tensor][0])
        self.write("layout", f"{tensor}.view", (tensor,), copy, flops=0.0, cost_class="copy", is_view=True)
        return copy

    def result(self, tensor: str, axes: Sequence[Axis], shape: Sequence[int], dtype: str) -> bool:
        """A tensor with these axes; False when two of them are the same dimension."""
        if not self.dims.place(tensor, axes):
            return False
        self._keep(tensor, shape, dtype, "value")
        return True

    def broadcast(
        self, inputs: Sequence[str], shape: Sequence[int], axis: int | None = None
    ) -> tuple[tuple[str, ...], tuple[Axis, ...]]:
        """Inputs (views of them where they must be) and the axes of a point by point result.

        axis  where one-dimensional operands lie (channels); None: at the end, as broadcasting has it
        """
        out: list[Axis] = [None] * len(shape)
        used = []
        for name in sorted(inputs, key=lambda n: -len(self._shapes[n])):
            fitted, operand = self._fit(name, out, shape, axis), name
            if fitted is None:
                operand = self.alias(name)
                fitted = self._fit(operand, out, shape, axis)
            if fitted is None:
                raise GraphError(self._where, f"{name} does not broadcast to {list(shape)[:8]}")
            out = fitted
            used.append(operand)
        if any(a is None and size > 1 for a, size in zip(out, shape, strict=True)):
            raise GraphError(self._where, f"nothing of shape {list(shape)[:8]} is read to make a result of that shape")
        return tuple(used), tuple(out)

    def regrouped(self, source: str, shape: Sequence[int]) -> list[Axis]:
        """Axes of a reshape: those before the first and after the last change of size stay what they are."""
        before = [(size, a) for size, a in zip(self._shapes[source], self.dims.axes(source), strict=True) if size > 1]
        after = [size for size in shape if size > 1]
        head = 0
        while head < min(len(before), len(after)) and before[head][0] == after[head]:
            head += 1
        tail = 0
        while tail < min(len(before), len(after)) - head and before[-1 - tail][0] == after[-1 - tail]:
            tail += 1
        kept = [a for _, a in before]
        middle = [self.dims.fresh(size) for size in after[head : len(after) - tail]]
        axes = iter([*kept[:head], *middle, *kept[len(kept) - tail :]])
        return [None if size == 1 else next(axes) for size in shape]

    def moved(self, source: str | None, shape: Sequence[int]) -> list[Axis]:
        """Axes of a copy: those of the source where rank and size are the same, else new ones."""
        axes = self.dims.axes(source) if source is not None else ()
        if source is None or len(axes) != len(shape):
            return [self.dims.fresh(size) for size in shape]
        kept = zip(axes, self._shapes[source], shape, strict=True)
        return [a if old == new else self.dims.fresh(new) for a, old, new in kept]

    def read_names(self) -> set[str]:
        """Tensors that an operator reads."""
        return {name for e in self._entries for name in e.inputs}

    def write(
        self,
        kind: Kind,
        name: str,
        inputs: Sequence[str],
        output: str,
        *,
        reduced: Sequence[Axis] = (),
        flops: float = 1.0,
        cost_class: str = "elementwise",
        kernel: int = 1,
        stride: int = 1,
        is_view: bool = False,
        online: bool = False,
    ) -> None:
        """One operator; its output must have been given its axes."""
        kept = tuple(a for a in reduced if a is not None)
        unique = self._free(name)
        self._entries.append(
            _Entry(unique, kind, tuple(inputs), output, kept, flops, cost_class, kernel, stride, is_view, online)
        )

    def graph(self, name: str) -> Graph:
        """The finished graph; only tensors that an operator touches are in it."""
        used = {t for e in self._entries for t in (*e.inputs, e.output)}
        tensors = {
            t: Tensor(t, self.dims.named(self.dims.axes(t)), dtype, role)
            for t, (dtype, role) in self._tensors.items()
            if t in used
        }
        operators = tuple(
            Operator(
                e.name, e.kind, e.inputs, e.output, tuple(dict.fromkeys(self.dims.named(e.reduced))), e.flops,
                e.cost_class, e.kernel, e.stride, e.is_view, e.online,
            )
            for e in self._entries
        )  # fmt: skip
        return Graph(name, self.dims.sizes(), tensors, operators)

    def _fit(self, name: str, out: Sequence[Axis], shape: Sequence[int], axis: int | None) -> list[Axis] | None:
        """`out` with the axes of one more operand; None where it does not fit."""
        fitted, axes = list(out), self.dims.axes(name)
        at = axis if axis is not None and len(axes) == 1 else len(shape) - len(axes)
        if at < 0 or at + len(axes) > len(shape):
            return None
        for i, own in enumerate(axes, start=at):
            if own is None:
                continue
            others = [self.dims.root(a) for j, a in enumerate(fitted) if a is not None and j != i]
            if self.dims.root(own) in others or self.dims.size(own) != shape[i]:
                return None
            if fitted[i] is None:
                fitted[i] = own
            elif not self.dims.join(fitted[i], own):
                return None
        return fitted

    def _keep(self, tensor: str, shape: Sequence[int], dtype: str, role: Role) -> str:
        self._shapes[tensor] = tuple(shape)
        self._tensors[tensor] = (dtype, role)
        return tensor

    def _free(self, name: str) -> str:
        name = printable(name)
        while name in self._names:
            self._names[name] += 1
            name = f"{name} #{self._names[name]}"
        self._names[name] = 1
        return name
