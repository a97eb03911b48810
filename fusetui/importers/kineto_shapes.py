"""Canonical shape keys from the input dimensions and types that PyTorch records per operator."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

_TYPES: Final = {
    "float": "f32",
    "double": "f64",
    "c10::Half": "f16",
    "c10::BFloat16": "bf16",
    "c10::Float8_e4m3fn": "f8e4m3",
    "c10::Float8_e4m3fnuz": "f8e4m3",
    "c10::Float8_e5m2": "f8e5m2",
    "c10::Float8_e5m2fnuz": "f8e5m2",
    "long int": "i64",
    "long": "i64",
    "int": "i32",
    "short": "i16",
    "signed char": "i8",
    "unsigned char": "u8",
    "bool": "bool",
}
_MAX_OPERANDS: Final = 16


def shape_keys(pairs: Iterable[tuple[bytes, bytes] | str]) -> list[str | None]:
    """Key per (Input Dims, Input type) JSON pair, e.g. `8x128x256 256x512 bf16`; None without any tensor (and for a
    text that stands for pairs that were not kept).

    Operands that are no tensors (scalars, lists, absent) are left out. The type stands once at the end when all
    operands share it, else behind each: `512x64:f16 512:i64`.
    """
    return [None if isinstance(pair, str) else _key(*pair) for pair in pairs]


def _key(dims: bytes, types: bytes) -> str | None:
    operands = _list(dims)
    names = _list(types)
    parts: list[tuple[str, str]] = []
    for position, operand in enumerate(operands[: _MAX_OPERANDS * 4]):
        if isinstance(operand, list) and operand and all(type(size) is int for size in operand):
            name = names[position] if position < len(names) else ""
            parts.append(("x".join(map(str, operand)), _TYPES.get(name, "") if isinstance(name, str) else ""))
    if not parts:
        return None
    cut = parts[:_MAX_OPERANDS]
    kinds = {kind for _, kind in cut}
    if len(kinds) == 1:
        text = " ".join(size for size, _ in cut)
        text = f"{text} {cut[0][1]}" if cut[0][1] else text
    else:
        text = " ".join(f"{size}:{kind}" if kind else size for size, kind in cut)
    return text if len(parts) == len(cut) else f"{text} …"


def _list(raw: bytes) -> list[Any]:
    try:
        found = msgspec.json.decode(raw) if raw else []
    except msgspec.DecodeError:
        return []
    return found if isinstance(found, list) else []
