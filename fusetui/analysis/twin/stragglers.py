"""Cores that were slow for a while: their jobs took longer than the same jobs on the others."""

from __future__ import annotations

from itertools import groupby
from typing import Final

import numpy as np

from fusetui.accelerator.runtime.config import Slow
from fusetui.analysis.arrays import Floats, Ints
from fusetui.analysis.twin.jobs import Jobs

SLOTS: Final = 30
SLOWER: Final = 1.2
"""A core is slow in a slot when its median job takes this many times what the same job took in the whole trace."""
ENOUGH: Final = 5
"""Jobs that a core needs in a slot to be judged."""


def slow_cores(jobs: Jobs, residual: Floats, start_ns: int, cores: int) -> tuple[Slow, ...]:
    """Windows of slots, ns since start_ns, in which a core was slow and the others were not.

    residual  (m,) service of each job over the median of its like
    """
    if cores < 2:
        return ()
    width = max((int(jobs.start.max()) - start_ns) // SLOTS + 1, 1)
    slot = (jobs.start - start_ns) // width
    middle = np.full((cores, SLOTS), np.nan)
    for cell, values in _cells(jobs.core * SLOTS + slot, residual):
        if len(values) >= ENOUGH:
            middle[cell // SLOTS, cell % SLOTS] = float(np.median(values))
    found = []
    for core in range(cores):
        others = np.delete(middle, core, axis=0)
        with np.errstate(invalid="ignore"):
            usual = np.array([np.nanmedian(o) if not np.isnan(o).all() else np.nan for o in others.T])
            over = middle[core] / usual
            slow = over >= SLOWER
        for is_slow, run in groupby(range(SLOTS), key=lambda i: bool(slow[i])):
            at = list(run)
            if is_slow and len(at) > 1:
                found.append(Slow(core, float(np.median(over[at])), at[0] * width, (at[-1] + 1) * width))
    return tuple(found)


def slow_factor(slow: tuple[Slow, ...], jobs: Jobs, start_ns: int) -> Floats:
    """(m,) how much slower the core of each job was."""
    factor = np.ones(len(jobs))
    at = jobs.start - start_ns
    for s in slow:
        hit = (jobs.core == s.core) & (at >= s.from_ns) & (at < s.to_ns)
        factor[hit] = np.maximum(factor[hit], s.factor)
    return factor


def _cells(cell: Ints, values: Floats) -> list[tuple[int, Floats]]:
    order = np.argsort(cell, kind="stable")
    kinds, first = np.unique(cell[order], return_index=True)
    return list(zip(kinds.tolist(), np.split(values[order], first[1:]), strict=True))
