"""Log histograms of durations on the OpenTelemetry exponential grid of scale 5 (base 2^(1/32)).

Bucket 0 holds the value 0. Bucket i >= 1 holds the integers v with 2^((i-2)/32) < v <= 2^((i-1)/32), as the
OpenTelemetry data model maps them (upper bound included), so bucket 1 is the value 1. A bucket's representative
lies within (b-1)/(b+1) = 1.083 % of everything in it. Histograms on this grid merge by adding.
"""

from __future__ import annotations

from math import isqrt
from typing import Final

import numpy as np

from fusetui.analysis.arrays import Codes, Floats, Ints

PER_OCTAVE: Final = 32
OCTAVES: Final = 62
BUCKETS: Final = PER_OCTAVE * OCTAVES + 2
MAX_VALUE: Final = 1 << OCTAVES

_CELL_BITS: Final = 11  # mantissa bits used to guess a bucket: a cell is 45 times narrower than a bucket
_MANTISSA_BITS: Final = 23
_EXPONENT_BIAS: Final = 127


def _root32(power: int) -> int:
    """floor(2^(power/32)), exactly: five nested integer square roots."""
    value = 1 << power
    for _ in range(5):
        value = isqrt(value)
    return value


# _UPPER[i] is the largest integer in bucket i.
_UPPER: Final[Ints] = np.array([0, *(_root32(i) for i in range(BUCKETS - 1))], np.int64)


def _cell_buckets() -> Codes:
    """The bucket in which each cell of the positive float32 up to 2^62 begins; all below 1 belongs to bucket 0."""
    step = np.ceil(PER_OCTAVE * np.log2(1.0 + np.arange(1 << _CELL_BITS) / (1 << _CELL_BITS)) - 1e-9)
    buckets = np.zeros((_EXPONENT_BIAS + OCTAVES + 1, 1 << _CELL_BITS), np.int16)
    buckets[_EXPONENT_BIAS:] = step + PER_OCTAVE * np.arange(OCTAVES + 1)[:, None] + 1
    return buckets.reshape(-1)


_CELL_BUCKET: Final = _cell_buckets()

EDGES: Final[Floats] = np.concatenate([[0.0], 2.0 ** ((np.arange(BUCKETS) - 1) / PER_OCTAVE)])
"""[BUCKETS + 1] float64: bucket i reaches from EDGES[i] to EDGES[i + 1]; the first two edges belong to the value 0."""
EDGES[1] = 2.0 ** (-1 / PER_OCTAVE)

_BASE: Final = 2.0 ** (1 / PER_OCTAVE)
REPRESENTATIVE: Final[Floats] = np.concatenate([[0.0], EDGES[2:] * 2.0 / (_BASE + 1.0)])
"""[BUCKETS] float64: the value that stands for a bucket, equally far from both edges in relative terms."""


def bucket_of(values: Ints) -> Codes:
    """The bucket of each value; negative values count as 0, values above 2^62 as 2^62. int16, shape of `values`."""
    if values.size == 0:
        return np.zeros(0, np.int16)
    low, high = int(values.min()), int(values.max())
    if low < 0 or high > MAX_VALUE:
        values = np.clip(values, 0, MAX_VALUE)
    # A float32 may round a value up into the next cell, but never past the edge of a bucket: those edges that are
    # not powers of two lie at least 1/100 of a cell away from where the next cell begins, 40 times what is rounded.
    cells = values.astype(np.float32).view(np.int32) >> (_MANTISSA_BITS - _CELL_BITS)
    guess: Codes = _CELL_BUCKET.take(cells)
    guess += values > _UPPER.take(guess)
    return guess


def rank_bucket(counts: Ints, q: float) -> int:
    """The bucket that holds the nearest-rank q-quantile of `counts` [BUCKETS]; counts must not be all 0."""
    cumulative = np.cumsum(counts)
    rank = nearest_rank_index(int(cumulative[-1]), q)
    return int(np.searchsorted(cumulative, rank + 1))


def nearest_rank_index(n: int, q: float) -> int:
    """Position of the q-quantile in n sorted values by nearest rank, from 0: ceil(q n - 1e-9) - 1."""
    return min(max(int(np.ceil(q * n - 1e-9)), 1), n) - 1


def rank_buckets(counts: Codes, q: float) -> Ints:
    """As `rank_bucket`, for each row of counts [R, BUCKETS]; -1 for an empty row. Returns [R]."""
    cumulative = np.cumsum(counts, axis=1)
    totals = cumulative[:, -1]
    ranks = np.clip(np.ceil(q * totals - 1e-9), 1, None).astype(np.int64)
    found = (cumulative < ranks[:, None]).sum(axis=1)
    return np.where(totals > 0, found, -1)


class LogHistogram:
    """Counts of one duration; n values, the largest one kept exactly.

    counts  [BUCKETS] int64
    """

    def __init__(self) -> None:
        self.counts: Ints = np.zeros(BUCKETS, np.int64)
        self.n = 0
        self.max = 0

    def add(self, values: Ints) -> None:
        """Count values in ns, shape (n,) int64."""
        if values.size == 0:
            return
        self.counts += np.bincount(bucket_of(values), minlength=BUCKETS)
        self.n += values.size
        self.max = max(self.max, int(values.max()))

    def merge(self, other: LogHistogram) -> None:
        """Add another histogram's counts: the same as having added its values."""
        self.counts += other.counts
        self.n += other.n
        self.max = max(self.max, other.max)

    def quantile(self, q: float) -> int | None:
        """Nearest-rank quantile within 1.1 %; None when empty."""
        if self.n == 0:
            return None
        return min(round(float(REPRESENTATIVE[rank_bucket(self.counts, q)])), self.max)
