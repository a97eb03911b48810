"""What caused the tail: the same arrivals simulated with each set of drivers on and off, and shares that add up.

Removing one driver at a time does not add up, because drivers work together; Shapley's shares do. Shapley (1953);
interactions: Grabisch and Roubens (1999).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import ceil, factorial, log
from typing import Final, Literal

import numpy as np

from fusetui.accelerator.errors import AcceleratorError
from fusetui.accelerator.runtime.config import Config
from fusetui.accelerator.runtime.load import Load
from fusetui.accelerator.runtime.outcome import Outcome
from fusetui.accelerator.runtime.simulate import simulate

_MOST_DRIVERS: Final = 10


@dataclass(frozen=True, slots=True)
class Driver:
    """Something that may cost latency, and the runtime without it."""

    name: str
    without: Callable[[Config], Config]


@dataclass(frozen=True, slots=True)
class Attribution:
    """Shares of `total` = everything on - everything off, in the unit of the scale.

    values        by set of drivers that are on: bit i of the index is drivers[i]
    shares        one a driver; they sum to the total
    removed_alone what goes when only this driver goes: these do not add up
    interactions  (driver, driver, value), largest first: above 0 they make each other worse
    """

    drivers: tuple[str, ...]
    scale: Literal["ns", "log"]
    values: tuple[float, ...]
    total: Fraction
    shares: tuple[Fraction, ...]
    removed_alone: tuple[Fraction, ...]
    interactions: tuple[tuple[str, str, Fraction], ...]


def nearest_rank(values: np.ndarray, q: float) -> int:
    """The ceil(q n)-th smallest of n values. Raises AcceleratorError of none."""
    if not len(values):
        raise AcceleratorError("quantile", "of no request", "give a load of one or more")
    rank = max(ceil(q * len(values) - 1e-9), 1) - 1
    return int(np.partition(values, rank)[rank])


def counterfactuals(load: Load, config: Config, drivers: Sequence[Driver]) -> list[Outcome]:
    """One run for each set of drivers, bit i of the index set while drivers[i] is on; random numbers in common."""
    if not 1 <= len(drivers) <= _MOST_DRIVERS:
        raise AcceleratorError("drivers", f"{len(drivers)} given", f"1 to {_MOST_DRIVERS}")
    runs = []
    for on in range(1 << len(drivers)):
        changed = config
        for i, driver in enumerate(drivers):
            if not on >> i & 1:
                changed = driver.without(changed)
        runs.append(simulate(load, changed))
    return runs


def attribute(drivers: Sequence[str], values: Sequence[float], scale: Literal["ns", "log"] = "ns") -> Attribution:
    """Shapley shares of 2^k values, in exact arithmetic. `log` gives shares of the logarithm: of a ratio, not a time.

    The choice of scale changes the shares, so it is to be shown with them.
    """
    k = len(drivers)
    if len(values) != 1 << k or not 1 <= k <= _MOST_DRIVERS:
        raise AcceleratorError("attribution", f"{len(values)} values for {k} drivers", f"give {1 << k}")
    if scale == "log" and min(values) <= 0:
        raise AcceleratorError("attribution", "a value of 0 has no logarithm", "use the scale ns")
    v = [Fraction(log(x)) if scale == "log" else Fraction(x) for x in values]
    everything = (1 << k) - 1
    alone = tuple(v[everything] - v[everything ^ (1 << i)] for i in range(k))
    pairs = [(drivers[i], drivers[j], _interaction(v, k, i, j)) for i, j in combinations(range(k), 2)]
    pairs.sort(key=lambda pair: -abs(pair[2]))
    shares = tuple(_share(v, k, i) for i in range(k))
    return Attribution(
        tuple(drivers), scale, tuple(values), v[everything] - v[0], shares, alone, tuple(pairs)
    )  # fmt: skip


def _share(v: Sequence[Fraction], k: int, i: int) -> Fraction:
    """Mean over all orders of what driver i adds when it comes."""
    total = Fraction(0)
    for s in range(1 << k):
        if not s >> i & 1:
            size = s.bit_count()
            total += factorial(size) * factorial(k - size - 1) * (v[s | 1 << i] - v[s])
    return total / factorial(k)


def _interaction(v: Sequence[Fraction], k: int, i: int, j: int) -> Fraction:
    """Mean of what both add together above what each adds."""
    total = Fraction(0)
    for s in range(1 << k):
        if not (s >> i & 1 or s >> j & 1):
            size = s.bit_count()
            both = v[s | 1 << i | 1 << j] - v[s | 1 << i] - v[s | 1 << j] + v[s]
            total += factorial(size) * factorial(k - size - 2) * both
    return total / factorial(k - 1)
