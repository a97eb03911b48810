"""Measured kernels as columns, and the CSV they come in.

Columns: op, dtype, latency_us; matrix products (op matmul): batch, m, n, k; attention (op attention): batch, q_heads,
kv_heads, q_len, kv_len, head_dim, causal; vector operators (op is a class): bytes_in, bytes_out, rows.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np
import numpy.typing as npt

from fusetui.accelerator.constants import VECTOR_ETA
from fusetui.accelerator.errors import AcceleratorError

Floats = npt.NDArray[np.float64]

# Columns each family needs, with the value an empty cell stands for; None: it must be given.
FAMILIES: Final[Mapping[str, Mapping[str, float | None]]] = MappingProxyType(
    {
        "matmul": {"batch": 1.0, "m": None, "n": None, "k": None},
        "attention": {
            "batch": 1.0,
            "q_heads": None,
            "kv_heads": None,
            "q_len": None,
            "kv_len": None,
            "head_dim": None,
            "causal": 1.0,
        },
        "vector": {"bytes_in": None, "bytes_out": None, "rows": 0.0},
    }
)
_DTYPES: Final = MappingProxyType(
    {"bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "fp32", "float": "fp32"}
)
_MATMUL_NAMES: Final = frozenset({"matmul", "gemm", "mm", "bmm", "addmm", "linear"})


@dataclass(frozen=True, slots=True)
class MeasuredRows:
    """Kernels of one family and dtype. `columns` and `latency_ns` are (N,); `ops` the class of each vector operator."""

    family: str
    dtype: str
    ops: npt.NDArray[np.str_]
    columns: Mapping[str, Floats]
    latency_ns: Floats

    def __len__(self) -> int:
        return len(self.latency_ns)

    def take(self, at: npt.NDArray[np.int64]) -> MeasuredRows:
        """The rows at these positions."""
        columns = {name: column[at] for name, column in self.columns.items()}
        return MeasuredRows(self.family, self.dtype, self.ops[at], columns, self.latency_ns[at])


def read_rows(path: Path) -> list[MeasuredRows]:
    """Every (dtype, family) of a CSV file, in order of appearance. AcceleratorError names line and column."""
    groups: dict[tuple[str, str], list[tuple[str, dict[str, float]]]] = {}
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            for name in ("op", "dtype", "latency_us"):
                if name not in (reader.fieldnames or ()):
                    raise AcceleratorError(
                        str(path), f"column {name}: missing", "op, dtype and latency_us must be there"
                    )
            for row in reader:
                family, op, values = _parse(row, f"{path} line {reader.line_num}")
                dtype = (row["dtype"] or "").strip().lower()
                groups.setdefault((_DTYPES.get(dtype, dtype), family), []).append((op, values))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise AcceleratorError(str(path), f"cannot be read as CSV: {error}") from None
    if not groups:
        raise AcceleratorError(str(path), "holds no rows")
    return [_columns(dtype, family, rows) for (dtype, family), rows in groups.items()]


def _parse(row: Mapping[str, str | None], where: str) -> tuple[str, str, dict[str, float]]:
    op = (row["op"] or "").strip().lower()
    family = "matmul" if op in _MATMUL_NAMES else "attention" if op == "attention" else "vector"
    if family == "vector" and op not in VECTOR_ETA:
        raise AcceleratorError(where, f"op {op!r} is not known", f"matmul, attention, {', '.join(VECTOR_ETA)}")
    needed: dict[str, float | None] = {"latency_us": None, **FAMILIES[family]}
    return family, op, {name: _number(row.get(name), name, default, where) for name, default in needed.items()}


def _number(text: str | None, name: str, default: float | None, where: str) -> float:
    text = (text or "").strip()
    if not text and default is not None:
        return default
    try:
        value = float({"true": "1", "false": "0"}.get(text.lower(), text))
    except ValueError:
        value = math.nan
    least = 0.0 if name in ("causal", "rows", "bytes_in", "bytes_out") else 1e-9
    if not (least <= value < math.inf):
        raise AcceleratorError(where, f"column {name}: {text!r} is not a number above 0")
    return value


def _columns(dtype: str, family: str, rows: list[tuple[str, dict[str, float]]]) -> MeasuredRows:
    columns = {name: np.array([values[name] for _, values in rows]) for name in FAMILIES[family]}
    latency = np.array([values["latency_us"] for _, values in rows]) * 1e3
    return MeasuredRows(family, dtype, np.array([op for op, _ in rows]), columns, latency)
