"""Larger sizes that run faster: what padding to the best of them would gain.

Only measured times are worth choosing by: where kernels get faster with size it is because the library chooses another
one, which prices of the best tile do not know. Chosen by one half of public measurements and judged by the other, no
proposal beyond a margin of 10 % was slower, and they found three quarters of the sizes with more than 10 % to gain
(`tests/bench/bench_adaptation.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

MARGIN: Final = 0.1


@dataclass(frozen=True, slots=True)
class Proposal:
    """Run `size` padded to `pad_to`, > size; gain = time / padded_time - 1, of times in the caller's unit."""

    size: int
    pad_to: int
    time: float
    padded_time: float
    gain: float


def best_padding(times: Mapping[int, float], margin: float = MARGIN, reach: float = np.inf) -> list[Proposal]:
    """For each size the larger one with the smallest time, where it gains more than the margin; in order of size.

    times   size -> time of running it; times that are not finite and positive are left out
    margin  proposals must gain more than this, as times are only so exact: time / padded_time - 1 > margin
    reach   pad to at most this many times the size
    Of equally fast sizes the smallest is taken.
    """
    good = sorted((m, t) for m, t in times.items() if m > 0 and 0 < t < np.inf)
    sizes = np.array([m for m, _ in good], np.float64)
    values = np.array([t for _, t in good])
    found = []
    for at, (size, time) in enumerate(good):
        within = int(np.searchsorted(sizes, size * reach, side="right"))
        if within - at < 2:
            continue
        to = at + 1 + int(np.argmin(values[at + 1 : within]))
        gain = time / float(values[to]) - 1
        if gain > margin:
            found.append(Proposal(size, good[to][0], time, float(values[to]), gain))
    return found
