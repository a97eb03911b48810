"""One execution of a capture as operators of the model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from fusetui.accelerator.graph import Operator
from fusetui.analysis.recover.backward import Step, convolution_gradient
from fusetui.analysis.recover.flow import Flow, Value
from fusetui.analysis.recover.names import Part
from fusetui.analysis.recover.products import product_of
from fusetui.analysis.recover.shapes import Key, Operand, Shape

_FOUR: Final = 4
_SEQUENCE_FIRST: Final = ("flash_fwd", "attn_fwd", "fmha")


def heads_last(name: str) -> bool:
    """Whether an attention of this name takes (batch, sequence, heads, head) rather than heads first."""
    return any(word in name for word in _SEQUENCE_FIRST)


class Lowering:
    """Adds executions to a Flow; `add` returns the names of the operators that ran in one, () when sizes do not fit."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._siblings: dict[Key, Value | None] = {}

    def add(self, name: str, steps: Sequence[Step], following: Sequence[Key]) -> tuple[str, ...]:
        """`following`: operands of the next executions, which tell the result of a convolution."""
        before = len(self._flow.operators)
        result: Value | None = None
        for part, own in steps:
            key = own
            if key is None:
                if result is None:
                    break
                key = Key((Operand(result.shape, ""),))
            result = self._part(name, part, key, following)
        made = self._flow.operators[before:]
        return tuple(op.name for op in made if not op.is_view)

    def _part(self, name: str, part: Part, key: Key, following: Sequence[Key]) -> Value | None:
        if not key.operands:
            return None
        bias = part.cost_class == "add" and len(key.operands) > 1 and len(key.operands[1].shape) == 1
        if not (part.form in ("product", "copy") or bias):
            self._siblings.clear()
        match part.form:
            case "product":
                return self._product(part, key)
            case "for input" | "for weight":
                sizes = convolution_gradient(part, key)
                return None if sizes is None else self._product(part, sizes)
            case "conv":
                return self._conv(part, key, following)
            case "attention":
                return self._attention(name, key)
            case "row" if key.operands[0].shape[-1] > 1:
                return self._row(part, key)
            case "reduce" if key.operands[0].shape[-1] > 1:
                return self._reduce(part, key)
            case "gather":
                return self._gather(part, key)
            case "copy":
                return self._copy(part, key)
            case _:
                return self._pointwise(part, key)

    def _product(self, part: Part, key: Key) -> Value | None:
        product = product_of(key, transposed=part.transposed)
        if product is None:
            return None
        flow, left, right = self._flow, product.left, product.right
        source = self._siblings.get(key)
        if source is None:
            source = flow.find(left, reread=product.weight)
            self._siblings[key] = source
        left_dims = flow.dims_of(source, left)
        k, batch = left_dims[-1], left_dims[:-2] if not product.weight else ()
        n = flow.name_dims((product.n,), left_dims)[0]
        lhs = flow.bind(source, left, left_dims)
        if right is None or product.weight:
            found = None if right is None else flow.find(right, reread=False, without=(lhs,))
            if found is not None and found.shape != getattr(right, "shape", ()):
                found = None
            rhs = flow.bind(found, right or Operand((product.k, product.n), left.dtype), (k, n), "weight")
        else:
            found = flow.find(right, reread=False)
            sizes = right.shape[:-2]
            kept = [d if size > 1 else "" for d, size in zip(batch, sizes, strict=True)]
            rhs = flow.bind(found, right, (*kept, k, n))
        name = flow.fresh(part.label)
        op = Operator(name, "matmul", (lhs, rhs), name, (k,) if k else (), 2.0, "matmul")
        return flow.add(op, key.result or product.result, (*left_dims[:-1], n))

    def _conv(self, part: Part, key: Key, following: Sequence[Key]) -> Value | None:
        images = [o for o in key.operands if len(o.shape) == _FOUR]
        if len(images) < 2:
            return None
        image, weight = images[0], images[1]
        (count, channels, height, width), (out, each, kernel_h, kernel_w) = image.shape, weight.shape
        shape = key.result or _following(following, count, out, height, width)
        if each != channels or len(shape) != _FOUR:
            return self._pointwise(Part("depthwise", "pointwise", 2.0 * each * kernel_h * kernel_w), Key((image,)))
        flow = self._flow
        source = flow.find(image, reread=True)
        dims = flow.dims_of(source, image)
        lhs = flow.bind(source, image, dims)
        o = flow.name_dims((out,), dims)[0]
        fresh = flow.name_dims(shape[2:], {*dims, o})
        kept = zip(dims[2:], fresh, shape[2:], (height, width), strict=True)
        plane = tuple(name if size == old else new for name, new, size, old in kept)
        window = flow.name_dims((kernel_h, kernel_w), {*dims, o, *plane})
        rhs = flow.bind(None, weight, (o, dims[1], *window), "weight")
        name = flow.fresh(part.label)
        reduced = tuple(d for d in (dims[1], *window) if d)
        op = Operator(
            name, "conv", (lhs, rhs), name, reduced, 2.0, "conv", kernel_h, max(1, round(height / max(1, shape[2])))
        )
        return flow.add(op, shape, (dims[0], o, *plane))

    def _attention(self, name: str, key: Key) -> Value | None:
        """Scores, softmax and values: the operators one attention kernel replaces. The mask is not in a capture."""
        turned = heads_last(name)
        three = [o for o in key.operands[:3] if len(o.shape) == _FOUR]
        if len(three) < 3:
            return None
        q, k, v = ([o.shape[i] for i in ((0, 2, 1, 3) if turned else (0, 1, 2, 3))] for o in three)
        if q[0] != k[0] or q[3] != k[3] or k[:3] != v[:3] or q[1] % k[1]:
            return None
        flow = self._flow
        batch, heads, group, rows, head = flow.name_dims((q[0], k[1], q[1] // k[1], q[2], q[3]))
        context, value = flow.name_dims((k[2], v[3]), {batch, heads, group, rows, head})

        def ordered(*dims: str) -> tuple[str, ...]:
            return (dims[0], *dims[-2:-1], *dims[1:-2], dims[-1]) if turned else dims

        layouts = (ordered(batch, heads, group, rows, head), ordered(batch, heads, context, head))
        names = []
        for operand, dims in zip(three, (*layouts, ordered(batch, heads, context, value)), strict=True):
            names.append(flow.bind(flow.find(operand, reread=False), operand, dims))
        top = flow.fresh("attention")
        rest = (batch, heads, group, rows)
        scores, weights = f"{top}.scores", f"{top}.softmax"
        flow.append(_matmul(scores, names[0], names[1], head), (*rest, context))
        softmax = Operator(weights, "reduction", (scores,), weights, (context,), 5.0, "softmax", online=True)
        flow.append(softmax, (*rest, context))
        out = (*three[0].shape[:3], v[3])
        dims = ordered(batch, heads, rows, value) if not group else (*rest, value)
        return flow.add(_matmul(f"{top}.values", weights, names[2], context), out, dims, viewed=True)

    def _row(self, part: Part, key: Key) -> Value:
        flow, first = self._flow, key.operands[0]
        source = flow.find(first, reread=True)
        dims = flow.dims_of(source, first)
        scales = [operand for operand in key.operands[1:] if operand.shape == first.shape[-1:]]
        inputs = [flow.bind(source, first, dims), *(flow.bind(None, o, dims[-1:], "weight") for o in scales)]
        for operand in key.operands[1:]:
            if operand.shape == first.shape != first.shape[-1:]:
                inputs.append(flow.bind(flow.find(operand, reread=True, without=inputs), operand, dims))
        name = flow.fresh(part.label)
        online = part.label == "softmax"
        op = Operator(name, "reduction", tuple(inputs), name, dims[-1:], part.flops, part.cost_class, online=online)
        return flow.add(op, first.shape, dims)

    def _reduce(self, part: Part, key: Key) -> Value:
        flow, first = self._flow, key.operands[0]
        source = flow.find(first, reread=True)
        dims = flow.dims_of(source, first)
        lhs = flow.bind(source, first, dims)
        name = flow.fresh(part.label)
        op = Operator(name, "reduction", (lhs,), name, dims[-1:], part.flops, part.cost_class)
        same_rank = len(key.result) == len(first.shape)
        shape = (*first.shape[:-1], 1) if same_rank else first.shape[:-1]
        return flow.add(op, shape, (*dims[:-1], "") if same_rank else dims[:-1])

    def _gather(self, part: Part, key: Key) -> Value | None:
        wide = [o for o in key.operands if len(o.shape) >= 2]
        ids = [o for o in key.operands if o.integer]
        if not wide or not ids:
            return None
        table, index = wide[0], ids[0]
        flow = self._flow
        dims = flow.name_dims(table.shape)
        rows = (*index.shape, *table.shape[1:]) if index.shape[-1:] != table.shape[1:] else index.shape
        out = (*flow.name_dims(rows[: len(rows) - len(table.shape) + 1], dims), *dims[1:])
        inputs = (flow.bind(None, table, dims, "weight"), flow.bind(None, index, out[: len(index.shape)]))
        name = flow.fresh(part.label)
        return flow.add(Operator(name, "gather", inputs, name, flops_per_point=0.0, cost_class="gather"), rows, out)

    def _copy(self, part: Part, key: Key) -> Value:
        flow = self._flow
        source_of = max(key.operands, key=lambda o: o.points)
        source = flow.find(source_of, reread=True)
        lhs = flow.bind(source, source_of, flow.dims_of(source, source_of))
        shape = key.result if key.result and math.prod(key.result) == source_of.points else source_of.shape
        name = flow.fresh(part.label)
        op = Operator(name, "layout", (lhs,), name, flops_per_point=0.0, cost_class="copy")
        return flow.add(op, shape, flow.name_dims(shape), viewed=True)

    def _pointwise(self, part: Part, key: Key) -> Value:
        flow = self._flow
        lead = max(key.operands, key=lambda o: o.points)
        shape, name = lead.shape, part.label
        source = flow.find(lead, reread=True)
        dims = flow.dims_of(source, lead)
        inputs = [flow.bind(source, lead, dims)]
        taken = {source.name} if source is not None else set(inputs)
        others = list(key.operands)
        others.remove(lead)
        for operand in others:
            aligned = _aligned(operand.shape, shape, dims, channel=part.channel)
            if aligned is None:
                continue
            found = flow.find(operand, reread=len(operand.shape) > 1, without=taken) if any(aligned) else None
            if found is not None and math.prod(found.shape) != operand.points:
                found = None
            inputs.append(flow.bind(found, operand, aligned, "input" if len(operand.shape) > 1 else "weight"))
            taken.add(found.name if found is not None else inputs[-1])
        name = flow.fresh(part.label)
        op = Operator(name, "elementwise", tuple(inputs), name, flops_per_point=part.flops, cost_class=part.cost_class)
        return flow.add(op, shape, dims, residual=part.cost_class == "add" and len(inputs) > 1)


def _matmul(name: str, left: str, right: str, contracted: str) -> Operator:
    return Operator(name, "matmul", (left, right), name, (contracted,) if contracted else (), 2.0, "matmul")


def _following(keys: Sequence[Key], count: int, out: int, height: int, width: int) -> Shape:
    """Sizes of a convolution's result, by what runs next: an operand with its channels, or its pixels as a sequence.

    Strides are not in a capture. Where nothing tells them the result is taken to be as large as the image.
    """
    operands = [operand.shape for key in keys for operand in key.operands]
    for shape in operands:
        if len(shape) == _FOUR and shape[:2] == (count, out) and shape[2] <= height and shape[3] <= width:
            return shape
    for shape in operands:
        if len(shape) == 3 and shape[0] == count and out in shape[1:]:
            pixels = shape[1] if shape[2] == out else shape[2]
            stride = math.isqrt(height * width // max(1, pixels))
            if stride > 1 and height % stride == width % stride == 0 and stride * stride * pixels == height * width:
                return (count, out, height // stride, width // stride)
    return (count, out, height, width)


def _aligned(shape: Shape, whole: Shape, dims: Sequence[str], *, channel: bool) -> tuple[str, ...] | None:
    """Names of an operand broadcast to `whole`, from the last dimension back; None when it cannot be."""
    if channel and len(shape) == 1 and len(whole) > 1 and shape[0] == whole[1]:
        return (dims[1],)
    if len(shape) > len(whole):
        return None
    tail = len(whole) - len(shape)
    if any(size not in (1, full) for size, full in zip(shape, whole[tail:], strict=True)):
        return None
    return tuple("" if size == 1 else name for size, name in zip(shape, dims[tail:], strict=True))
