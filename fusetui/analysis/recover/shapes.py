"""Shape keys of the contract (`8x128x256 256x512 bf16`, with ` > 8x128x512` where the result is known) as operands."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

Shape = tuple[int, ...]

_DIMS: Final = re.compile(r"\d{1,12}(?:x\d{1,12}){0,15}")
_PRODUCT: Final = re.compile(r"([bmnk])=(\d{1,12})")
# Integers are priced by their width.
DTYPES: Final = MappingProxyType(
    {
        "f64": "fp64",
        "f32": "fp32",
        "f16": "fp16",
        "bf16": "bf16",
        "f8e4m3": "fp8",
        "f8e5m2": "fp8",
        "i64": "fp64",
        "i32": "fp32",
        "i16": "fp16",
        "i8": "int8",
        "u8": "int8",
        "bool": "int8",
        "fp64": "fp64",
        "fp32": "fp32",
        "fp16": "fp16",
        "fp8": "fp8",
    }
)
INTEGERS: Final = frozenset({"i64", "i32", "i16", "i8", "u8", "bool"})


@dataclass(frozen=True, slots=True)
class Operand:
    """One tensor an operator was given: its sizes and the model's name of its type ("" where it is not known)."""

    shape: Shape
    dtype: str
    integer: bool = False

    @property
    def points(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class Key:
    """A parsed shape key. `result` is () where the capture does not have the shape of what was computed."""

    operands: tuple[Operand, ...]
    result: Shape = ()


def parse_key(text: str | None) -> Key:
    """Operands of a shape key; a key without any tensor, or of another kind, has none."""
    if not text or text.isspace():
        return Key(())
    sizes = dict(_PRODUCT.findall(text))
    words = text.split()
    last = words[-1] if words[-1] in DTYPES else ""
    if {"m", "n", "k"} <= sizes.keys():
        return _product({name: int(value) for name, value in sizes.items()}, DTYPES.get(last, ""))
    left, _, right = text.partition(">")
    operands = [operand for word in left.split() if (operand := _operand(word, last)) is not None]
    results = [operand for word in right.split() if (operand := _operand(word, last)) is not None]
    return Key(tuple(operands), results[0].shape if results else ())


def _operand(word: str, last: str) -> Operand | None:
    dims, _, kind = word.partition(":")
    if not _DIMS.fullmatch(dims):
        return None
    shape = tuple(int(size) for size in dims.split("x"))
    if 0 in shape:
        return None
    kind = kind or last
    return Operand(shape, DTYPES.get(kind, ""), kind in INTEGERS)


def _product(sizes: dict[str, int], dtype: str) -> Key:
    """`m=4096 n=11008 k=4096 bf16`, as written by tools that only know products."""
    if 0 in sizes.values():
        return Key(())
    batch = (sizes["b"],) if sizes.get("b", 1) > 1 else ()
    m, n, k = sizes["m"], sizes["n"], sizes["k"]
    return Key((Operand((*batch, m, k), dtype), Operand((*batch, k, n), dtype)), (*batch, m, n))
