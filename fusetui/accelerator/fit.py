"""Robust fit of a few positive constants: least Huber loss of the log error, by Nelder and Mead's simplex (1965).

Deterministic, numpy only. A weak prior holds constants that the rows say nothing about at their defaults.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Loss = Callable[[Floats], float]

_HUBER: Final = 0.15  # log error beyond which a row counts linearly: libraries pick bad kernels now and then
_PRIOR: Final = 0.01
_ROUNDS: Final = 40  # of the simplex, per constant


def fit_positive(
    predict: Callable[[Floats], Floats], measured: Floats, start: Floats, low: Floats, high: Floats, spread: Floats
) -> Floats:
    """Constants (P,) that bring `predict(constants)` (N,) nearest to `measured` (N,), inside [low, high].

    spread   width of the prior around `start`, in logarithms; also the size of the first simplex
    """
    centre, floor, ceiling = np.log(start), np.log(low), np.log(high)

    def loss(x: Floats) -> float:
        inside = np.clip(x, floor, ceiling)
        error = np.abs(np.log(predict(np.exp(inside)) / measured))
        huber = np.where(error < _HUBER, error * error / 2, _HUBER * (error - _HUBER / 2))
        prior = float((((inside - centre) / spread) ** 2).sum()) * _PRIOR / len(measured)
        return float(huber.mean()) + prior + float(((x - inside) ** 2).sum())

    rounds = _ROUNDS * len(start)
    best = simplex(loss, centre, spread / 2, rounds)
    # A second start from the end escapes a simplex that collapsed early.
    return np.asarray(np.exp(np.clip(simplex(loss, best, spread / 4, rounds), floor, ceiling)))


def simplex(loss: Loss, start: Floats, step: Floats, rounds: int) -> Floats:
    """Point with the least loss after `rounds` of reflection, expansion, contraction or shrinking."""
    points = np.vstack([start, start + np.diag(step)])
    losses = np.array([loss(p) for p in points])
    for _ in range(rounds):
        order = np.argsort(losses, kind="stable")
        points, losses = points[order], losses[order]
        centre = points[:-1].mean(axis=0)
        reflected = 2 * centre - points[-1]
        at = loss(reflected)
        if at < losses[0]:
            further = 3 * centre - 2 * points[-1]
            beyond = loss(further)
            points[-1], losses[-1] = (further, beyond) if beyond < at else (reflected, at)
        elif at < losses[-2]:
            points[-1], losses[-1] = reflected, at
        else:
            _contract(loss, points, losses, centre, reflected, at)
    return np.asarray(points[losses.argmin()])


def _contract(loss: Loss, points: Floats, losses: Floats, centre: Floats, reflected: Floats, at: float) -> None:
    """Pull the worst point in, or every point towards the best; in place."""
    towards = reflected if at < losses[-1] else points[-1]
    inside = (centre + towards) / 2
    value = loss(inside)
    if value < min(at, losses[-1]):
        points[-1], losses[-1] = inside, value
        return
    points[1:] = (points[1:] + points[0]) / 2
    losses[1:] = [loss(p) for p in points[1:]]
