"""ONNX operators that are matrix products: MatMul, Gemm, Einsum and convolutions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from fusetui.accelerator.onnx_dims import Axis
from fusetui.accelerator.onnx_file import Node
from fusetui.accelerator.onnx_ops import words
from fusetui.accelerator.onnx_writer import Writer

PRODUCTS: Final = frozenset(
    words(
        "MatMul FusedMatMul MatMulInteger QLinearMatMul Gemm FusedGemm Einsum Conv FusedConv ConvInteger QLinearConv "
        "ConvTranspose"
    )
)
# Which inputs are the two sides; the others are scales and zero points.
_SIDES: Final = {"QLinearMatMul": (0, 3), "QLinearConv": (0, 3)}
_BIAS: Final = {"Gemm": 2, "FusedGemm": 2, "Conv": 2, "FusedConv": 2, "ConvTranspose": 2, "QLinearConv": 8}


class Products:
    """Writes products; counts biases taken into them and grouped convolutions."""

    def __init__(self, writer: Writer, operand: Callable[[str, Node], str], dtype: Callable[[str], str]) -> None:
        self._writer, self._operand, self._dtype = writer, operand, dtype
        self.biases = 0
        self.grouped = 0

    def write(self, node: Node, shape: tuple[int, ...]) -> bool:
        """The product and, where it is more than a row, what is added to it; False for a form not known."""
        first, second = _SIDES.get(node.op, (0, 1))
        if len(node.inputs) <= second:
            return False
        left, right = self._operand(node.inputs[first], node), self._operand(node.inputs[second], node)
        if not left or not right:
            return False
        addend = self._addend(node)
        out = f"{node.outputs[0]}.product" if addend else node.outputs[0]
        if not self._product(node, left, right, out, shape):
            return False
        if addend:
            inputs, axes = self._writer.broadcast((out, addend), shape)
            self._writer.result(node.outputs[0], axes, shape, self._dtype(node.outputs[0]))
            self._writer.write("elementwise", f"{node.name}.add", inputs, node.outputs[0], cost_class="add")
        return True

    def _addend(self, node: Node) -> str:
        at = _BIAS.get(node.op)
        if at is None or len(node.inputs) <= at or not node.inputs[at]:
            return ""
        name = self._operand(node.inputs[at], node)
        if self._writer.role(name) == "weight" and sum(size > 1 for size in self._writer.shape(name)) <= 1:
            self.biases += 1
            return ""
        return name

    def _product(self, node: Node, left: str, right: str, out: str, shape: tuple[int, ...]) -> bool:
        if node.op == "Einsum":
            letters = _letters(str(node.attributes.get("equation", "")))
            return letters is not None and self._contract(node, left, right, out, shape, *letters)
        if "Conv" in node.op:
            return self._conv(node, left, right, out, shape)
        a, b = len(self._writer.shape(left)), len(self._writer.shape(right))
        if not a or not b:
            return False
        swap_left, swap_right = bool(node.integer("transA", 0)), bool(node.integer("transB", 0))
        return self._contract(node, left, right, out, shape, *_matmul_letters(a, b, swap_left, swap_right))

    def _contract(
        self, node: Node, left: str, right: str, out: str, shape: tuple[int, ...], one: str, other: str, result: str
    ) -> bool:
        """A product written with a letter per axis."""
        if len(one) != len(self._writer.shape(left)) or len(other) != len(self._writer.shape(right)):
            return False
        if len(result) != len(shape):
            return False
        for attempt in (right, ""):
            operand = attempt or self._writer.alias(right)
            by_letter = self._joined(left, operand, one, other)
            if by_letter is None:
                continue
            axes = [by_letter[letter] for letter in result]
            if self._writer.result(out, axes, shape, self._dtype(node.outputs[0])):
                reduced = [by_letter[c] for c in one if c in other and c not in result]
                self._emit(node, left, operand, out, reduced)
                return True
        return False

    def _joined(self, left: str, right: str, one: str, other: str) -> dict[str, Axis] | None:
        dims = self._writer.dims
        by_letter: dict[str, Axis] = dict(zip(one, dims.axes(left), strict=True))
        for letter, axis in zip(other, dims.axes(right), strict=True):
            known = by_letter.get(letter)
            if known is not None and axis is not None and not dims.join(known, axis):
                return None
            by_letter[letter] = axis if known is None else known
        return by_letter

    def _emit(
        self, node: Node, left: str, right: str, out: str, reduced: Sequence[Axis], kernel: int = 0, stride: int = 1
    ) -> None:
        kind = "conv" if kernel else "matmul"
        flops = 2.0 / stride**2 if node.op == "ConvTranspose" else 2.0
        self._writer.write(
            "conv" if kernel else "matmul",
            node.name,
            (left, right),
            out,
            reduced=reduced,
            flops=flops,
            cost_class=kind,
            kernel=max(kernel, 1),
            stride=stride,
        )

    def _conv(self, node: Node, left: str, right: str, out: str, shape: tuple[int, ...]) -> bool:
        weight = self._writer.shape(right)
        spatial = len(weight) - 2
        if spatial < 1 or len(shape) != len(weight) or len(self._writer.shape(left)) != len(weight):
            return False
        groups = node.integer("group", 1)
        strides = node.integers("strides") or (1,) * spatial
        dilations = node.integers("dilations") or (1,) * spatial
        transposed = node.op == "ConvTranspose"
        self.grouped += groups > 1
        if max(weight[2:]) == 1 and shape[2:] == self._writer.shape(left)[2:] and groups == 1 and not transposed:
            letters = "abcdefgh"[:spatial]
            return self._contract(node, left, right, out, shape, f"NC{letters}", f"OC{letters.upper()}", f"NO{letters}")
        kernel = max((k - 1) * d + 1 for k, d in zip(weight[2:], dilations, strict=False))
        for attempt in (right, ""):
            operand = attempt or self._writer.alias(right)
            into, over = (1, 0) if transposed else (0, 1)
            weights, image = self._writer.dims.axes(operand), self._writer.dims.axes(left)
            if groups == 1 and not self._writer.dims.join(image[1], weights[over]):
                continue
            channels = weights[into] if weight[into] == shape[1] else self._writer.dims.fresh(shape[1])
            axes = [image[0], channels, *(self._writer.dims.fresh(size) for size in shape[2:])]
            if self._writer.result(out, axes, shape, self._dtype(node.outputs[0])):
                reduced = [weights[over], *weights[2:]]
                self._emit(node, left, operand, out, reduced, max(kernel, 1), max(1, *strides))
                return True
        return False


def _matmul_letters(a: int, b: int, swap_left: bool, swap_right: bool) -> tuple[str, str, str]:
    """One letter per axis: batches from the end, then m, k and n."""
    batches = [chr(ord("a") + i) for i in range(max(a, b))]
    left = batches[: max(0, a - 2)][::-1]
    right = batches[: max(0, b - 2)][::-1]
    own_left = "k" if a == 1 else "KM" if swap_left else "MK"
    own_right = "K" if b == 1 else "NK" if swap_right else "KN"
    longest = left if len(left) >= len(right) else right
    result = "".join(longest) + ("M" if a > 1 else "") + ("N" if b > 1 else "")
    return "".join(left) + own_left.upper(), "".join(right) + own_right, result


def _letters(equation: str) -> tuple[str, str, str] | None:
    """``ij,jk->ik`` of two operands; None of a form with repeats, dots or one-sided sums."""
    sides, arrow, result = equation.replace(" ", "").partition("->")
    one, comma, other = sides.partition(",")
    plain = all(term.isalpha() and len(set(term)) == len(term) for term in (one, other))
    if not arrow or not comma or not plain or (result and not result.isalpha()):
        return None
    once = set(one) ^ set(other)
    contracted = set(one) & set(other) - set(result)
    return (one, other, result) if once <= set(result) <= set(one) | set(other) and contracted else None
