"""What one kernel of fused operators asks of a device, before any rate: bytes, arithmetic and live values.

Arithmetic counts what fusion repeats: a value computed for fewer points than its reader needs is computed again for
every one of them, an operand's operators again for every tile that loads it, a convolution's again on its halo.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from fusetui.accelerator.fusion import bits
from fusetui.accelerator.graph import ANCHORS, Graph, matmul_shape
from fusetui.accelerator.group import Group

TILE_SIDE: Final = 128  # of a matrix product, for how often its operands are loaded
HALO_SIDE: Final = 11  # of a convolution's spatial tile: about 128 output points


@dataclass(frozen=True, slots=True)
class Work:
    """Bytes and operations of one kernel.

    read_bytes, write_bytes  tensors that cross its border, each once
    served_bytes             what its operators read, wherever from; without what tiles of a matrix product load
    vector_flops             arithmetic outside matrix units, repeats included
    repeated_flops           the part of it that exists only because of fusion
    live                     most values held per point at once
    row_elements             elements of the row that must be whole on chip, 1 where there is none
    row_values               of the live values, how many span the row
    """

    read_bytes: float
    write_bytes: float
    served_bytes: float
    vector_flops: float
    repeated_flops: float
    live: int
    row_elements: int
    row_values: int
    cost_class: str


class Workload:
    """Works out groups of one graph; sizes of operators are looked up once."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._known: dict[tuple[int, str], Work] = {}
        self._flops = [graph.flops(op) for op in graph.operators]
        self.sizes = {name: graph.tensor_bytes(name) for name in graph.tensors}
        self._reads = [
            {name: graph.read_bytes(op, name) for name in dict.fromkeys(op.inputs)} for op in graph.operators
        ]

    @cached_property
    def shapes(self) -> dict[int, tuple[int, int, int, int]]:
        """(batch, m, n, k) of every matrix product, by operator index."""
        operators = enumerate(self.graph.operators)
        return {i: matmul_shape(self.graph, op) for i, op in operators if op.kind in ANCHORS}

    @cached_property
    def _readers(self) -> list[tuple[int, ...]]:
        return [self.graph.consumers[op.output] for op in self.graph.operators]

    def work(self, group: Group) -> Work:
        """Bytes, arithmetic and live values of `group` in one kernel."""
        key = (group.mask, group.pattern)
        if key not in self._known:
            self._known[key] = self._work(group)
        return self._known[key]

    def _work(self, group: Group) -> Work:
        read: dict[str, float] = dict.fromkeys(group.inputs, 0.0)
        served = 0.0
        for i in bits(group.mask):
            for name, size in self._reads[i].items():
                served += size * self._serves(i, name, group)
                if name in read:
                    read[name] = max(read[name], size)
        plain = sum(self._flops[i] for i in (*group.before, *group.after))
        flops = plain + self._repeats(group)
        live, row_values = self._live(group)
        row = self.graph.points(group.row) if group.row and not self._is_anchored(group) else 1
        return Work(
            read_bytes=sum(read.values()),
            write_bytes=sum(self.sizes[name] for name in group.outputs),
            served_bytes=served,
            vector_flops=flops,
            repeated_flops=flops - plain,
            live=live,
            row_elements=row,
            row_values=row_values,
            cost_class=self._cost_class(group),
        )

    def _serves(self, i: int, operand: str, group: Group) -> float:
        """Times an operator is served each point of an operand; of a matrix product its price knows better."""
        if i not in group.anchors or group.pattern == "scan":
            return 1.0
        return self.loads(i, operand, group) if group.pattern == "attention" else 0.0

    def _is_anchored(self, group: Group) -> bool:
        return group.pattern in ("matmul", "attention")

    def _repeats(self, group: Group) -> float:
        factor: dict[int, float] = {}
        for i in reversed(bits(group.mask)):
            if i in group.anchors:
                factor[i] = 1.0
                continue
            inside = [j for j in self._readers[i] if group.mask >> j & 1]
            factor[i] = max([1.0, *(factor[j] * self._ratio(i, j, group) for j in inside)])
        return sum((factor[i] - 1.0) * self._flops[i] for i in (*group.before, *group.after))

    def _ratio(self, made: int, reader: int, group: Group) -> float:
        """How many times `reader` needs each point of what `made` computes."""
        graph = self.graph
        source, target = graph.operators[made], graph.operators[reader]
        if reader in group.anchors:
            return 1.0 if target.kind == "scan" else self.loads(reader, source.output, group)
        own = graph.points([d for d in graph.tensors[source.output].dims if d not in group.row])
        space = graph.points([d for d in graph.loops(target) if d not in group.row])
        return max(1.0, space / own)

    def loads(self, anchor: int, operand: str, group: Group) -> float:
        """How many tiles of a matrix product load each point of an operand."""
        op = self.graph.operators[anchor]
        _, m, n, _ = self.shapes[anchor]
        if group.pattern == "attention":
            # Queries and scores stay with their tile; keys and values are loaded by every tile of queries.
            rows = self.shapes[group.anchors[0]][1]
            return 1.0 if operand == op.inputs[0] else float(math.ceil(rows / TILE_SIDE))
        side = n if operand == op.inputs[0] else m
        halo = ((HALO_SIDE + op.kernel - 1) / HALO_SIDE) ** 2 if operand == op.inputs[0] else 1.0
        return math.ceil(side / TILE_SIDE) * halo

    def _live(self, group: Group) -> tuple[int, int]:
        graph, held = self.graph, set[str]()
        most = most_row = 0
        row = set(group.row)
        last = {
            name: max(j for j in graph.consumers[name] if group.mask >> j & 1)
            for name in (*group.inner, *group.outputs)
            if any(group.mask >> j & 1 for j in graph.consumers[name])
        }
        for i in bits(group.mask):
            op = graph.operators[i]
            now = held.union(op.inputs)
            most = max(most, len(now))
            if row:
                most_row = max(most_row, sum(1 for name in now if row.issubset(graph.tensors[name].dims)))
            held = {name for name in held | {op.output} if last.get(name, -1) > i}
        return most, most_row

    def _cost_class(self, group: Group) -> str:
        classes = [self.graph.operators[i].cost_class for i in bits(group.mask)]
        for kind in ("scan", "gather", "softmax", "norm", "layernorm", "reduce", "rope", "gated"):
            if kind in classes:
                return kind
        return classes[0] if len(set(classes)) == 1 else "elementwise"
