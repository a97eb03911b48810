"""Shape keys of Tenstorrent operations, and how much of what they computed was padding."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

_OPERANDS: Final = 8
_DIM: Final = re.compile(r"(\d{1,12})(?:\[(\d{1,12})\])?")
_TYPES: Final = {
    "BFLOAT16": "bf16",
    "FLOAT32": "f32",
    "FLOAT16": "f16",
    "BFLOAT8_B": "bfp8",
    "BFLOAT4_B": "bfp4",
    "UINT32": "u32",
    "INT32": "i32",
    "UINT16": "u16",
    "UINT8": "u8",
}


def operand_texts(columns: Mapping[str, pa.Array], rows: int) -> pa.Array:
    """The inputs of each row as one text that `shape_and_padding` reads, shape (rows,)."""
    texts: list[pa.Array] = []
    for number in range(_OPERANDS):
        dims = [columns.get(f"INPUT_{number}_{d}_PAD[LOGICAL]", columns.get(f"INPUT_{number}_{d}")) for d in "WZYX"]
        if any(dim is None for dim in dims):
            break
        kind = columns.get(f"INPUT_{number}_DATATYPE", pa.array([""] * rows))
        texts.append(pc.binary_join_element_wise(pc.binary_join_element_wise(*dims, "x"), kind, ":"))
    return pc.binary_join_element_wise(*texts, " ") if texts else pa.array([""] * rows)


def shape_and_padding(text: str) -> tuple[str, float]:
    """(`1x1x32x1280 1x1x1280x1280 bf16`, computed elements ÷ asked elements) of the text of one row.

    Sizes are the logical ones; padding is NaN where the report has no padded sizes. ("", NaN) without any input.
    """
    parts: list[tuple[str, str]] = []
    padded = asked = 0
    told = True
    for operand in text.split(" "):
        sizes, _, kind = operand.partition(":")
        dims = [_DIM.fullmatch(size) for size in sizes.split("x")]
        found = [(int(d[1]), int(d[2] or d[1])) for d in dims if d is not None]
        if len(found) < len(dims):
            continue
        told &= all(d is not None and d[2] is not None for d in dims)
        padded += math.prod(size for size, _ in found)
        asked += math.prod(size for _, size in found)
        parts.append(("x".join(str(size) for _, size in found), _TYPES.get(kind, kind.lower())))
    factor = padded / asked if told and asked else math.nan
    return _joined(parts), factor


def _joined(parts: list[tuple[str, str]]) -> str:
    kinds = {kind for _, kind in parts}
    if len(kinds) == 1:
        return " ".join([*(size for size, _ in parts), *(kinds - {""})])
    return " ".join(f"{size}:{kind}" if kind else size for size, kind in parts)
