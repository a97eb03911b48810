"""ONNX operators that are a whole attention: written as scores, softmax and values, heads in groups that share keys."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fusetui.accelerator.onnx_file import Node
from fusetui.accelerator.onnx_writer import Writer


def write_attention(writer: Writer, node: Node, operands: Sequence[str], shape: tuple[int, ...], dtype: str) -> bool:
    """False for a form not known: packed queries, a cache, or head counts that do not divide."""
    sizes = _sizes(writer, node, operands)
    if sizes is None:
        return False
    batch, kv_heads, group, queries, keys, head, value = sizes
    if math.prod(shape) != batch * kv_heads * group * queries * value:
        return False
    q = writer.view(operands[0], (batch, kv_heads, group, queries, head))
    k = writer.view(operands[1], (batch, kv_heads, keys, head))
    v = writer.view(operands[2], (batch, kv_heads, keys, value))
    dims = writer.dims
    for name, other in ((q, k), (q, v)):
        dims.join(dims.axes(name)[0], dims.axes(other)[0])
        dims.join(dims.axes(name)[1], dims.axes(other)[1])
    dims.join(dims.axes(q)[4], dims.axes(k)[3])
    dims.join(dims.axes(k)[2], dims.axes(v)[2])
    rows, (_, _, kv, wide) = dims.axes(q), dims.axes(v)
    scores, weights, mixed = (f"{node.outputs[0]}.{part}" for part in ("scores", "softmax", "values"))
    table = (batch, kv_heads, group, queries, keys)
    writer.result(scores, (*rows[:4], kv), table, dtype)
    writer.write("matmul", f"{node.name}.scores", (q, k), scores, reduced=(rows[4],), flops=2.0, cost_class="matmul")
    writer.result(weights, (*rows[:4], kv), table, dtype)
    reduced = (kv,) if kv is not None else ()
    writer.write(
        "reduction" if kv is not None else "elementwise",
        f"{node.name}.softmax",
        (scores,),
        weights,
        reduced=reduced,
        flops=6.0,
        cost_class="softmax",
        online=kv is not None,
    )
    writer.result(mixed, (*rows[:4], wide), (*table[:4], value), dtype)
    writer.write("matmul", f"{node.name}.values", (weights, v), mixed, reduced=reduced, flops=2.0, cost_class="matmul")
    writer.give(node.outputs[0], shape, dtype)
    writer.write("layout", f"{node.name}.out", (mixed,), node.outputs[0], flops=0.0, cost_class="copy", is_view=True)
    return True


def _sizes(writer: Writer, node: Node, operands: Sequence[str]) -> tuple[int, int, int, int, int, int, int] | None:
    """(batch, key heads, query heads per key head, queries, keys, head, value head)."""
    if len(operands) != 3 or len(node.outputs) > 1:
        return None
    q, k, v = (writer.shape(name) for name in operands)
    if len(q) == len(k) == len(v) == 4:
        heads, kv_heads = q[1], k[1]
        lengths = (q[2], k[2], q[3], v[3])
    elif len(q) == len(k) == len(v) == 3:
        heads = node.integer("q_num_heads", node.integer("num_heads", 0))
        kv_heads = node.integer("kv_num_heads", heads)
        if heads < 1 or kv_heads < 1 or q[2] % heads or k[2] % kv_heads or v[2] % kv_heads:
            return None
        lengths = (q[1], k[1], q[2] // heads, v[2] // kv_heads)
    else:
        return None
    if kv_heads < 1 or heads % kv_heads:
        return None
    return (q[0], kv_heads, heads // kv_heads, *lengths)
