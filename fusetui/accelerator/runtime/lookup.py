"""Plan lookup: what runs for the size that came, and what that costs above the best."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusetui.accelerator.runtime.config import Config, Lookup
from fusetui.accelerator.runtime.outcome import (
    ADAPTED,
    COMPONENTS,
    FALLBACK,
    GENERIC,
    HIT,
    LAUNCH,
    PADDED,
    PADDING,
    PLANNED,
    RECOMPILED,
    STALL,
    UNFUSED,
)
from fusetui.accelerator.runtime.paths import PlanTable
from fusetui.accelerator.runtime.types import Floats, Ints

_TABLE_KEY = 1 << 48


@dataclass(frozen=True, slots=True)
class Mapped:
    """Jobs as they will run, (m,) each; `parts` (m, components) ns: stall, launch and the four kinds of kernel time."""

    bucket: Ints
    mapping: Ints
    parts: Ints
    demand: Floats
    seen: frozenset[int]


def find(rows: Ints, lookup: Lookup) -> tuple[Ints, Ints]:
    """(bucket, mapping code) of each size; a size a plan is made for is ADAPTED or RECOMPILED whenever it comes."""
    mapping = np.full(len(rows), HIT)
    bucket = rows.copy()
    top = lookup.limit
    if lookup.captured:
        captured = np.array(lookup.captured, np.int64)
        top = int(captured[-1]) if top is None else top
        nearest = captured[np.minimum(np.searchsorted(captured, rows), len(captured) - 1)]
        fits = (nearest >= rows) & (nearest <= lookup.pad_limit * rows)
        bucket = np.where(fits, nearest, rows)
        miss = {"fallback": GENERIC, "adapt": ADAPTED, "recompile": RECOMPILED}[lookup.miss]
        mapping = np.where(nearest == rows, HIT, np.where(fits, PADDED, miss))
    if top is not None:
        mapping = np.where(rows > top, GENERIC, mapping)
    return np.where(mapping == GENERIC, rows, bucket), mapping


def map_jobs(
    rows: Ints, output: Ints, work: Floats, table: Ints, config: Config, seen: frozenset[int] = frozenset()
) -> Mapped:
    """What runs for jobs in dispatch order. The first job of a size that needs a new plan stalls while it is made."""
    bucket, mapping = find(rows, config.lookup)
    parts = np.zeros((len(rows), len(COMPONENTS)), np.int64)
    demand = np.zeros(len(rows))
    for i, plans in enumerate(config.tables):
        mine = np.flatnonzero(table == i)
        if len(mine):
            parts[mine], demand[mine] = kernel_parts(
                plans, rows[mine], bucket[mine], mapping[mine] == GENERIC, output[mine], work[mine]
            )
    made = np.flatnonzero((mapping == ADAPTED) | (mapping == RECOMPILED))
    keys, at = np.unique(rows[made] + table[made] * _TABLE_KEY, return_index=True)
    new = np.array([key not in seen for key in keys.tolist()], np.bool_)
    first = made[at[new]]
    parts[first, STALL] = config.lookup.cost_ns
    again = np.setdiff1d(made[mapping[made] == RECOMPILED], first)
    mapping[again] = HIT
    return Mapped(bucket, mapping, parts, demand, seen | frozenset(keys.tolist()))


def kernel_parts(
    plans: PlanTable, rows: Ints, bucket: Ints, generic: np.ndarray, output: Ints, work: Floats
) -> tuple[Ints, Floats]:
    """(parts, demand): nothing is negative, also where the generic path beats the plan.

    With t what runs, b the best plan's time and p the plan's, both for the exact size: planned = min(b, t),
    unfused = min(p, t) - planned, and what is left of t is padding or fallback.
    """
    own, own_launch = plans.plan.time_ns(bucket, output)
    other, other_launch = plans.fallback.time_ns(rows, output)
    runs = np.where(generic, other, own) * work
    exact = plans.plan.time_ns(rows, output)[0] * work
    best = exact if plans.best is None else plans.best.time_ns(rows, output)[0] * work
    total = np.rint(runs).astype(np.int64)
    planned = np.minimum(np.rint(best).astype(np.int64), total)
    to_plan = np.maximum(np.minimum(np.rint(exact).astype(np.int64), total), planned)
    parts = np.zeros((len(rows), len(COMPONENTS)), np.int64)
    parts[:, LAUNCH] = np.rint(np.where(generic, other_launch, own_launch)).astype(np.int64)
    parts[:, PLANNED] = planned
    parts[:, UNFUSED] = to_plan - planned
    parts[:, PADDING] = np.where(generic, 0, total - to_plan)
    parts[:, FALLBACK] = np.where(generic, total - to_plan, 0)
    return parts, np.where(generic, plans.fallback.demand_at(rows), plans.plan.demand_at(bucket))
