"""An ONNX model as a graph: one operator per node that a runtime would launch, and notes of everything else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from fusetui.accelerator.graph import Graph, GraphError
from fusetui.accelerator.onnx_attention import write_attention
from fusetui.accelerator.onnx_file import FLOATS, Node, OnnxModel, element_type, read_model
from fusetui.accelerator.onnx_ops import COPIES, GATHERS, POINTWISE, POOLS, REDUCTIONS, ROWS, SHAPES_ONLY, VIEWS
from fusetui.accelerator.onnx_products import PRODUCTS, Products
from fusetui.accelerator.onnx_rows import write_reduction, write_row
from fusetui.accelerator.onnx_writer import Writer, printable

_ATTENTIONS = frozenset({"Attention", "MultiHeadAttention"})
_CHANNELS_SECOND = frozenset({"BatchNormalization", "PRelu"})
_FIRST_ALONE = frozenset({"CastLike", "RotaryEmbedding", "Trilu"})


@dataclass(frozen=True, slots=True)
class OnnxGraph:
    """A model as a graph, the type most of its arithmetic is in, and what was done to the model."""

    graph: Graph
    dtype: str
    notes: tuple[str, ...]


def read_onnx(path: Path, bindings: Mapping[str, int], dtype: str | None = None) -> OnnxGraph:
    """The graph of an ONNX file; `dtype` takes the place of every floating-point type in it.

    Raises GraphError or AcceleratorError naming file, node and tensor.
    """
    return graph_of(read_model(path, bindings), path.stem, dtype)


def graph_of(model: OnnxModel, name: str, dtype: str | None) -> OnnxGraph:
    """The graph of nodes whose tensors all have shapes; `dtype` as in `read_onnx`. Raises GraphError."""
    return _Reader(model, dtype or main_type(model)).read(name, dtype is not None)


def main_type(model: OnnxModel) -> str:
    """The type most matrix products read."""
    counts = Counter(model.types.get(n.inputs[0], 1) for n in model.nodes if n.op in PRODUCTS and n.inputs)
    if not counts:
        counts = Counter(number for number in model.types.values() if number in FLOATS) or Counter([1])
    return element_type(counts.most_common(1)[0][0])


class _Reader:
    def __init__(self, model: OnnxModel, dtype: str) -> None:
        self._model, self._dtype = model, dtype
        self._writer = Writer(model.where)
        self._constants = set(model.constants)
        self._inputs = frozenset(model.inputs)
        self._unknown: Counter[str] = Counter()
        self._products = Products(self._writer, self._operand, self._type)

    def read(self, name: str, forced: bool) -> OnnxGraph:
        """Map every node that matters, in the order of the file."""
        live = self._live()
        folded = 0
        for node in self._model.nodes:
            if not live.intersection(node.outputs):
                continue
            inputs = [n for n in node.inputs if n]
            if node.op in SHAPES_ONLY or (inputs and self._constants.issuperset(inputs)):
                self._constants.update(node.outputs)
                folded += node.op != "Constant"
                continue
            self._map(node, live)
        self._results()
        dead = sum(not live.intersection(n.outputs) for n in self._model.nodes)
        return OnnxGraph(self._writer.graph(name), self._dtype, self._notes(folded, dead, forced))

    def _live(self) -> set[str]:
        """Tensors that the results of the model need."""
        needed = set(self._model.outputs)
        for node in reversed(self._model.nodes):
            if needed.intersection(node.outputs):
                needed.update(node.inputs)
        return needed - {""}

    def _shape(self, tensor: str, node: Node) -> tuple[int, ...]:
        shape = self._model.shapes.get(tensor)
        if shape is None:
            where = f"{self._model.where}, node {printable(node.name)} ({node.op})"
            remedy = "simplify the model, or export it with standard operators" if node.domain else "simplify the model"
            why = printable(self._model.refused.get(tensor, ""))
            what = f"the shape of {printable(tensor)} cannot be inferred"
            raise GraphError(where, f"{what} ({why})" if why else what, remedy)
        return shape

    def _type(self, tensor: str) -> str:
        number = self._model.types.get(tensor, 1)
        return self._dtype if number in FLOATS else element_type(number)

    def _operand(self, tensor: str, node: Node) -> str:
        """The tensor, given to the writer the first time it is read; "" of one without elements."""
        if self._writer.has(tensor):
            return tensor
        shape = self._shape(tensor, node)
        if 0 in shape:
            return ""
        if tensor in self._constants:
            return self._writer.give(tensor, shape, self._type(tensor), "weight")
        if tensor not in self._inputs:
            raise GraphError(
                f"{self._model.where}, node {printable(node.name)}", f"reads {printable(tensor)}: nobody made it"
            )
        return self._writer.give(tensor, shape, self._type(tensor), "input")

    def _operands(self, node: Node, count: int | None = None) -> list[str]:
        names = [n for n in node.inputs[:count] if n]
        return [n for n in (self._operand(name, node) for name in names) if n]

    def _map(self, node: Node, live: set[str]) -> None:
        outputs = [n for n in node.outputs if n in live]
        if any(0 in self._shape(n, node) for n in outputs):
            self._constants.update(outputs)
            return
        first = node.outputs[0]
        for known, write in self._writers():
            if node.op in known and first in live:
                write(node)
                break
        else:
            self._unknown[node.op] += 1
        for output in outputs:
            if not self._writer.has(output):
                self._copy(node, output)

    def _writers(self) -> tuple[tuple[frozenset[str] | Mapping[str, object], Callable[[Node], None]], ...]:
        return (
            (PRODUCTS, self._product),
            (_ATTENTIONS, self._attention),
            (POINTWISE, self._pointwise),
            (ROWS, self._row),
            (REDUCTIONS, self._reduction),
            (VIEWS, self._view),
            (COPIES, self._copies),
            (GATHERS, self._gather),
            (POOLS, self._pool),
        )

    def _product(self, node: Node) -> None:
        if not self._products.write(node, self._shape(node.outputs[0], node)):
            self._unknown[node.op] += 1

    def _attention(self, node: Node) -> None:
        operands = self._operands(node, 3)
        shape = self._shape(node.outputs[0], node)
        if not write_attention(self._writer, node, operands, shape, self._type(node.outputs[0])):
            self._unknown[node.op] += 1

    def _pointwise(self, node: Node) -> None:
        out = node.outputs[0]
        shape = self._shape(out, node)
        operands = self._operands(node, 1 if node.op in _FIRST_ALONE else None)
        axis = 1 if node.op in _CHANNELS_SECOND and len(shape) > 1 else None
        if node.op in ("QuantizeLinear", "DequantizeLinear"):
            axis = node.integer("axis", 1) % max(1, len(shape))
        inputs, axes = self._writer.broadcast(operands, shape, axis)
        self._writer.result(out, axes, shape, self._type(out))
        values = [n for n in inputs if self._writer.role(n) != "weight" and self._writer.shape(n) == shape]
        cost_class = "add" if len(values) > 1 else "elementwise"
        self._writer.write("elementwise", node.name, inputs, out, flops=POINTWISE[node.op], cost_class=cost_class)

    def _row(self, node: Node) -> None:
        out = node.outputs[0]
        operands = self._operands(node, 1 if node.op == "GroupNormalization" else None)
        write_row(self._writer, node, operands, self._model.opset, self._type(out))

    def _reduction(self, node: Node) -> None:
        out = node.outputs[0]
        axes = self._model.values.get(node.inputs[1]) if len(node.inputs) > 1 else None
        operand = self._operand(node.inputs[0], node)
        write_reduction(self._writer, node, operand, self._shape(out, node), axes, self._type(out))

    def _view(self, node: Node) -> None:
        self._write_view(node, node.outputs[0])

    def _write_view(self, node: Node, out: str) -> None:
        source = self._operand(node.inputs[0], node)
        shape = self._shape(out, node)
        self._writer.result(out, self._writer.regrouped(source, shape), shape, self._type(out))
        self._writer.write("layout", node.name, (source,), out, flops=0.0, cost_class="copy", is_view=True)

    def _copies(self, node: Node) -> None:
        for out in node.outputs:
            if not self._constants.isdisjoint(node.outputs):
                continue
            self._copy(node, out)

    def _copy(self, node: Node, out: str) -> None:
        """Data movement from the inputs to `out`; a view where the elements are where they were."""
        shape, operands = self._shape(out, node), self._operands(node, None if node.op == "Concat" else 1)
        if node.op not in COPIES:
            operands = self._operands(node)
        if node.op in COPIES and len(operands) == 1 and self._stays(node, operands[0], shape):
            self._write_view(node, out)
            return
        axes = self._writer.moved(operands[0] if operands and node.op != "Transpose" else None, shape)
        self._writer.result(out, axes, shape, self._type(out))
        self._writer.write("layout", node.name, operands, out, flops=0.0, cost_class="copy")

    def _stays(self, node: Node, source: str, shape: tuple[int, ...]) -> bool:
        before = self._writer.shape(source)
        if node.op == "Transpose":
            order = node.integers("perm") or tuple(reversed(range(len(before))))
            moved = [a for a in order if 0 <= a < len(before) and before[a] > 1]
            return moved == sorted(moved)
        if node.op not in ("Slice", "Split", "Expand", "Concat") or len(shape) != len(before):
            return False
        cut = [i for i, (a, b) in enumerate(zip(before, shape, strict=True)) if a != b]
        return not cut or (node.op in ("Slice", "Split") and len(cut) == 1 and max(before[: cut[0]], default=1) == 1)

    def _gather(self, node: Node) -> None:
        out = node.outputs[0]
        operands = self._operands(node)
        table = operands[0] if operands else ""
        if not node.op.startswith("Gather") or (node.inputs[1] in self._constants and table not in self._constants):
            self._copy(node, out)
            return
        self._writer.give(out, self._shape(out, node), self._type(out))
        self._writer.write("gather", node.name, operands, out, flops=0.0, cost_class="gather")

    def _pool(self, node: Node) -> None:
        out = node.outputs[0]
        window = 1
        for size in node.integers("kernel_shape"):
            window *= size
        self._writer.give(out, self._shape(out, node), self._type(out))
        self._writer.write("layout", node.name, self._operands(node, 1), out, flops=float(window), cost_class="reduce")

    def _results(self) -> None:
        """A result that the model also reads itself must be written all the same: a view that nobody reads."""
        read = self._writer.read_names()
        for name in dict.fromkeys(self._model.outputs):
            if name in read and self._writer.role(name) == "value":
                self._writer.alias(name)

    def _notes(self, folded: int, dead: int, forced: bool) -> tuple[str, ...]:
        own = main_type(self._model)
        lines = [
            (folded, f"{folded} nodes depend on constants and shapes alone: folded, nothing runs for them"),
            (dead, f"{dead} nodes whose results nobody reads: left out"),
            (
                self._products.biases,
                f"{self._products.biases} biases are inside their product: their bytes are not counted",
            ),
            (
                self._products.grouped,
                f"{self._products.grouped} grouped convolutions: priced as one matrix product each",
            ),
            (forced and own != self._dtype, f"the file holds {own}: planned as if it were converted to {self._dtype}"),
        ]
        notes = [line for count, line in lines if count]
        if self._unknown:
            listed = ", ".join(
                f"{printable(op)} x{n}" if n > 1 else printable(op) for op, n in sorted(self._unknown.items())
            )
            notes.append(f"not known to the model, taken for data movement: {listed}")
        return tuple(notes)
