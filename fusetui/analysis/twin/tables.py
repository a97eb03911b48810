"""Plan tables and lookup of a stream, from what its jobs took: measured, nothing is modelled."""

from __future__ import annotations

from typing import Final

import numpy as np

from fusetui.accelerator.runtime.config import Lookup, Miss
from fusetui.accelerator.runtime.paths import Path, PlanTable
from fusetui.analysis.arrays import Floats, Ints
from fusetui.analysis.twin.jobs import Jobs
from fusetui.telemetry.schema import ADAPTED, MAPPINGS

MOST_SIZES: Final = 64
"""Different sizes that have a time of their own; more are put together by their order."""
_ADAPTED: Final = MAPPINGS.index(ADAPTED)


def table_of(name: str, jobs: Jobs, mine: Ints) -> tuple[PlanTable, Lookup]:
    """Median service time by size of what ran under plans and of what fell back.

    mine  the stream's jobs (indices), one at least
    Where nothing fell back the generic path is not known: it stands as the plan's.
    """
    generic = jobs.generic[mine]
    planned, fell = mine[~generic], mine[generic]
    plan = _path(jobs.ran[planned], jobs.service[planned], "planned") if len(planned) else None
    fallback = _path(jobs.rows[fell], jobs.service[fell], "fallback") if len(fell) else None
    known = plan or fallback
    assert known is not None
    return PlanTable(name, plan or known, fallback or known), _lookup(jobs, planned, fell)


def _path(sizes: Ints, service: Ints, name: str) -> Path:
    knots, times = medians(sizes, service)
    return Path.of(knots, times, name=name)


def medians(sizes: Ints, service: Ints) -> tuple[Ints, Floats]:
    """(sizes ascending, median service of each): at most MOST_SIZES, of as many jobs each if there are more."""
    order = np.lexsort((service, sizes))
    sizes, service = sizes[order], service[order]
    knots, first = np.unique(sizes, return_index=True)
    if len(knots) > MOST_SIZES:
        cuts = np.unique(sizes[np.linspace(0, len(sizes) - 1, MOST_SIZES).astype(np.int64)])
        bucket = np.minimum(np.searchsorted(cuts, sizes), len(cuts) - 1)
        order = np.lexsort((service, bucket))
        service, bucket = service[order], bucket[order]
        used, first = np.unique(bucket, return_index=True)
        knots = cuts[used]
    n = np.diff(np.append(first, len(sizes)))
    middle = first + (n + 1) // 2 - 1
    return knots, service[middle].astype(np.float64)


def _lookup(jobs: Jobs, planned: Ints, fell: Ints) -> Lookup:
    """Sizes that plans ran at, when padding or the generic path shows that not every size has a plan."""
    rows, ran = jobs.rows[planned], jobs.ran[planned]
    padded = ran > rows
    retuned = (jobs.mapping[planned] == _ADAPTED) & ~padded
    sizes = np.unique(ran[~retuned])
    if not len(planned) or not (len(fell) or padded.any() or retuned.any()):
        return Lookup()
    if len(sizes) > MOST_SIZES and not padded.any():
        return Lookup(limit=int(sizes[-1]))
    pad_limit = float((ran[padded] / np.maximum(rows[padded], 1)).max()) if padded.any() else 1.0
    limit = max(int(rows.max()), int(sizes[-1]) if len(sizes) else 1)
    inside = int((jobs.rows[fell] <= limit).sum())
    miss: Miss = "adapt" if int(retuned.sum()) > inside else "fallback"
    captured = tuple(int(size) for size in sizes.tolist() if size >= 1)
    return Lookup(captured, limit, max(pad_limit, 1.0), miss)
