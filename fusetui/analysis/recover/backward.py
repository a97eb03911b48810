"""Nodes of a backward pass that have no shapes of their own, told from the forward operators they undo.

Autograd walks the forward pass backwards, so the nearest forward operator of the same kind that has not been undone
yet is the one a node belongs to. The gradient of a product is two products, that of attention five.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from fusetui.analysis.recover.names import Part
from fusetui.analysis.recover.products import product_of
from fusetui.analysis.recover.shapes import Key, Operand, Shape

Step = tuple[Part, Key | None]
"""A part and what it reads; None: what the part before it computed."""

_NODE = re.compile(r"(?:.*[:\s])?(\w+?)Backward\d*$")
_KINDS: Final = MappingProxyType(
    {
        **dict.fromkeys(("Addmm", "Mm", "Bmm", "Baddbmm", "Linear"), "product"),
        **dict.fromkeys(("Relu", "Gelu", "Silu", "Sigmoid", "Tanh", "Mul", "Div", "Pow", "Add", "Sub"), "pointwise"),
        **dict.fromkeys(("NativeLayerNorm", "Softmax", "LogSoftmax", "NativeBatchNorm"), "row"),
        **dict.fromkeys(("Mean", "Sum"), "reduce"),
    }
)
_FOUR: Final = 4
_PRODUCT: Final = Part("grad", "product", 2.0)


def undone_by(name: str) -> str:
    """The form of the forward operator that a backward node undoes, "" when it is no node of a known kind."""
    found = _NODE.match(name)
    if not found:
        return ""
    word = found.group(1)
    return "attention" if word.startswith("ScaledDotProduct") else _KINDS.get(word, "")


def gradient(part: Part, key: Key, *, heads_last: bool = False) -> list[Step]:
    """What the backward node of one forward part computes; [] when its sizes fit nothing."""
    match part.form:
        case "product":
            return _of_product(part, key)
        case "attention":
            return _of_attention(key, heads_last=heads_last)
        case "row" | "pointwise":
            return [(replace(part, label=f"{part.label}.grad", flops=2 * part.flops), key)]
        case "reduce":
            return [(Part("reduce.grad", "pointwise"), Key(key.operands[:1]))]
        case _:
            return []


def convolution_gradient(part: Part, key: Key) -> Key | None:
    """Operands (gradient, input, weights) of a convolution's backward pass as those of a matrix product.

    For the input (N h w, O) (O, C r s), for the weights (O, N h w) (N h w, C r s); both have the forward arithmetic.
    """
    wide = [operand for operand in key.operands if len(operand.shape) == _FOUR]
    if len(wide) < 3 or wide[0].shape[0] != wide[1].shape[0] or wide[0].shape[1] != wide[2].shape[0]:
        return None
    count, out, height, width = wide[0].shape
    pixels, window = count * height * width, math.prod(wide[2].shape[1:])
    if part.form == "for input":
        return _pair((pixels, out), (out, window), wide[0].dtype)
    return _pair((out, pixels), (pixels, window), wide[0].dtype)


def _of_product(part: Part, key: Key) -> list[Step]:
    product = product_of(key, transposed=part.transposed)
    if product is None:
        return []
    left, n, k = product.left, product.n, product.k
    batch = left.shape[:-2] if not product.weight else ()
    m = left.points // k if product.weight else left.shape[-2]
    dtype = left.dtype
    for_input = _pair((*batch, m, n), (*batch, n, k), dtype)
    for_weight = _pair((*batch, n, m), (*batch, m, k), dtype)
    return [(_PRODUCT, for_input), (_PRODUCT, for_weight)]


def _of_attention(key: Key, *, heads_last: bool) -> list[Step]:
    """Scores once more, then the gradients of values, weights, queries and keys; what is between them is small."""
    shapes: Sequence[Shape] = [operand.shape for operand in key.operands[:2]]
    if len(shapes) < 2 or any(len(shape) != _FOUR for shape in shapes):
        return []
    order = (0, 2, 1, 3) if heads_last else (0, 1, 2, 3)
    (batch, heads, rows, head), (_, _, context, _) = ([shape[i] for i in order] for shape in shapes)
    dtype, lead = key.operands[0].dtype, (batch, heads)
    wide = _pair((*lead, rows, head), (*lead, head, context), dtype)
    back = _pair((*lead, context, rows), (*lead, rows, head), dtype)
    to_queries = _pair((*lead, rows, context), (*lead, context, head), dtype)
    return [(_PRODUCT, sizes) for sizes in (wide, back, wide, to_queries, back)]


def _pair(left: Shape, right: Shape, dtype: str) -> Key:
    return Key((Operand(left, dtype), Operand(right, dtype)), (*left[:-1], right[-1]))
