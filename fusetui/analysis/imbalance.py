"""How unevenly cores were used.

Core imbalance λ = max / mean - 1 of the busy time of the cores. Jain's index J = (Σx)² / (n Σx²).
Both are undefined for fewer than two cores and when all are idle.

A parallel step is the executions of one (host, request, fusion group, or name where no group is given) that ran on
two or more cores; its stretch is the busy time of its slowest core less the mean over its cores: the time the step
would have been shorter had the work been spread evenly. Executions without a request are in no step. Where the
rows name hosts but no device or core, a step spans hosts.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fusetui.analysis.arrays import Codes, Floats, Ints
from fusetui.analysis.columns import NULL
from fusetui.analysis.quantiles import nearest_rank
from fusetui.analysis.snapshot import Imbalance
from fusetui.analysis.work import Work


def spread_of(busy: npt.ArrayLike) -> tuple[float | None, float | None, str]:
    """(λ, Jain's index, why they are None) of the busy time per core (n,); NaN cores are left out."""
    values = np.asarray(busy, np.float64)
    values = values[~np.isnan(values)]
    if values.size == 0:
        return None, None, "no core in the window"
    if values.size == 1:
        return None, None, "one core only"
    total = float(values.sum())
    if total <= 0.0:
        return None, None, "all cores idle"
    largest = float(values.max())
    # Scaled by the maximum, so that squares neither overflow nor vanish.
    scaled = values / largest
    jain = float(scaled.sum() ** 2 / (values.size * np.dot(scaled, scaled)))
    return largest * values.size / total - 1.0, jain, ""


def lambda_by_slot(busy: Floats) -> Floats:
    """λ per slot of busy time [cores, S]; NaN where undefined. Returns [S]."""
    result = np.full(busy.shape[1], np.nan)
    if busy.shape[0] < 2:
        return result
    mean = np.nan_to_num(busy).sum(axis=0) / busy.shape[0]
    known = mean > 0
    result[known] = np.nan_to_num(busy).max(axis=0)[known] / mean[known] - 1.0
    return result


def stretch_of_steps(work: Work, across_hosts: bool) -> Ints:
    """The stretch of each parallel step, ns, (steps,)."""
    rows = work.rows
    chosen = np.flatnonzero(rows.request != NULL)
    if chosen.size == 0:
        return np.zeros(0, np.int64)
    group, name = rows.group[chosen].astype(np.int64), rows.name[chosen].astype(np.int64)
    part = np.where(group >= 0, group, -2 - name)
    host = np.zeros(chosen.size, np.int64) if across_hosts else rows.host[chosen].astype(np.int64)
    keys: tuple[Codes, ...] = (rows.place[chosen], part, rows.request[chosen], host)
    order = _order(keys)
    place, part_of, request, host_of = (key[order] for key in keys)
    new_step = np.ones(chosen.size, np.bool_)
    new_step[1:] = (part_of[1:] != part_of[:-1]) | (request[1:] != request[:-1]) | (host_of[1:] != host_of[:-1])
    new_core = new_step.copy()
    new_core[1:] |= place[1:] != place[:-1]
    core_begins = np.flatnonzero(new_core)
    per_core = np.add.reduceat(work.service[chosen][order], core_begins)
    step_begins = np.flatnonzero(new_step[core_begins])
    cores = np.diff(np.append(step_begins, per_core.size))
    slowest = np.maximum.reduceat(per_core, step_begins)
    mean = np.add.reduceat(per_core, step_begins) / cores
    return np.rint(slowest - mean).astype(np.int64)[cores > 1]


def _order(keys: tuple[Ints | Codes, ...]) -> Ints:
    """The order of rows by the last key, then the one before, …; one sort where the keys fit in one number."""
    cells = 1
    packed = np.zeros(len(keys[0]), np.int64)
    for key in reversed(keys):
        low = int(key.min())
        extent = int(key.max()) - low + 1
        cells *= extent
        if cells >= 1 << 62:
            return np.lexsort(keys)
        if extent > 1:
            packed = packed * extent + (key - low)
    return np.argsort(packed)


def imbalance_of(busy: npt.ArrayLike, stretch: Ints, why_no_steps: str) -> Imbalance:
    """λ and Jain of the busy time per core (n,) with the stretch of the steps (m,)."""
    lam, jain, why = spread_of(busy)
    if stretch.size == 0:
        reasons = "; ".join(reason for reason in (why, why_no_steps) if reason)
        return Imbalance(lambda_=lam, jain=jain, why=reasons)
    p50, p95 = nearest_rank(stretch, (0.5, 0.95))
    return Imbalance(lam, jain, p50, p95, int(stretch.max()), stretch.size, why)
