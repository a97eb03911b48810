"""Robust fit of a few positive constants: least Huber loss of the log error, by damped least squares.

Levenberg (1944) and Marquardt (1963) steps, rows reweighted by Huber's function (1964) and a prior on every constant,
so that those the rows say nothing about stay at their defaults. Deterministic, numpy only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Predict = Callable[[Floats], Floats]

_HUBER: Final = 0.07  # log error beyond which a row counts linearly: libraries pick bad kernels now and then
_NOISE: Final = 0.1  # log error of one row that the prior is weighed against
_STEP: Final = 0.02  # of the finite differences, in logarithms
_ROUNDS: Final = 40
_DAMPING: Final = (1e-3, 1e5)  # at first; where no step helps any more
_STARTS: Final = (0.0, 1.0, -1.0)  # widths of the prior from its centre


def fit_positive(
    predict: Predict, measured: Floats, start: Floats, low: Floats, high: Floats, spread: Floats
) -> tuple[Floats, float]:
    """Constants (P,) that bring `predict(constants)` (N,) nearest to `measured` (N,) inside [low, high], and the loss.

    spread   width of the prior around `start`, in logarithms
    """
    centre, floor, ceiling = np.log(start), np.log(low), np.log(high)

    def errors(x: Floats) -> Floats:
        return np.asarray(np.log(predict(np.exp(x)) / measured))

    def loss(x: Floats, error: Floats) -> float:
        size = np.abs(error)
        huber = np.where(size < _HUBER, size * size / 2, _HUBER * (size - _HUBER / 2))
        return float(huber.sum()) + _NOISE**2 / 2 * float((((x - centre) / spread) ** 2).sum())

    best, least = centre, np.inf
    for away in _STARTS:
        x, found = _descend(
            errors, loss, np.clip(centre + away * spread / 2, floor, ceiling), centre, spread, (floor, ceiling)
        )
        if found < least:
            best, least = x, found
    return np.asarray(np.exp(best)), least


def _descend(
    errors: Predict,
    loss: Callable[[Floats, Floats], float],
    x: Floats,
    centre: Floats,
    spread: Floats,
    limits: tuple[Floats, Floats],
) -> tuple[Floats, float]:
    """The point with the least loss that steps from `x` reach, and its loss."""
    stiff = _NOISE**2 / spread**2
    damping, most = _DAMPING
    error = errors(x)
    least = loss(x, error)
    for _ in range(_ROUNDS):
        slopes = np.stack([(errors(x + d) - errors(x - d)) / (2 * _STEP) for d in _STEP * np.eye(len(x))], axis=1)
        weight = np.minimum(1.0, _HUBER / np.maximum(np.abs(error), 1e-12))
        normal = (slopes * weight[:, None]).T @ slopes + np.diag(stiff)
        slope = slopes.T @ (weight * error) + stiff * (x - centre)
        before = least
        while damping < most:
            to = np.clip(x - np.linalg.solve(normal + damping * np.diag(np.diag(normal)), slope), *limits)
            new = errors(to)
            value = loss(to, new)
            if value < least:
                x, error, least, damping = to, new, value, max(damping / 5, 1e-6)
                break
            damping *= 4
        if before - least < 1e-5 * before:
            break
    return x, least
