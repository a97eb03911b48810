"""Fit the constants of a (device, dtype) to measured kernels, and say how far off they are on kernels not seen.

Rows are measured in a loop as a rule, so operands that fit the shared cache are taken to be in it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np

from fusetui.accelerator.attention import attention_seconds, attention_work, together
from fusetui.accelerator.constants import Constants, default_constants
from fusetui.accelerator.errors import AcceleratorError
from fusetui.accelerator.fit import fit_positive
from fusetui.accelerator.grid import Floats, build_grid
from fusetui.accelerator.hardware import Hardware, dtype_bytes
from fusetui.accelerator.matmul import matmul_terms, price_matmuls, products
from fusetui.accelerator.rows import MeasuredRows
from fusetui.accelerator.vector import move_seconds, vector_work

TRAIN_ROWS: Final = 20
_LEAST_ROWS: Final = 4
_FOLDS: Final = 5

# Free constants of a family: (lowest, highest, width of the prior as a logarithm).
_MATMUL: Final = MappingProxyType(
    {
        "start_ns": (100.0, 100000.0, 1.5),
        "fill_ns": (20.0, 8000.0, 1.5),
        "eta_matrix": (0.05, 1.15, 0.25),
        "eta_dram": (0.1, 1.1, 0.15),
        "eta_l2": (0.1, 2.0, 0.4),
        "few_cores_rho": (0.5, 20.0, 0.7),
        "overlap": (1.3, 16.0, 0.7),
        "split_ns": (50.0, 20000.0, 1.0),
    }
)
_CAST: Final = MappingProxyType(
    {
        "cast_start_ns": (100.0, 100000.0, 1.0),
        "cast_row_ns": (5.0, 5000.0, 1.5),
        "cast_eta": (0.05, 1.1, 0.4),
    }
)
_PACE: Final = MappingProxyType({"pace_ns": (100.0, 1e6, 0.5)})
_PACE_START: Final = 0.1  # quantile of the rows from which its fit starts
_PACED: Final = 0.5  # share of rows at one pace, whatever their shapes, that shows that the host set it,
_PACED_LOSS: Final = 0.75  # if that leaves no more of the loss without a pace
_ATTENTION: Final = MappingProxyType(
    {
        "attention_start_ns": (100.0, 40000.0, 1.0),
        "attention_fill_ns": (20.0, 20000.0, 1.0),
        "attention_eta_matrix": (0.05, 1.1, 0.4),
        "attention_eta_dram": (0.1, 1.1, 0.4),
        "attention_eta_l2": (0.05, 4.0, 0.7),
        "attention_split_ns": (50.0, 20000.0, 1.0),
        "attention_token_ns": (1.0, 20000.0, 1.5),
        "attention_overlap": (1.0, 10.0, 0.5),
    }
)
_VECTOR_START: Final = (50.0, 100000.0, 1.5)
_VECTOR_BLOCK: Final = (5.0, 5000.0, 1.0)
_VECTOR_ETA: Final = (0.01, 2.5, 0.6)


@dataclass(frozen=True, slots=True)
class Score:
    """Relative errors of one family on rows the fit has not seen.

    held_out 0: every row was needed to fit; the errors are then of fits on four fifths of them, on the others
    """

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
        if len(unseen):
            predicted, measured = predict_ns(hw, after, unseen), unseen.latency_ns
        else:
            predicted, measured = _folded_ns(hw, before, seen), seen.latency_ns
        error = np.abs(predicted / measured - 1)
        scores.append(_score(rows, len(seen), len(unseen), error))
        held.setdefault(rows.dtype, []).append(error)
        fitted[rows.dtype] = with_family(after, rows.family, len(seen), measured / predicted)
    sets = [_with_errors(c, np.concatenate(held[dtype])) for dtype, c in fitted.items()]
    return sets, scores


def with_family(constants: Constants, family: str, train: int, measured_share: Floats) -> Constants:
    """`constants` that say that a family was fitted on `train` rows, and how far off it is.

    measured_share   (N,) measured over predicted time of rows that the fit has not seen
    """
    bar = np.abs(measured_share - 1)
    return dataclasses.replace(
        constants,
        calibrated=True,
        fitted=(*constants.fitted, family),
        rows=constants.rows + train,
        family_median={**constants.family_median, family: float(np.median(bar))},
        family_p95={**constants.family_p95, family: float(np.quantile(bar, 0.95))},
    )


def _folded_ns(hw: Hardware, constants: Constants, rows: MeasuredRows) -> Floats:
    """Predicted time of every row by a fit on the other folds: an honest error where no row can be spared."""
    folds = np.arange(len(rows)) % min(_FOLDS, len(rows))
    predicted = np.empty(len(rows))
    for fold in np.unique(folds):
        fitted = fit_rows(hw, constants, rows.take(np.flatnonzero(folds != fold)))
        predicted[folds == fold] = predict_ns(hw, fitted, rows.take(np.flatnonzero(folds == fold)))
    return predicted


def split_rows(rows: MeasuredRows, train: int | None, seed: int) -> tuple[MeasuredRows, MeasuredRows]:
    """(rows to fit on, the others): at random, every class of operator in proportion."""
    count = len(rows)
    wanted = min(TRAIN_ROWS, count // 2) if train is None else min(train, count)
    if wanted < _LEAST_ROWS:
        what = f"{wanted} rows of {rows.family} {rows.dtype} to fit on"
        raise AcceleratorError("calibrate", what, f"at least {_LEAST_ROWS} are needed")
    random = np.random.default_rng(seed)
    kind, size = _strata(rows)
    share = np.argsort(np.argsort(kind + 1e-9 * random.random(count))) / count
    order = np.lexsort([size + 1e-9 * random.random(count), np.floor(share * np.sqrt(wanted)), rows.ops])
    edges = np.linspace(0, count, wanted + 1).astype(np.int64)
    chosen = order[edges[:-1] + (random.random(wanted) * np.diff(edges)).astype(np.int64)]
    rest = np.setdiff1d(np.arange(count), chosen)
    return rows.take(np.sort(chosen)), rows.take(rest)


def _strata(rows: MeasuredRows) -> tuple[Floats, Floats]:
    """What sets kernels of a family apart: operations per byte, or bytes per row, and how much there is to do."""
    c = {name: np.log(np.maximum(column, 1.0)) for name, column in rows.columns.items()}
    if rows.family == "matmul":
        return np.minimum(np.minimum(c["m"], c["n"]), c["k"]), c["batch"] + c["m"] + c["n"] + c["k"]
    if rows.family == "attention":
        return c["q_len"] + c["q_heads"] - c["kv_heads"], c["batch"] + c["q_heads"] + c["q_len"] + c["kv_len"]
    return c["rows"], c["bytes_in"] + c["bytes_out"]


def predict_ns(hw: Hardware, constants: Constants, rows: MeasuredRows) -> Floats:
    """Predicted time (N,), ns."""
    if rows.family == "matmul":
        c = rows.columns
        shape, hot = (c["batch"], c["m"], c["n"], c["k"]), _hot_bytes(hw)
        return price_matmuls(hw, constants, *shape, dtype=rows.dtype, hot_bytes=hot).time_ns
    return _SECONDS[rows.family](hw, rows)(constants) * 1e9


def relative_errors(hw: Hardware, constants: Constants, rows: MeasuredRows) -> Floats:
    """|predicted / measured - 1|, (N,)."""
    return np.asarray(np.abs(predict_ns(hw, constants, rows) / rows.latency_ns - 1))


def fit_rows(hw: Hardware, constants: Constants, rows: MeasuredRows) -> Constants:
    """`constants` with those of the rows' family fitted to them."""
    if rows.family == "vector":
        return _fit_vector(_vector_seconds(hw, rows), constants, rows)
    ways = [constants]
    if rows.family == "attention":
        ways = [dataclasses.replace(constants, attention_packed=packed) for packed in (True, False)]
    fitted, loss = min((_fit_free(hw, way, rows) for way in ways), key=lambda pair: pair[1])
    if rows.family != "matmul":
        return fitted
    pace = dataclasses.replace(constants, pace_ns=float(np.quantile(rows.latency_ns, _PACE_START)))
    paced, paced_loss = _fit_free(hw, pace, rows)
    at_pace = np.mean(predict_ns(hw, paced, rows) <= paced.pace_ns * (1 + 1e-9))
    return paced if at_pace >= _PACED and paced_loss <= _PACED_LOSS * loss else fitted


def _fit_free(hw: Hardware, constants: Constants, rows: MeasuredRows) -> tuple[Constants, float]:
    free, seconds = _free(rows, is_paced=constants.pace_ns > 0), _SECONDS[rows.family](hw, rows)
    names, limits = list(free), np.array(list(free.values()))

    def changed(x: Floats) -> Constants:
        return dataclasses.replace(constants, **dict(zip(names, x.tolist(), strict=True)))

    start = np.array([getattr(constants, name) for name in names])
    found, loss = fit_positive(lambda x: seconds(changed(x)) * 1e9, rows.latency_ns, start, *limits.T)
    return changed(found), loss


def _free(rows: MeasuredRows, *, is_paced: bool) -> Mapping[str, tuple[float, float, float]]:
    if rows.family == "attention":
        return _ATTENTION
    free = _MATMUL if dtype_bytes(rows.dtype) >= 2 else {**_MATMUL, **_CAST}
    return {**free, **_PACE} if is_paced else free


Seconds = Callable[[Constants], Floats]


def _matmul_seconds(hw: Hardware, rows: MeasuredRows) -> Seconds:
    c = rows.columns
    grid = build_grid(hw, products(c["batch"], c["m"], c["n"], c["k"], 0, 0, 0, 0, _hot_bytes(hw)), rows.dtype)
    return lambda constants: np.asarray(matmul_terms(hw, constants, grid).total.min(axis=1))


def _hot_bytes(hw: Hardware) -> float:
    """Operand bytes in the shared cache when a product starts: graphics processors stream past theirs."""
    return _EVERYTHING if hw.kind == "cpu" else 0.0


def _attention_seconds(hw: Hardware, rows: MeasuredRows) -> Seconds:
    c = rows.columns
    shape = (c["batch"], c["q_heads"], c["kv_heads"], c["q_len"], c["kv_len"], c["head_dim"])
    works = [attention_work(hw, *shape, rows.dtype, c["causal"], _EVERYTHING, 0, packed) for packed in (False, True)]

    def seconds(constants: Constants) -> Floats:
        compute, memory, fixed = attention_seconds(hw, constants, works[constants.attention_packed])
        return fixed + together(compute, memory, constants.attention_overlap)

    return seconds


def _vector_seconds(hw: Hardware, rows: MeasuredRows) -> Seconds:
    c = rows.columns
    hot = np.full(len(rows), _EVERYTHING)
    work = vector_work(hw, c["bytes_in"], c["bytes_out"], c["rows"], hot, rows.ops)

    def seconds(constants: Constants) -> Floats:
        eta = np.array([constants.vector_eta[str(op)] for op in rows.ops])
        hot_eta = np.array([constants.vector_hot_eta[str(op)] for op in rows.ops])
        return constants.vector_start_ns * 1e-9 + move_seconds(hw, work, eta, hot_eta, constants.vector_block_ns)

    return seconds


_EVERYTHING: Final = 1e18
_SECONDS: Final = MappingProxyType(
    {"matmul": _matmul_seconds, "attention": _attention_seconds, "vector": _vector_seconds}
)


def _fit_vector(seconds: Seconds, constants: Constants, rows: MeasuredRows) -> Constants:
    """The start, shared by all classes, and two shares per class."""
    ops = [str(op) for op in np.unique(rows.ops)]
    start = [constants.vector_start_ns, constants.vector_block_ns]
    start += [share for op in ops for share in (constants.vector_eta[op], constants.vector_hot_eta[op])]
    limits = np.array([_VECTOR_START, _VECTOR_BLOCK, *[_VECTOR_ETA] * (2 * len(ops))])

    def changed(x: Floats) -> Constants:
        return dataclasses.replace(
            constants,
            vector_start_ns=float(x[0]),
            vector_block_ns=float(x[1]),
            vector_eta=dict(constants.vector_eta) | dict(zip(ops, x[2::2].tolist(), strict=True)),
            vector_hot_eta=dict(constants.vector_hot_eta) | dict(zip(ops, x[3::2].tolist(), strict=True)),
        )

    def predict(x: Floats) -> Floats:
        return seconds(changed(x)) * 1e9

    return changed(fit_positive(predict, rows.latency_ns, np.array(start), *limits.T)[0])


def _score(rows: MeasuredRows, train: int, held_out: int, error: Floats) -> Score:
    return Score(rows.family, rows.dtype, train, held_out, float(np.median(error)), float(np.quantile(error, 0.95)))


def _with_errors(constants: Constants, error: Floats) -> Constants:
    return dataclasses.replace(
        constants, median_error=float(np.median(error)), p95_error=float(np.quantile(error, 0.95))
    )
