"""The StableHLO text of one block as a graph of the model, and IREE's dispatches by what they are rooted in."""

from __future__ import annotations

import csv
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from fusetui.accelerator.graph import Graph
from fusetui.accelerator.onnx_dims import Axis
from fusetui.accelerator.onnx_writer import Writer
from fusetui.accelerator.plan import Plan

_LINE = re.compile(r"%(\w+) = stablehlo\.(\w+)(.*)")
_POINTWISE = {"add", "subtract", "multiply", "divide", "maximum", "sqrt", "exponential", "tanh"}


@dataclass(frozen=True)
class _Op:
    output: str
    kind: str
    operands: tuple[str, ...]
    text: str
    shape: tuple[int, ...]


def _shape(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("x")[:-1])


def _numbers(pattern: str, text: str) -> list[int]:
    found = re.search(pattern, text)
    return [int(n) for n in found.group(1).split(",") if n.strip()] if found else []


def read_stablehlo(path: Path) -> Graph:
    """Every operation an operator; constants and broadcasts of them are none, nor is a broadcast, which loops need not
    be told of. A softmax (maximum, difference, exponential, sum, quotient over one row) is one operator, as IREE
    raises it before it forms dispatches."""
    text = path.read_text()
    writer = Writer(str(path))
    arguments = re.findall(r"%(arg\d+): tensor<([\dx]+x)f32>", text)
    widest = max(arguments, key=lambda a: a[0])[0]
    for name, shape in arguments:
        sizes = tuple(int(n) for n in shape.rstrip("x").split("x"))
        writer.give(name, sizes, "fp32", "input" if name == widest else "weight")
    return _Reader(writer).read(text).graph(path.stem)


class _Reader:
    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self._constants: set[str] = set()
        self._same: dict[str, str] = {}
        self._softmax: str | None = None

    def read(self, text: str) -> Writer:
        for match in filter(None, map(_LINE.search, text.splitlines())):
            rest = match[3]
            operands = tuple(self._same.get(n, n) for n in re.findall(r"%(\w+)", rest))
            shape = _shape(re.findall(r"tensor<([^>]*)>", rest)[-1])
            self._one(_Op(match[1], match[2], operands, rest, shape))
        return self.writer

    def _one(self, op: _Op) -> None:
        values = [n for n in op.operands if n not in self._constants]
        if op.kind == "constant" or not values:
            self._constants.add(op.output)
        elif op.kind == "reduce" and "maximum" in op.text:
            self._softmax = values[0]
            self._same[op.output] = values[0]
        elif self._softmax is not None:
            self._in_softmax(op, values)
        elif op.kind == "broadcast_in_dim":
            self._broadcast(op, values[0])
        elif op.kind in _POINTWISE:
            inputs, axes = self.writer.broadcast(values, self._kept(values, op.shape))
            self._make(op, "elementwise", list(inputs), axes, self._kept(values, op.shape))
        else:
            getattr(self, f"_{op.kind}")(op, values)

    def _kept(self, values: list[str], shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape without what was only broadcast."""
        found = [1] * len(shape)
        for name in values:
            for i, size in enumerate(reversed(self.writer.shape(name))):
                found[-1 - i] = max(found[-1 - i], size)
        return tuple(found)

    def _make(
        self, op: _Op, kind: str, inputs: list[str], axes: tuple[Axis, ...] | list[Axis], shape: tuple[int, ...]
    ) -> None:
        assert self.writer.result(op.output, axes, shape, "fp32"), op
        self.writer.write(kind, f"{op.kind}{op.output}", inputs, op.output)  # type: ignore[arg-type]

    def _in_softmax(self, op: _Op, values: list[str]) -> None:
        if op.kind != "divide":
            self._same[op.output] = values[0]
            return
        source = self._softmax or ""
        axes = self.writer.dims.axes(source)
        self.writer.result(op.output, axes, self.writer.shape(source), "fp32")
        self.writer.write("reduction", f"softmax{op.output}", (source,), op.output, reduced=axes[-1:], flops=5.0,
                          cost_class="softmax", online=True)  # fmt: skip
        self._softmax = None

    def _broadcast(self, op: _Op, source: str) -> None:
        at = _numbers(r"dims = \[([\d, ]*)\]", op.text)
        axes: list[Axis] = [None] * len(op.shape)
        shape = [1] * len(op.shape)
        for i, axis in zip(at, self.writer.dims.axes(source), strict=True):
            axes[i], shape[i] = axis, self.writer.shape(source)[at.index(i)]
        if shape == list(self.writer.shape(source)):
            self._same[op.output] = source
            return
        self.writer.result(op.output, axes, shape, "fp32")
        self._view(op, source)

    def _view(self, op: _Op, source: str) -> None:
        self.writer.write("layout", f"{op.kind}{op.output}", (source,), op.output, flops=0.0, cost_class="copy",
                          is_view=True)  # fmt: skip

    def _reduce(self, op: _Op, values: list[str]) -> None:
        over = _numbers(r"dimensions = \[([\d, ]*)\]", op.text)
        axes = self.writer.dims.axes(values[0])
        self.writer.result(op.output, [a for i, a in enumerate(axes) if i not in over], op.shape, "fp32")
        self.writer.write("reduction", f"reduce{op.output}", values, op.output, reduced=[axes[i] for i in over],
                          cost_class="reduce")  # fmt: skip

    def _reshape(self, op: _Op, values: list[str]) -> None:
        self.writer.result(op.output, self.writer.regrouped(values[0], op.shape), op.shape, "fp32")
        self._view(op, values[0])

    def _transpose(self, op: _Op, values: list[str]) -> None:
        self.writer.give(op.output, op.shape, "fp32")
        self._copy(op, values[0])

    def _slice(self, op: _Op, values: list[str]) -> None:
        self.writer.result(op.output, self.writer.moved(values[0], op.shape), op.shape, "fp32")
        self._copy(op, values[0])

    def _copy(self, op: _Op, source: str) -> None:
        self.writer.write("layout", f"{op.kind}{op.output}", (source,), op.output, flops=0.0, cost_class="copy")

    def _dot_general(self, op: _Op, values: list[str]) -> None:
        left, right = values
        dims = self.writer.dims
        pairs = re.findall(r"(\w+)_dims = \[([\d, ]*)\] x \[([\d, ]*)\]", op.text)
        at = {kind: ([int(n) for n in a.split(",")], [int(n) for n in b.split(",")]) for kind, a, b in pairs}
        batch, contracted = at.get("batching", ([], [])), at["contracting"]
        a, b = dims.axes(left), dims.axes(right)
        for i, j in zip((*batch[0], *contracted[0]), (*batch[1], *contracted[1]), strict=True):
            assert dims.join(a[i], b[j]), op
        rows = [x for i, x in enumerate(a) if i not in contracted[0]]
        columns = [x for j, x in enumerate(b) if j not in contracted[1] and j not in batch[1]]
        assert self.writer.result(op.output, [*rows, *columns], op.shape, "fp32"), op
        self.writer.write("matmul", f"dot{op.output}", (left, right), op.output, reduced=[a[i] for i in contracted[0]],
                          flops=2.0, cost_class="matmul")  # fmt: skip


def iree_dispatches(path: Path) -> list[str]:
    """Names of the dispatches of IREE's scheduling statistics, in order."""
    rows = csv.reader(path.read_text().splitlines())
    return [row[2].partition("::@main_dispatch_")[2].partition("_")[2] for row in rows if row[1:2] == ["dispatch"]]


def iree_roots(path: Path) -> Counter[str]:
    """Dispatches by what they are rooted in, which is what IREE names them after."""
    roots: Counter[str] = Counter()
    for name in iree_dispatches(path):
        kinds = {"matmul": "product", "softmax": "softmax", "reduction": "reduction", "memcpy": "slice",
                 "transpose": "transpose"}  # fmt: skip
        roots[next((root for word, root in kinds.items() if word in name), "elementwise")] += 1
    return roots


def plan_roots(graph: Graph, plan: Plan) -> Counter[str]:
    """Launches of a plan by the same roots: of a group's operators the one that IREE would name it after."""
    by_name = {op.name: op for op in graph.operators}
    roots: Counter[str] = Counter()
    for group in plan.groups:
        if group.pattern == "view":
            continue
        words = {re.sub(r"\d+$", "", op) for op in group.ops if not by_name[op].is_view}
        order = ("dot", "softmax", "reduce", "slice", "transpose")
        names = {"dot": "product", "reduce": "reduction"}
        root = next((word for word in order if word in words), "elementwise")
        roots[names.get(root, root)] += 1
    return roots
