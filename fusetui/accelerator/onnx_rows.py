"""ONNX operators over rows: softmax and norms, which keep the row, and reductions, which do not."""

from __future__ import annotations

from collections.abc import Sequence

from fusetui.accelerator.onnx_dims import Axis
from fusetui.accelerator.onnx_file import Node
from fusetui.accelerator.onnx_ops import ROWS
from fusetui.accelerator.onnx_writer import Writer

_CHANNELS_SECOND = frozenset({"InstanceNormalization"})
_ONE_AXIS = frozenset({"Hardmax", "LpNormalization", "Softmax", "LogSoftmax"})
_ONE_AXIS_SINCE = 13  # before, softmax ran over all axes from the one given on


def write_row(writer: Writer, node: Node, operands: Sequence[str], opset: int, dtype: str) -> None:
    """A softmax or norm over the trailing axes from ``axis`` on, or over that axis alone."""
    out, shape = node.outputs[0], writer.shape(operands[0])
    axis = 1 if node.op in _CHANNELS_SECOND else None
    inputs, axes = writer.broadcast(operands, shape, axis)
    writer.result(out, axes, shape, dtype)
    flops, cost_class = ROWS[node.op]
    row = [axes[i] for i in _row(node, len(shape), opset)]
    if not any(a is not None for a in row):
        writer.write("elementwise", node.name, inputs, out, flops=flops)
        return
    online = node.op == "Softmax"
    writer.write("reduction", node.name, inputs, out, reduced=row, flops=flops, cost_class=cost_class, online=online)


def _row(node: Node, rank: int, opset: int) -> Sequence[int]:
    if node.op == "InstanceNormalization":
        return range(2, rank)
    if node.op == "GroupNormalization":
        return range(1, rank)
    old = node.op in ("Softmax", "LogSoftmax", "Hardmax") and opset < _ONE_AXIS_SINCE
    axis = node.integer("axis", 1 if old else -1) % max(rank, 1)
    if node.op in _ONE_AXIS and not old:
        return [axis] if rank else []
    return range(axis, rank)


def write_reduction(
    writer: Writer, node: Node, source: str, shape: Sequence[int], given: Sequence[int] | None, dtype: str
) -> None:
    """A reduction over the axes given, all of them by default."""
    out, axes = node.outputs[0], writer.dims.axes(source)
    rank = len(axes)
    reduced = _reduced(node, rank, given)
    kept: list[Axis] = [a for i, a in enumerate(axes) if i not in reduced]
    if len(shape) == rank:
        kept = [None if i in reduced else a for i, a in enumerate(axes)]
    writer.result(out, kept, shape, dtype)
    row = [axes[i] for i in sorted(reduced)]
    if any(a is not None for a in row):
        writer.write("reduction", node.name, (source,), out, reduced=row, cost_class="reduce")
    else:
        writer.write("layout", node.name, (source,), out, flops=0.0, cost_class="copy", is_view=True)


def _reduced(node: Node, rank: int, given: Sequence[int] | None) -> set[int]:
    if node.op.startswith("Global"):
        return set(range(2, rank))
    if node.op.startswith("Arg"):
        given = [node.integer("axis", 0)]
    if given is None:
        given = node.integers("axes")
    if not given:
        return set() if node.integer("noop_with_empty_axes", 0) else set(range(rank))
    return {a % max(rank, 1) for a in given}
