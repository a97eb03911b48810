"""Which sets of operators one kernel can compute, and why the others cannot.

Legal are: any single operator; vector operators whose reductions share one row; one matrix product with what is
applied to its operands and its result; a scan with its neighbours; and matrix product - softmax - matrix product
with the scores never leaving the chip.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

from fusetui.accelerator.fusion import bits
from fusetui.accelerator.graph import Graph

Pattern = Literal["view", "vector", "scan", "matmul", "attention", "forced"]

# How daring a group is; a policy takes groups up to its own reach.
ALONE: Final = 0
VECTOR: Final = 1  # what compilers do around library kernels
ANCHORED: Final = 2  # operands and results of a matrix product, attention in one kernel
ROW_ANCHORED: Final = 3  # a row reduction inside a matrix product's kernel

_POINTWISE: Final = frozenset({"elementwise", "layout"})


@dataclass(frozen=True, slots=True)
class Group:
    """One kernel's operators.

    anchors           its matrix products or scan, as operator indices
    before, after     operators applied to the anchor's operands, and everything else beside the anchor
    inputs, outputs   tensors read from and written to memory, each counted once
    inner             values that never leave the chip
    row               dimensions that must be whole on chip
    """

    mask: int
    pattern: Pattern
    reach: int
    anchors: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    inner: tuple[str, ...]
    row: tuple[str, ...]


class Rules:
    """Legality of groups of one graph. Structure only: whether a group fits a device is its price's matter."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._kinds = [op.kind for op in graph.operators]
        self._kind_mask = {
            kind: sum(1 << i for i, k in enumerate(self._kinds) if k == kind)
            for kind in ("matmul", "conv", "scan", "reduction", "gather", "elementwise", "layout")
        }
        self._anchor_mask = self._kind_mask["matmul"] | self._kind_mask["conv"]
        # What may_grow asks about; sets with the same of them share its answer.
        kinds = ("scan", "reduction", "gather")
        self._deciding = self._anchor_mask | sum(self._kind_mask[kind] for kind in kinds)
        self._grows: dict[int, bool] = {}

    @cached_property
    def successors(self) -> tuple[int, ...]:
        """Per operator, the bitmask of the operators that read from it."""
        masks = [0] * len(self._kinds)
        for i, preds in enumerate(self.graph.predecessors):
            for j in bits(preds):
                masks[j] |= 1 << i
        return tuple(masks)

    @cached_property
    def attention_pairs(self) -> frozenset[int]:
        """Bitmasks of two matrix products joined by point by point operators and one online softmax."""
        pairs = set()
        for first in bits(self._kind_mask["matmul"]):
            frontier, seen = [(first, False)], set()
            while frontier:
                i, reduced = frontier.pop()
                for j in bits(self.successors[i]):
                    kind = self._kinds[j]
                    if kind in _POINTWISE and (j, reduced) not in seen:
                        seen.add((j, reduced))
                        frontier.append((j, reduced))
                    elif kind == "reduction" and not reduced and self.graph.operators[j].online:
                        frontier.append((j, True))
                    elif kind == "matmul" and reduced:
                        pairs.add(1 << first | 1 << j)
        return frozenset(pairs)

    def may_grow(self, mask: int) -> bool:
        """False when no legal group contains `mask`."""
        deciding = mask & self._deciding
        known = self._grows.get(deciding)
        if known is None:
            known = self._grows[deciding] = self._may_grow(deciding)
        return known

    def _may_grow(self, mask: int) -> bool:
        anchors = mask & self._anchor_mask
        scans = mask & self._kind_mask["scan"]
        if scans and (anchors or scans & (scans - 1) or mask & self._kind_mask["reduction"]):
            return False
        if anchors & (anchors - 1) and anchors not in self.attention_pairs:
            return False
        if anchors and mask & self._kind_mask["gather"]:
            return False
        reductions = bits(mask & self._kind_mask["reduction"])
        return len({self.graph.operators[i].reduced for i in reductions}) <= 1

    def group(self, mask: int) -> Group | str:
        """The group of a convex connected set, or the reason why no kernel computes it."""
        anchors = bits(mask & (self._anchor_mask | self._kind_mask["scan"]))
        if mask & (mask - 1) == 0:
            return self._alone(mask, anchors)
        if not self.may_grow(mask):
            return "more than one matrix product, scan or kind of row in one kernel"
        if reason := self._gathers_inner(mask):
            return reason
        if len(anchors) == 2:
            return self._attention(mask, anchors)
        if anchors:
            return self._anchored(mask, anchors[0])
        row = self._row(bits(mask))
        return self._make(mask, "vector", VECTOR, (), (), bits(mask), row)

    def forced(self, mask: int) -> Group:
        """Any set as one kernel, legal or not: to show what it would cost."""
        legal = self.group(mask)
        if isinstance(legal, Group):
            return legal
        anchors = bits(mask & (self._anchor_mask | self._kind_mask["scan"]))
        rest = tuple(i for i in bits(mask) if i not in anchors)
        return self._make(mask, "forced", ROW_ANCHORED + 1, anchors, (), rest, self._row(rest))

    def _alone(self, mask: int, anchors: tuple[int, ...]) -> Group:
        op = self.graph.operators[bits(mask)[0]]
        if anchors:
            return self._make(mask, "scan" if op.kind == "scan" else "matmul", ALONE, anchors, (), (), ())
        return self._make(mask, "view" if op.is_view else "vector", ALONE, (), (), bits(mask), self._row(bits(mask)))

    def _gathers_inner(self, mask: int) -> str:
        for i in bits(mask & self._kind_mask["gather"]):
            if self.graph.predecessors[i] & mask:
                return f"{self.graph.operators[i].name} gathers from a table that is not complete yet"
        return ""

    def _row(self, indices: Iterable[int]) -> tuple[str, ...]:
        rows: dict[str, None] = {}
        for i in indices:
            op = self.graph.operators[i]
            if op.kind == "reduction":
                rows |= dict.fromkeys(op.reduced)
        return tuple(rows)

    def _closure(self, start: int, mask: int, step: tuple[int, ...]) -> int:
        reached, frontier = 0, step[start] & mask
        while frontier:
            reached |= frontier
            following = 0
            for i in bits(frontier):
                following |= step[i]
            frontier = following & mask & ~reached
        return reached

    def _anchored(self, mask: int, anchor: int) -> Group | str:
        graph, op = self.graph, self.graph.operators[anchor]
        before = self._closure(anchor, mask, graph.predecessors)
        after = mask & ~before & ~(1 << anchor)
        for i in bits(before):
            if self.successors[i] & after:
                return f"{graph.operators[i].name} is needed both before and after {op.name}"
        out = graph.tensors[op.output].dims
        covered = set(out)
        for i in bits(after):
            dims = graph.tensors[graph.operators[i].output].dims
            if graph.operators[i].kind == "layout":
                covered |= set(dims)
            elif not covered.issuperset(dims):
                return f"{graph.operators[i].name} would repeat {op.name} for every broadcast point"
        row_before, row_after = self._row(bits(before)), self._row(bits(after))
        if op.kind == "scan":
            return self._make(mask, "scan", VECTOR, (anchor,), bits(before), bits(after), ())
        right = set(graph.tensors[op.inputs[1]].dims) - set(graph.tensors[op.inputs[0]].dims)
        if row_after and set(row_after) != {d for d in out if d in right}:
            return f"the row of its reduction is not the row that {op.name} computes"
        if row_before and set(row_before) != set(op.reduced):
            return f"the row of its reduction is not the row that {op.name} reads"
        reach = ROW_ANCHORED if row_before or row_after else ANCHORED
        return self._make(mask, "matmul", reach, (anchor,), bits(before), bits(after), row_before + row_after)

    def _attention(self, mask: int, anchors: tuple[int, ...]) -> Group | str:
        graph = self.graph
        first, second = anchors
        softmax = bits(mask & self._kind_mask["reduction"])
        if len(softmax) != 1 or not graph.operators[softmax[0]].online:
            return "between two matrix products only one online softmax can stay on chip"
        inside = self._closure(first, mask, self.successors) & self._closure(second, mask, graph.predecessors)
        if not inside >> softmax[0] & 1 or graph.operators[softmax[0]].reduced != graph.operators[second].reduced:
            return "the softmax is not between the two matrix products"
        core = inside | 1 << first
        for i in bits(core):
            if self.successors[i] & ~(core | 1 << second):
                return f"{graph.operators[i].name} is needed outside and would have to be written in full"
        upstream = self._closure(first, mask, graph.predecessors) | self._closure(second, mask, graph.predecessors)
        before = upstream & ~core
        after = mask & ~before & ~(1 << first) & ~(1 << second)
        for i in bits(before):
            if self.successors[i] & after & ~inside:
                return f"{graph.operators[i].name} is needed both before and after attention"
        return self._make(mask, "attention", ANCHORED, anchors, bits(before), bits(after), ())

    def _make(
        self,
        mask: int,
        pattern: Pattern,
        reach: int,
        anchors: tuple[int, ...],
        before: tuple[int, ...],
        after: tuple[int, ...],
        row: tuple[str, ...],
    ) -> Group:
        graph = self.graph
        producer, successors, given = graph.producer, self.successors, len(self._kinds)
        inputs: dict[str, None] = {}
        outputs: list[str] = []
        inner: list[str] = []
        for i in bits(mask):
            op = graph.operators[i]
            for name in op.inputs:
                if not mask >> producer.get(name, given) & 1:
                    inputs[name] = None
            users = successors[i]
            (inner if users and not users & ~mask else outputs).append(op.output)
        return Group(mask, pattern, reach, anchors, before, after, tuple(inputs), tuple(outputs), tuple(inner), row)
