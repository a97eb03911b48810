"""When a device that a program drives stood idle between its first execution and its last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from fusetui.analysis.arrays import Ints

LONGEST: Final = 5


@dataclass(frozen=True, slots=True)
class Idle:
    """Of the device that was busy most.

    span_ns     from its first begin to its last end; idle_ns: of that nothing ran; gaps: how many times
    longest_ns  the longest gap, which begins at longest_at_ns; few_ns: the five longest together
    median_ns   of the gaps
    """

    span_ns: int
    idle_ns: int
    gaps: int
    longest_ns: int
    longest_at_ns: int
    few_ns: int
    median_ns: int


def idle_of(device: Ints, start: Ints, end: Ints) -> Idle | None:
    """Of executions (n,) with dense ids of their devices; None of none."""
    if not len(start):
        return None
    most = int(np.argmax(np.bincount(device, np.maximum(end - start, 0))))
    mine = device == most
    order = np.argsort(start[mine], kind="stable")
    begin, reached = start[mine][order], np.maximum.accumulate(end[mine][order])
    wide = np.maximum(begin[1:] - reached[:-1], 0)
    gaps = np.sort(wide[wide > 0])
    if not gaps.size:
        return Idle(int(reached[-1] - begin[0]), 0, 0, 0, int(begin[0]), 0, 0)
    at = int(np.argmax(wide))
    return Idle(
        int(reached[-1] - begin[0]), int(gaps.sum()), len(gaps), int(gaps[-1]), int(reached[at]),
        int(gaps[-LONGEST:].sum()), int(gaps[(len(gaps) - 1) // 2]),
    )  # fmt: skip
