"""Fit the constants of a (device, dtype) to measured kernels, and say how far off they are on kernels not seen.

Rows are measured in a loop as a rule, so operands that fit the shared cache are taken to be in it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fusetui.accelerator.attention import attention_seconds, attention_work, together
from fusetui.accelerator.constants import Constants, default_constants
from fusetui.accelerator.errors import AcceleratorError
from fusetui.accelerator.fit import fit_positive
from fusetui.accelerator.grid import Floats, build_grid
from fusetui.accelerator.hardware import Hardware
from fusetui.accelerator.matmul import matmul_terms, price_matmuls, products
from fusetui.accelerator.rows import MeasuredRows
from fusetui.accelerator.vector import move_seconds, vector_work

TRAIN_ROWS: Final = 20
_LEAST_ROWS: Final = 4
_SWEEPS: Final = 3

# Free constants of a family: (lowest, highest, width of the prior as a logarithm).
_MATMUL: Final = MappingProxyType(
    {
        "start_ns": (100.0, 20000.0, 1.5),
        "fill_ns": (20.0, 8000.0, 1.5),
        "eta_matrix": (0.05, 1.15, 0.25),
        "eta_dram": (0.1, 1.1, 0.15),
        "eta_l2": (0.1, 2.0, 0.4),
        "few_cores_rho": (0.5, 20.0, 0.7),
        "overlap": (1.3, 16.0, 0.7),
        "split_ns": (50.0, 8000.0, 1.0),
    }
)
_ATTENTION: Final = MappingProxyType(
    {
        "attention_start_ns": (100.0, 40000.0, 1.0),
        "attention_fill_ns": (20.0, 20000.0, 1.0),
        "attention_eta_matrix": (0.05, 1.1, 0.4),
        "attention_eta_dram": (0.1, 1.1, 0.4),
        "attention_eta_l2": (0.05, 4.0, 0.7),
        "attention_split_ns": (50.0, 20000.0, 1.0),
        "attention_overlap": (1.0, 10.0, 0.5),
    }
)
_VECTOR_START: Final = (50.0, 20000.0, 1.5)
_VECTOR_ETA: Final = (0.01, 2.5, 0.6)


@dataclass(frozen=True, slots=True)
class Score:
    """Relative errors of one family on rows the fit has not seen; `held_out` 0 when every row was needed to fit."""

    family: str
    dtype: str
    train: int
    held_out: int
    median_error: float
    p95_error: float


def calibrate(
    hw: Hardware, groups: Sequence[MeasuredRows], train: int | None = None, seed: int = 0
) -> tuple[list[Constants], list[Score]]:
    """Constants per dtype and scores per (dtype, family).

    train   rows to fit on, of each (dtype, family); default 20, or half of them when there are fewer than 40
    Raises AcceleratorError with fewer than 4 rows to fit on.
    """
    fitted: dict[str, Constants] = {}
    scores: list[Score] = []
    held: dict[str, list[Floats]] = {}
    for rows in groups:
        before = fitted.get(rows.dtype) or default_constants(hw, rows.dtype)
        seen, unseen = split_rows(rows, train, seed)
        after = fit_rows(hw, before, seen)
        error = relative_errors(hw, after, unseen if len(unseen) else seen)
        scores.append(_score(rows, len(seen), len(unseen), error))
        held.setdefault(rows.dtype, []).append(error)
        fitted[rows.dtype] = dataclasses.replace(
            after, calibrated=True, fitted=(*before.fitted, rows.family), rows=before.rows + len(seen)
        )
    sets = [_with_errors(c, np.concatenate(held[dtype])) for dtype, c in fitted.items()]
    return sets, scores


def split_rows(rows: MeasuredRows, train: int | None, seed: int) -> tuple[MeasuredRows, MeasuredRows]:
    """(rows to fit on, the others): at random, every class of operator in proportion."""
    count = len(rows)
    wanted = min(TRAIN_ROWS, count // 2) if train is None else min(train, count)
    if wanted < _LEAST_ROWS:
        what = f"{wanted} rows of {rows.family} {rows.dtype} to fit on"
        raise AcceleratorError("calibrate", what, f"at least {_LEAST_ROWS} are needed")
    random = np.random.default_rng(seed)
    order = np.lexsort([random.random(count), rows.ops])
    edges = np.linspace(0, count, wanted + 1).astype(np.int64)
    chosen = order[edges[:-1] + (random.random(wanted) * np.diff(edges)).astype(np.int64)]
    rest = np.setdiff1d(np.arange(count), chosen)
    return rows.take(np.sort(chosen)), rows.take(rest)


def predict_ns(hw: Hardware, constants: Constants, rows: MeasuredRows) -> Floats:
    """Predicted time (N,), ns."""
    if rows.family == "matmul":
        c = rows.columns
        return price_matmuls(hw, constants, c["batch"], c["m"], c["n"], c["k"], dtype=rows.dtype).time_ns
    return _SECONDS[rows.family](hw, rows)(constants) * 1e9


def relative_errors(hw: Hardware, constants: Constants, rows: MeasuredRows) -> Floats:
    """|predicted / measured - 1|, (N,)."""
    return np.asarray(np.abs(predict_ns(hw, constants, rows) / rows.latency_ns - 1))


def fit_rows(hw: Hardware, constants: Constants, rows: MeasuredRows) -> Constants:
    """`constants` with those of the rows' family fitted to them."""
    seconds = _SECONDS[rows.family](hw, rows)
    if rows.family == "vector":
        return _fit_vector(seconds, constants, rows)
    free = _MATMUL if rows.family == "matmul" else _ATTENTION
    names, limits = list(free), np.array(list(free.values()))
    start = np.array([getattr(constants, name) for name in names])

    def predict(x: Floats) -> Floats:
        return seconds(dataclasses.replace(constants, **dict(zip(names, x, strict=True)))) * 1e9

    found = fit_positive(predict, rows.latency_ns, start, limits[:, 0], limits[:, 1], limits[:, 2])
    return dataclasses.replace(constants, **dict(zip(names, found.tolist(), strict=True)))


Seconds = Callable[[Constants], Floats]


def _matmul_seconds(hw: Hardware, rows: MeasuredRows) -> Seconds:
    c = rows.columns
    grid = build_grid(hw, products(c["batch"], c["m"], c["n"], c["k"]), rows.dtype)
    return lambda constants: np.asarray(matmul_terms(hw, constants, grid).total.min(axis=1))


def _attention_seconds(hw: Hardware, rows: MeasuredRows) -> Seconds:
    c = rows.columns
    work = attention_work(
        hw,
        c["batch"],
        c["q_heads"],
        c["kv_heads"],
        c["q_len"],
        c["kv_len"],
        c["head_dim"],
        rows.dtype,
        c["causal"],
        _EVERYTHING,
    )

    def seconds(constants: Constants) -> Floats:
        compute, memory, fixed = attention_seconds(hw, constants, work)
        return fixed + together(compute, memory, constants.attention_overlap)

    return seconds


def _vector_seconds(hw: Hardware, rows: MeasuredRows) -> Seconds:
    c = rows.columns
    hot = np.full(len(rows), _EVERYTHING)
    work = vector_work(hw, c["bytes_in"], c["bytes_out"], c["rows"], hot, rows.ops)

    def seconds(constants: Constants) -> Floats:
        eta = np.array([constants.vector_eta[str(op)] for op in rows.ops])
        hot_eta = np.array([constants.vector_hot_eta[str(op)] for op in rows.ops])
        return constants.vector_start_ns * 1e-9 + move_seconds(hw, work, eta, hot_eta)

    return seconds


_EVERYTHING: Final = 1e18
_SECONDS: Final = MappingProxyType(
    {"matmul": _matmul_seconds, "attention": _attention_seconds, "vector": _vector_seconds}
)


def _fit_vector(seconds: Seconds, constants: Constants, rows: MeasuredRows) -> Constants:
    """The start, shared by all classes, and two shares per class, in turns."""
    for _ in range(_SWEEPS):
        for op in np.unique(rows.ops):
            constants = _fit_class(seconds, constants, rows, str(op))
        low, high, spread = (np.array([value]) for value in _VECTOR_START)

        def predict(x: Floats, c: Constants = constants) -> Floats:
            return seconds(dataclasses.replace(c, vector_start_ns=float(x[0]))) * 1e9

        now = np.array([constants.vector_start_ns])
        found = fit_positive(predict, rows.latency_ns, now, low, high, spread)
        constants = dataclasses.replace(constants, vector_start_ns=float(found[0]))
    return constants


def _fit_class(seconds: Seconds, constants: Constants, rows: MeasuredRows, op: str) -> Constants:
    mine = rows.ops == op
    low, high, spread = (np.full(2, value) for value in _VECTOR_ETA)

    def shares(x: npt.NDArray[Any]) -> Constants:
        eta, hot = dict(constants.vector_eta) | {op: float(x[0])}, dict(constants.vector_hot_eta) | {op: float(x[1])}
        return dataclasses.replace(constants, vector_eta=eta, vector_hot_eta=hot)

    start = np.array([constants.vector_eta[op], constants.vector_hot_eta[op]])
    return shares(
        fit_positive(lambda x: seconds(shares(x))[mine] * 1e9, rows.latency_ns[mine], start, low, high, spread)
    )


def _score(rows: MeasuredRows, train: int, held_out: int, error: Floats) -> Score:
    return Score(rows.family, rows.dtype, train, held_out, float(np.median(error)), float(np.quantile(error, 0.95)))


def _with_errors(constants: Constants, error: Floats) -> Constants:
    return dataclasses.replace(
        constants, median_error=float(np.median(error)), p95_error=float(np.quantile(error, 0.95))
    )
