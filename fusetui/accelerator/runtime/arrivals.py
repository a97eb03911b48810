"""When requests come and how large they are: Poisson, bursts, a rate over time, and shape mixes that drift.

Every maker is seeded (PCG64): the same seed gives the same bytes. Logs of real requests need none of this: give their
arrays to `Load.of` and keep arrivals and shapes together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from fusetui.accelerator.errors import AcceleratorError
from fusetui.accelerator.runtime.types import Floats, Ints


def generator(seed: int, what: int = 0) -> np.random.Generator:
    """An independent generator for each thing drawn from one seed."""
    return np.random.Generator(np.random.PCG64([seed, what]))


def poisson(rate_per_s: float, n: int, seed: int) -> Ints:
    """(n,) arrivals at a constant rate, ns."""
    return varying([0.0], [rate_per_s], n, seed)


def varying(from_s: ArrayLike, rate_per_s: ArrayLike, n: int, seed: int) -> Ints:
    """(n,) Poisson arrivals whose rate is `rate_per_s[i]` from `from_s[i]` on (from 0, ascending); the last stays.

    Unit rate arrivals are mapped through the inverse of the cumulative rate (Cinlar's inversion).
    """
    at, rate = np.asarray(from_s, np.float64), np.asarray(rate_per_s, np.float64)
    if at.shape != rate.shape or at.ndim != 1 or not len(at) or at[0] != 0 or np.any(np.diff(at) <= 0):
        raise AcceleratorError("arrivals", "rates do not start at 0 or are not in order", "one time for each rate")
    if not (np.isfinite(rate) & (rate >= 0)).all() or not rate[-1] > 0:
        raise AcceleratorError("arrivals", "a rate is negative, or the last is 0", "give rates of 0 or more")
    due = np.cumsum(generator(seed).exponential(size=n))
    expected = np.concatenate([[0.0], np.cumsum(np.diff(at) * rate[:-1])])
    piece = np.searchsorted(expected, due, side="right") - 1
    arrival: Ints = np.rint((at[piece] + (due - expected[piece]) / rate[piece]) * 1e9).astype(np.int64)
    return arrival


def bursty(quiet_per_s: float, burst_per_s: float, quiet_s: float, burst_s: float, n: int, seed: int) -> Ints:
    """(n,) arrivals of a two state Markov modulated Poisson process that starts quiet; mean stays in each state."""
    if not (quiet_s > 0 and burst_s > 0 and quiet_per_s >= 0 and burst_per_s > 0):
        raise AcceleratorError("arrivals", "a burst without rate or a state without length", "use numbers above 0")
    rng = generator(seed, 1)
    expected = (quiet_per_s * quiet_s + burst_per_s * burst_s) / 2
    stays = 2 * (int(n / expected) + 8)
    length = np.where(np.arange(stays) % 2 == 0, quiet_s, burst_s) * rng.exponential(size=stays)
    length = np.maximum(length, 1e-9)
    rate = np.where(np.arange(stays) % 2 == 0, quiet_per_s, burst_per_s)
    return varying(np.cumsum(length) - length, rate, n, seed)


@dataclass(frozen=True, slots=True)
class Mix:
    """Sizes that come together with their shares: `tokens[i]` with `output[i]` generated ones, from `from_s` on."""

    tokens: tuple[int, ...]
    shares: tuple[float, ...]
    output: tuple[int, ...] = ()
    from_s: float = 0.0


def shapes(arrival_ns: Ints, mixes: Sequence[Mix], seed: int) -> tuple[Ints, Ints]:
    """(tokens, output) of each arrival, drawn from the mix in force then: drift is one mix after another."""
    if not mixes or mixes[0].from_s != 0 or any(a.from_s >= b.from_s for a, b in pairwise(mixes)):
        raise AcceleratorError(
            "shape mix", "does not start at 0 or is not in order", "one mix from 0 s, then later ones"
        )
    draw = generator(seed, 2).random(len(arrival_ns))
    phase = np.searchsorted([m.from_s * 1e9 for m in mixes], arrival_ns, side="right") - 1
    tokens, output = np.zeros(len(arrival_ns), np.int64), np.zeros(len(arrival_ns), np.int64)
    for i, mix in enumerate(mixes):
        mine = phase == i
        chosen = _pick(draw[mine], np.asarray(mix.shares, np.float64), len(mix.tokens))
        tokens[mine] = np.asarray(mix.tokens, np.int64)[chosen]
        if mix.output:
            output[mine] = np.asarray(mix.output, np.int64)[chosen]
    return tokens, output


def _pick(draw: Floats, shares: Floats, n: int) -> Ints:
    if len(shares) != n or not (shares >= 0).all() or not shares.sum() > 0:
        raise AcceleratorError("shape mix", "shares do not go with its sizes", "one share of 0 or more for each size")
    edges = np.cumsum(shares / shares.sum())
    return np.minimum(np.searchsorted(edges, draw, side="right"), n - 1)
