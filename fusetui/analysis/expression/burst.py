"""Memory burst: how far the demand for DRAM peaks above what is sustained."""

from __future__ import annotations

from typing import Final

import numpy as np

from fusetui.analysis.arrays import Ints
from fusetui.analysis.busy import union_ns

WINDOW_NS: Final = 100_000


def burst_of(start: Ints, end: Ints, moved: Ints, window_ns: int = WINDOW_NS) -> float | None:
    """Most bytes in any window over what the mean demand while busy moves in one; None when nothing was moved.

    start, end  (n,) ns, end > start; moved (n,) bytes, taken as spread evenly over each interval
    """
    total = float(moved.sum()) if moved.size else 0.0
    if total <= 0.0:
        return None
    base = int(start.min())
    window_ns = min(window_ns, int(end.max()) - base)
    speed = moved / (end - start)
    edges = np.concatenate([start, end]) - base
    order = np.argsort(edges, kind="stable")
    at = edges[order].astype(np.float64)
    slope = np.concatenate([speed, -speed])[order].cumsum()
    done = np.concatenate([[0.0], (slope[:-1] * np.diff(at)).cumsum()])
    # Bytes in a window are piecewise linear in where it begins: the most is where it begins or ends at an edge.
    begins = np.concatenate([at, at - window_ns])
    inside = np.interp(begins + window_ns, at, done) - np.interp(begins, at, done)
    sustained = total / union_ns(start, end)
    return float(inside.max()) / window_ns / sustained
