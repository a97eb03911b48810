"""Work that comes faster than it ends, from when it came and ended alone: for logs that tell nothing in between.

In progress is what came and has not ended. A window begins with none of it, so that it grows for as long as the first
takes, whatever the load: an overload is a growth with which latency grows as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from fusetui.analysis.arrays import Floats, Ints

LEAST: Final = 20
"""In progress at the peak, and items on each side that are compared."""
OUTRUN: Final = 1.5
SLOWER: Final = 2.0
PART: Final = 0.05
"""Of all items come in the build-up, at least: at nine tenths of the load chance alone builds up a hundredth."""
_FOOT: Final = 0.25


@dataclass(frozen=True, slots=True)
class Backlog:
    """The largest build-up: from_ns to peak_ns, then until drained_ns, when a tenth of the peak was left (None: not).

    came, ended   items that came and ended while it grew; peak: in progress at peak_ns; before: at from_ns
    calm_ns, late_ns  median latency of those that came before it (of its first quarter where too few did), and of the
                      last quarter that came in it
    """

    from_ns: int
    peak_ns: int
    drained_ns: int | None
    came: int
    ended: int
    before: int
    peak: int
    calm_ns: float
    late_ns: float

    @property
    def came_per_s(self) -> float:
        """Arrivals a second while it grew."""
        return self.came / max(self.peak_ns - self.from_ns, 1) * 1e9

    @property
    def ended_per_s(self) -> float:
        """Ends a second while it grew."""
        return self.ended / max(self.peak_ns - self.from_ns, 1) * 1e9


def backlog_of(came: Ints, end: Ints) -> Backlog | None:
    """Of items (n,) by when they came and ended, ns; None where nothing piled up. See the module."""
    if len(came) < 2 * LEAST:
        return None
    order = np.argsort(came, kind="stable")
    came, latency = came[order], (end - came)[order].astype(np.float64)
    ends = np.sort(end)
    progress = np.arange(1, len(came) + 1) - np.searchsorted(ends, came, side="right")
    top = int(np.argmax(progress))
    peak = int(progress[top])
    low = np.flatnonzero(progress[:top] <= peak * _FOOT)
    foot = int(low[-1]) if low.size else 0
    ended = int(np.searchsorted(ends, came[top], side="right") - np.searchsorted(ends, came[foot], side="right"))
    if peak < LEAST or top - foot < max(LEAST, PART * len(came), OUTRUN * ended):
        return None
    calm, late = _sides(latency, foot, top)
    if late < SLOWER * calm:
        return None
    after = np.arange(len(ends)) + 1
    left = np.searchsorted(came, ends, side="right") - after
    drained = np.flatnonzero((ends > came[top]) & (left <= peak * 0.1))
    return Backlog(
        int(came[foot]), int(came[top]), int(ends[drained[0]]) if drained.size else None, top - foot, ended,
        int(progress[foot]), peak, calm, late,
    )  # fmt: skip


def _sides(latency: Floats, foot: int, top: int) -> tuple[float, float]:
    quarter = max((top - foot) // 4, 1)
    before = latency[:foot] if foot >= LEAST else latency[foot : foot + quarter]
    return float(np.median(before)), float(np.median(latency[top - quarter : top + 1]))
