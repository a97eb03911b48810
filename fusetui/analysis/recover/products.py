"""Which way round the operands of a matrix product are, from their sizes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fusetui.analysis.recover.shapes import Key, Operand, Shape

_LEAST_DIMS: Final = 2


@dataclass(frozen=True, slots=True)
class Product:
    """left (*batch, *m, k), right (k, n) when `weight`, else (*batch, k, n); `right` None: it is not in the capture."""

    left: Operand
    right: Operand | None
    weight: bool
    n: int
    k: int

    @property
    def result(self) -> Shape:
        """Sizes of what is computed."""
        return (*self.left.shape[:-1], self.n)


def product_of(key: Key, *, transposed: bool) -> Product | None:
    """The product of these operands, biases left out; None when the sizes fit no product.

    transposed  the right operand is stored n x k where both readings fit (PyTorch's linear)
    """
    wide = [operand for operand in key.operands if len(operand.shape) >= _LEAST_DIMS]
    for left, right in itertools.pairwise(wide):
        found = _pair(left, right, key.result, transposed)
        if found is not None:
            return found
    if len(wide) >= 1 and key.result and key.result[:-1] == wide[0].shape[:-1]:
        left = wide[0]
        return Product(left, None, True, key.result[-1], left.shape[-1])
    return None


def _pair(left: Operand, right: Operand, result: Shape, transposed: bool) -> Product | None:
    weight = len(right.shape) == _LEAST_DIMS
    if not weight and not _batches_fit(left.shape[:-2], right.shape[:-2]):
        return None
    k = left.shape[-1]
    plain, turned = right.shape[-2] == k, right.shape[-1] == k
    if result and plain and turned:
        plain = result[-1] == right.shape[-1]
    if turned and (transposed or not plain):
        return Product(left, right, weight, right.shape[-2], k)
    if plain:
        return Product(left, right, weight, right.shape[-1], k)
    return None


def _batches_fit(left: Sequence[int], right: Sequence[int]) -> bool:
    return len(left) == len(right) and all(b in (a, 1) for a, b in zip(left, right, strict=True))
