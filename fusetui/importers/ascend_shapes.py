"""Shape keys from the input shapes and types of an Ascend kernel table."""

from __future__ import annotations

from typing import Final

_OPERANDS: Final = 16
_TYPES: Final = {
    "FLOAT": "f32",
    "FLOAT16": "f16",
    "DT_BF16": "bf16",
    "BF16": "bf16",
    "BFLOAT16": "bf16",
    "DOUBLE": "f64",
    "INT64": "i64",
    "INT32": "i32",
    "INT16": "i16",
    "INT8": "i8",
    "UINT8": "u8",
    "BOOL": "bool",
}


def shape_key(sizes: str, kinds: str) -> str | None:
    """`2x4096 4096x4096 f16` from `"2,4096;4096,4096"` and `FLOAT16;FLOAT16`; None without any tensor.

    An operand without sizes is a scalar or absent and is left out.
    """
    operands = sizes.strip(' "\t[]').split(";")
    types = kinds.strip(' "\t').split(";")
    parts: list[tuple[str, str]] = []
    for number, operand in enumerate(operands[: 4 * _OPERANDS]):
        dims = [dim.strip(' "[]') for dim in operand.split(",")]
        if all(dim.isdecimal() and dim.isascii() and len(dim) < 16 for dim in dims):
            kind = types[number].strip().upper() if number < len(types) else ""
            parts.append(("x".join(dims), _TYPES.get(kind, kind.lower() if kind not in ("N/A", "UNDEFINED") else "")))
    if not parts:
        return None
    cut = parts[:_OPERANDS]
    known = {kind for _, kind in cut}
    if len(known) == 1:
        return " ".join([*(size for size, _ in cut), *(known - {""})])
    return " ".join(f"{size}:{kind}" if kind else size for size, kind in cut)
