"""A quantile before and after: the ratio and the difference with their confidence intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final, Literal

import numpy as np

from fusetui.analysis.intervals.dependence import dependence
from fusetui.analysis.intervals.harrell_davis import harrell_davis, log_error
from fusetui.analysis.intervals.ordered import RESAMPLES, resampled
from fusetui.analysis.intervals.size import too_small, worth_too_little
from fusetui.analysis.intervals.values import Values

Method = Literal["hd", "bootstrap"]
_NORMAL: Final = NormalDist()


@dataclass(frozen=True, slots=True)
class Ratio:
    """after / before; None where it is not known, with the reason in `why`.

    before, after   the quantile (or mean, or share) of each side
    low, high       confidence interval of the ratio
    shift_low, shift_high  the same of after - before, in the unit of the values
    worth           how many values one independent value is worth, the larger of both sides (see `dependence`)
    """

    n_before: int
    n_after: int
    before: float | None = None
    after: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    shift_low: float | None = None
    shift_high: float | None = None
    worth: float = 1.0
    why: str = ""

    @property
    def moved(self) -> int:
        """1: more, -1: less, 0: the interval holds "no change", or nothing is known."""
        if self.shift_low is None or self.shift_high is None:
            return 0
        return (self.shift_low > 0.0) - (self.shift_high < 0.0)


def quantile_ratio(
    before: Values,
    after: Values,
    q: float,
    *,
    level: float = 0.95,
    method: Method = "bootstrap",
    seed: int = 0,
    independent: bool = False,
) -> Ratio:
    """The ratio of the quantile q of two samples (n,), (m,), each in the order of time, values >= 0.

    method       hd: Harrell-Davis with Maritz-Jarrett errors on the log scale; bootstrap: percentiles, by `seed`
    independent  take neighbours as independent, as resamplings are
    Nothing where n min(q, 1-q) < 3 on either side, nor where neighbours are so alike that fewer than 6 count.
    """
    n, m = before.size, after.size
    if not n or not m:
        return Ratio(n, m, why="no samples")
    old, new = (float(_rank(side, q)) for side in (before, after))
    why = too_small(q, n, m)
    if why:
        return Ratio(n, m, old, new, _over(old, new), why=why)
    worth = [1.0, 1.0] if independent else [dependence(side, q) for side in (before, after)]
    why = worth_too_little(q, max(worth), n, m)
    if why:
        return Ratio(n, m, old, new, _over(old, new), worth=max(worth), why=why)
    ordered = [np.sort(side) for side in (before, after)]
    interval = _hd if method == "hd" else _bootstrap
    return interval(ordered, q, worth, (old, new), level, seed)


def _hd(
    ordered: list[Values], q: float, worth: list[float], values: tuple[float, float], level: float, seed: int
) -> Ratio:
    centre = (harrell_davis(ordered[0], q), harrell_davis(ordered[1], q))
    errors = [log_error(side, q) * math.sqrt(each) for side, each in zip(ordered, worth, strict=True)]
    z = _NORMAL.inv_cdf((1.0 + level) / 2.0)
    reach = z * math.hypot(*errors)
    ratio = _over(*centre)
    low = high = None
    if ratio:
        # The log scale is the one that holds the promised level: the difference follows from it.
        low, high = ratio * math.exp(-reach), ratio * math.exp(reach)
        shifts = (centre[0] * (low - 1.0), centre[0] * (high - 1.0))
    else:
        wide = z * math.hypot(*(c * e for c, e in zip(centre, errors, strict=True)))
        shifts = (centre[1] - centre[0] - wide, centre[1] - centre[0] + wide)
    n, m = (side.size for side in ordered)
    return Ratio(n, m, *values, ratio, low, high, *shifts, max(worth))


def _bootstrap(
    ordered: list[Values], q: float, worth: list[float], values: tuple[float, float], level: float, seed: int
) -> Ratio:
    rng = np.random.default_rng(seed)
    resamples = max(RESAMPLES, math.ceil(40.0 / (1.0 - level)))
    old, new = (resampled(side, q, rng, each, resamples) for side, each in zip(ordered, worth, strict=True))
    ends = ((1.0 - level) / 2.0, (1.0 + level) / 2.0)
    shift_low, shift_high = np.quantile(new - old, ends).tolist()
    low = high = None
    if old.min() > 0.0:
        low, high = np.quantile(new / old, ends).tolist()
    n, m = (side.size for side in ordered)
    return Ratio(n, m, *values, _over(*values), low, high, shift_low, shift_high, max(worth))


def _over(before: float, after: float) -> float | None:
    return after / before if before > 0.0 else None


def _rank(values: Values, q: float) -> float:
    rank = max(math.ceil(q * values.size - 1e-9), 1) - 1
    return float(np.partition(values, rank)[rank])
