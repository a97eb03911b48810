"""The online flag: Page-Hinkley on standardised values, its thresholds calibrated on a reference.

g_t = max(0, g_{t-1} + z_t - δ) upwards (Page 1954; Hinkley 1971), and the same of -z downwards, where
z = (y - centre) / scale of the reference. The threshold of each side is the least that raises no more flags per
window than wanted, in series
that resample the reference in blocks (so that neighbours stay alike), against a centre and a scale that are
themselves of resampled references: with few windows, not knowing them well is most of the false alarms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from fusetui.analysis.arrays import Floats, Ints
from fusetui.analysis.changepoint.series import nearest_rank_of, tail_share
from fusetui.analysis.intervals.values import Values

SLACK: Final = 0.5
"""δ: half of the smallest lasting shift worth a flag, in standard deviations."""
LEAST: Final = 20
"""Windows a reference needs."""
_SERIES: Final = 300
_HORIZON: Final = 300
_LIMITS: Final = np.geomspace(1.5, 60.0, 32)


@dataclass(frozen=True, slots=True)
class Flag:
    """The series left its reference at index `at`; up: it rose; began: where its sum last was 0, at the latest."""

    at: int
    began: int
    up: bool


class PageHinkley:
    """Calibrated by a reference (m,), m >= LEAST, of finite values; `update` takes the values that follow.

    rate  false alarms per quiet window, both sides together
    A flag is raised once; the side is armed again when its sum is back at 0.
    """

    def __init__(self, reference: Floats, *, rate: float = 0.001, seed: int = 0) -> None:
        if reference.size < LEAST:
            raise ValueError(f"a reference needs {LEAST} windows, have {reference.size}")
        self.centre, self.scale = _centre(reference), _scale(reference)
        self.up_limit, self.down_limit = _thresholds(reference, rate / 2.0, seed)
        self._sum = [0.0, 0.0]
        self._began = [0, 0]
        self._raised = [False, False]
        self._at = 0

    def update(self, value: float) -> Flag | None:
        """The flag that this value raises, if any. Indices count from the first value after the reference."""
        at, self._at = self._at, self._at + 1
        if not math.isfinite(value):
            return None
        z = (value - self.centre) / self.scale
        raised = None
        for side, (step, limit) in enumerate(((z, self.up_limit), (-z, self.down_limit))):
            if self._sum[side] == 0.0:
                self._began[side] = at
            # No more than twice the limit: once the series is back, the sum is back soon.
            self._sum[side] = min(max(self._sum[side] + step - SLACK, 0.0), 2.0 * limit)
            if self._sum[side] == 0.0:
                self._raised[side] = False
            elif self._sum[side] > limit and not self._raised[side]:
                self._raised[side] = True
                raised = Flag(at, self._began[side], side == 0)
        return raised


def online_flags(items: Values, per: int, reference_n: int, *, rate: float = 0.001, seed: int = 0) -> list[Flag]:
    """The flags of durations (n,) in the order of time, in windows of `per`, of which the first reference_n are quiet.

    The series is the share of each window above the p95 of the reference: with 200 items it shows +50 % of a real
    service's latency 6 standard deviations up, its own p95 only 1.5.
    """
    cut = nearest_rank_of(items[: per * reference_n], 0.95)
    return flags(tail_share(items, per, cut), reference_n, rate=rate, seed=seed)


def flags(values: Floats, reference_n: int, *, rate: float = 0.001, seed: int = 0) -> list[Flag]:
    """The flags of a series (n,), whose first reference_n values are the reference; indices are of the series."""
    detector = PageHinkley(values[:reference_n], rate=rate, seed=seed)
    found = (detector.update(value) for value in values[reference_n:].tolist())
    return [Flag(f.at + reference_n, f.began + reference_n, f.up) for f in found if f is not None]


def _centre(reference: Floats) -> float:
    return float(reference.mean())


def _scale(reference: Floats) -> float:
    # The plain deviation: a robust one understates the noise of a quantile that jumps between two modes.
    return max(float(reference.std(ddof=1)), 1e-9)


def _thresholds(reference: Floats, rate: float, seed: int) -> tuple[float, float]:
    rng = np.random.default_rng(seed)
    m = reference.size
    block = max(1, round(m ** (1 / 3)))
    learnt = reference[_blocks(rng, m, block, _SERIES, m)]
    centre = learnt.mean(axis=1)
    scale = np.maximum(learnt.std(axis=1, ddof=1), _scale(reference) / 4.0)
    z = (reference[_blocks(rng, m, block, _SERIES, _HORIZON)] - centre[:, None]) / scale[:, None]
    return _limit(z.T, rate), _limit(-z.T, rate)


def _limit(z: Floats, rate: float) -> float:
    """The least of _LIMITS with at most `rate` flags per window in standardised series z (horizon, series)."""
    horizon, series = z.shape
    limits = _LIMITS[:, None]
    sums = np.zeros((limits.size, series))
    raised = np.zeros(sums.shape, np.bool_)
    flagged = np.zeros(limits.size)
    for step in z - SLACK:
        np.clip(sums + step, 0.0, 2.0 * limits, out=sums)
        over = sums > limits
        flagged += (over & ~raised).sum(axis=1)
        raised = (raised | over) & (sums > 0.0)
    quiet = flagged / (horizon * series) <= rate
    return float(_LIMITS[int(np.argmax(quiet))] if quiet.any() else _LIMITS[-1])


def _blocks(rng: np.random.Generator, m: int, block: int, series: int, length: int) -> Ints:
    """Indices into m values, (series, length), in circular blocks that begin anywhere."""
    starts = rng.integers(0, m, (series, -(-length // block)))
    return ((starts[:, :, None] + np.arange(block)).reshape(series, -1) % m)[:, :length]
