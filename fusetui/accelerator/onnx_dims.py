"""Names for the axes of tensors that have only positions: axes that an operator runs over together become one.

Axes of size 1 have no dimension: nothing loops over them and broadcasting needs no rule. Two axes of one tensor are
never the same dimension, so a join that would make them so is refused, and the caller reads its operand through a
view of its own (the queries and keys of self-attention come from one sequence and are two loops).
"""

from __future__ import annotations

from collections.abc import Sequence

Axis = int | None


class Dims:
    """A union-find over axes, with the tensors that have each."""

    def __init__(self) -> None:
        self._parent: list[int] = []
        self._size: list[int] = []
        self._tensors: list[set[str]] = []
        self._axes: dict[str, tuple[Axis, ...]] = {}

    def fresh(self, size: int) -> Axis:
        """A new axis; None of size 1."""
        if size == 1:
            return None
        self._parent.append(len(self._parent))
        self._size.append(size)
        self._tensors.append(set())
        return len(self._parent) - 1

    def place(self, tensor: str, axes: Sequence[Axis]) -> bool:
        """Give `tensor` these axes; False, and nothing done, when two of them are the same dimension."""
        roots = [self.root(a) for a in axes if a is not None]
        if len(set(roots)) < len(roots):
            return False
        self._axes[tensor] = tuple(axes)
        for r in roots:
            self._tensors[r].add(tensor)
        return True

    def axes(self, tensor: str) -> tuple[Axis, ...]:
        """One axis per position."""
        return tuple(None if a is None else self.root(a) for a in self._axes[tensor])

    def root(self, axis: int) -> int:
        """What stands for all axes joined with this one."""
        while self._parent[axis] != axis:
            self._parent[axis] = self._parent[self._parent[axis]]
            axis = self._parent[axis]
        return axis

    def join(self, one: Axis, other: Axis) -> bool:
        """Make two axes one dimension; False where their sizes differ or a tensor has both."""
        if one is None or other is None:
            return one is other
        a, b = self.root(one), self.root(other)
        if a == b:
            return True
        if self._size[a] != self._size[b] or not self._tensors[a].isdisjoint(self._tensors[b]):
            return False
        if len(self._tensors[a]) < len(self._tensors[b]):
            a, b = b, a
        self._parent[b] = a
        self._tensors[a] |= self._tensors[b]
        return True

    def size(self, axis: int) -> int:
        """How many points it has."""
        return self._size[axis]

    def name(self, axis: int) -> str:
        """The dimension of a graph that this axis is."""
        return f"d{self.root(axis)}"

    def named(self, axes: Sequence[Axis]) -> tuple[str, ...]:
        """Names of all axes that have a dimension."""
        return tuple(self.name(a) for a in axes if a is not None)

    def sizes(self) -> dict[str, int]:
        """Size of every dimension."""
        return {f"d{i}": self._size[i] for i, parent in enumerate(self._parent) if parent == i}
