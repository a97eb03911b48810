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
    rows                     independent rows of a row operator, 0 where there is none
    shape                    of its one matrix product, (batch, m, n, k); None where there is not exactly one
    whole_rows               whether a tile of that product must hold whole rows of its output
    row_again_bytes          what its tiles read again of an operand, from the cache, to reduce the rows of it
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
    rows: int
    shape: tuple[int, int, int, int] | None
    whole_rows: bool
    row_again_bytes: float


# Of several classes in one kernel, the first of these sets its pace.
_SLOWEST: Final = ("scan", "gather", "softmax", "norm", "layernorm", "reduce", "rope", "gated")


@dataclass(frozen=True, slots=True)
class _Spans:
    """Which values hold whole rows: of operators a bitmask, of what the block is given a count per reader."""

    made: int
    given: tuple[int, ...]


class Workload:
    """Works out groups of one graph; what does not depend on the group is looked up once."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._known: dict[tuple[int, str], Work] = {}
        self._ratios: dict[tuple[int, int, tuple[str, ...]], float] = {}
        self._spans: dict[tuple[str, ...], _Spans] = {}
        self._flops = [graph.flops(op) for op in graph.operators]
        self.sizes = {name: graph.tensor_bytes(name) for name in graph.tensors}
        self._reads = [
            {name: graph.read_bytes(op, name) for name in dict.fromkeys(op.inputs)} for op in graph.operators
        ]
        self._read_bytes = [sum(reads.values()) for reads in self._reads]
        self._readers = [graph.consumers[op.output] for op in graph.operators]
        self._reader_mask = [sum(1 << j for j in readers) for readers in self._readers]
        classes: dict[str, int] = {}
        for i, op in enumerate(graph.operators):
            classes[op.cost_class] = classes.get(op.cost_class, 0) | 1 << i
        self._classes = {kind: classes[kind] for kind in (*_SLOWEST, *classes) if kind in classes}

    @cached_property
    def shapes(self) -> dict[int, tuple[int, int, int, int]]:
        """(batch, m, n, k) of every matrix product, by operator index."""
        operators = enumerate(self.graph.operators)
        return {i: matmul_shape(self.graph, op) for i, op in operators if op.kind in ANCHORS}

    def work(self, group: Group) -> Work:
        """Bytes, arithmetic and live values of `group` in one kernel."""
        key = (group.mask, group.pattern)
        if key not in self._known:
            self._known[key] = self._work(group)
        return self._known[key]

    def _work(self, group: Group) -> Work:
        members, anchored = bits(group.mask), group.pattern in ("matmul", "attention")
        read: dict[str, float] = dict.fromkeys(group.inputs, 0.0)
        served = 0.0
        for i in members:
            if anchored and i in group.anchors:
                served += self._served_to(i, group)
            else:
                served += self._read_bytes[i]
            for name, size in self._reads[i].items():
                if name in read and size > read[name]:
                    read[name] = size
        product = group.anchors[0] if group.pattern == "matmul" else None
        plain = sum(self._flops[i] for i in (*group.before, *group.after))
        flops = plain + self._repeats(group)
        live, row_values = self._live(group)
        return Work(
            read_bytes=sum(read.values()),
            write_bytes=sum(self.sizes[name] for name in group.outputs),
            served_bytes=served,
            vector_flops=flops,
            repeated_flops=flops - plain,
            live=live,
            row_elements=self.graph.points(group.row) if group.row and not anchored else 1,
            row_values=row_values,
            cost_class=self._cost_class(group.mask),
            rows=self._rows(group) if group.row else 0,
            shape=None if product is None else self.shapes[product],
            whole_rows=product is not None and self._reduces(group.after),
            row_again_bytes=0.0 if product is None else self._row_again_bytes(product, group),
        )

    def _rows(self, group: Group) -> int:
        reducing = (op for i in bits(group.mask) if (op := self.graph.operators[i]).kind == "reduction")
        return self.graph.points([d for d in self.graph.loops(next(reducing)) if d not in group.row])

    def _reduces(self, members: tuple[int, ...]) -> bool:
        return any(self.graph.operators[i].kind == "reduction" for i in members)

    def _row_again_bytes(self, product: int, group: Group) -> float:
        if not self._reduces(group.before):
            return 0.0
        operand = self.graph.operators[product].inputs[0]
        return self.loads(product, operand, group) * self.graph.tensor_bytes(operand)

    def _served_to(self, anchor: int, group: Group) -> float:
        """Bytes that tiles of attention load; of a single matrix product its price knows better."""
        if group.pattern != "attention":
            return 0.0
        return sum(size * self.loads(anchor, name, group) for name, size in self._reads[anchor].items())

    def _repeats(self, group: Group) -> float:
        factor: dict[int, float] = {}
        for i in reversed(bits(group.mask)):
            times = 1.0
            if i not in group.anchors:
                for j in self._readers[i]:
                    if group.mask >> j & 1:
                        times = max(times, factor[j] * self._ratio(i, j, group))
            factor[i] = times
        return sum((factor[i] - 1.0) * self._flops[i] for i in (*group.before, *group.after))

    def _ratio(self, made: int, reader: int, group: Group) -> float:
        """How many times `reader` needs each point of what `made` computes."""
        graph = self.graph
        if reader in group.anchors:
            output = graph.operators[made].output
            return 1.0 if graph.operators[reader].kind == "scan" else self.loads(reader, output, group)
        key = (made, reader, group.row)
        known = self._ratios.get(key)
        if known is None:
            source, target = graph.operators[made], graph.operators[reader]
            own = graph.points([d for d in graph.tensors[source.output].dims if d not in group.row])
            space = graph.points([d for d in graph.loops(target) if d not in group.row])
            known = self._ratios[key] = max(1.0, space / own)
        return known

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
        """Most values held at once, and most of those that span the row."""
        most = self._most_held(group.mask, self._spanning(()))
        return most, self._most_held(group.mask, self._spanning(group.row)) if group.row else 0

    def _most_held(self, mask: int, counted: _Spans) -> int:
        """Most of the counted values that the operators of `mask`, in order, hold or read at once."""
        preds, most, held = self.graph.predecessors, 0, 0
        ending: dict[int, int] = {}
        for i in bits(mask):
            most = max(most, held + counted.given[i] + (preds[i] & ~mask & counted.made).bit_count())
            held -= ending.pop(i, 0)
            last = (self._reader_mask[i] & mask).bit_length() - 1
            if last > i and counted.made >> i & 1:
                ending[last] = ending.get(last, 0) + 1
                held += 1
        return most

    def _spanning(self, row: tuple[str, ...]) -> _Spans:
        """Values that have all dimensions of `row`."""
        if row not in self._spans:
            graph, needed = self.graph, set(row)
            names = {name for name, tensor in graph.tensors.items() if needed.issubset(tensor.dims)}
            made = sum(1 << i for i, op in enumerate(graph.operators) if op.output in names)
            given = (sum(name in names and name not in graph.producer for name in reads) for reads in self._reads)
            self._spans[row] = _Spans(made, tuple(given))
        return self._spans[row]

    def _cost_class(self, mask: int) -> str:
        found = [kind for kind, members in self._classes.items() if members & mask]
        return found[0] if len(found) == 1 or found[0] in _SLOWEST else "elementwise"
