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
"""A core is slow in a slot when its median job takes this many times what the like took on the others."""
SIGMAS: Final = 4.0
"""And when that is this far above how much the cores differ anyway."""
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
    over = _over(middle)
    if np.isnan(over).all():
        return ()
    noise = 1.4826 * float(np.nanmedian(np.abs(over - 1)))
    with np.errstate(invalid="ignore"):
        slow = over >= max(SLOWER, 1 + SIGMAS * noise)
    found = []
    for core in range(cores):
        for is_slow, run in groupby(range(SLOTS), key=slow[core].tolist().__getitem__):
            at = list(run)
            if is_slow and len(at) > 1:
                found.append(Slow(core, float(np.median(over[core, at])), at[0] * width, (at[-1] + 1) * width))
    return tuple(found)


def _over(middle: Floats) -> Floats:
    """(cores, slots) of each core over the median of the others in the same slot, NaN unknown."""
    over = np.full(middle.shape, np.nan)
    for slot in range(middle.shape[1]):
        known = np.flatnonzero(~np.isnan(middle[:, slot]))
        for core in known.tolist() if len(known) > 1 else ():
            over[core, slot] = middle[core, slot] / np.median(middle[known[known != core], slot])
    return over


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
