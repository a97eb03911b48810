"""Plan lookup: what runs for the size that came, and what that costs above the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from fusetui.accelerator.errors import AcceleratorError
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
from fusetui.accelerator.runtime.types import Bools, Floats, Ints

_TABLE_KEY: Final = 1 << 48
_LONGEST_NS: Final = 1 << 53


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
    bucket, mapping, cost_ns = rows.copy(), np.full(len(rows), HIT), np.zeros(len(config.tables), np.int64)
    for i in range(len(config.tables)):
        mine = table == i
        bucket[mine], mapping[mine] = find(rows[mine], config.lookup_of(i))
        cost_ns[i] = config.lookup_of(i).cost_ns
    parts, demand = _parts(config.tables, table, rows, bucket, mapping == GENERIC, output, work)
    made = np.flatnonzero((mapping == ADAPTED) | (mapping == RECOMPILED))
    keys, at = np.unique(rows[made] + table[made] * _TABLE_KEY, return_index=True)
    new = np.array([key not in seen for key in keys.tolist()], np.bool_)
    first = made[at[new]]
    parts[first, STALL] = cost_ns[table[first]]
    again = np.setdiff1d(made[mapping[made] == RECOMPILED], first)
    mapping[again] = HIT
    return Mapped(bucket, mapping, parts, demand, seen | frozenset(keys.tolist()))


def _parts(
    tables: Sequence[PlanTable], table: Ints, rows: Ints, bucket: Ints, generic: Bools, output: Ints, work: Floats
) -> tuple[Ints, Floats]:
    if len(tables) == 1:
        return kernel_parts(tables[0], rows, bucket, generic, output, work)
    parts, demand = np.zeros((len(rows), len(COMPONENTS)), np.int64), np.zeros(len(rows))
    for i, plans in enumerate(tables):
        mine = np.flatnonzero(table == i)
        parts[mine], demand[mine] = kernel_parts(
            plans, rows[mine], bucket[mine], generic[mine], output[mine], work[mine]
        )
    return parts, demand


def kernel_parts(
    plans: PlanTable, rows: Ints, bucket: Ints, generic: Bools, output: Ints, work: Floats
) -> tuple[Ints, Floats]:
    """(parts, demand): nothing is negative, also where the generic path beats the plan.

    With t what runs, b the best plan's time and p the plan's, both for the exact size: planned = min(b, t),
    unfused = min(p, t) - planned, and what is left of t is padding or fallback.
    """
    own, launch = plans.plan.time_ns(bucket, output)
    demand = plans.plan.demand_at(bucket)
    exact = own if np.array_equal(bucket, rows) else plans.plan.time_ns(rows, output)[0]
    best = exact if plans.best is None else plans.best.time_ns(rows, output)[0]
    if generic.any():
        other, other_launch = plans.fallback.time_ns(rows, output)
        own, launch = np.where(generic, other, own), np.where(generic, other_launch, launch)
        demand = np.where(generic, plans.fallback.demand_at(rows), demand)
    total = _whole(own * work)
    planned = np.minimum(_whole(best * work), total)
    to_plan = np.maximum(np.minimum(_whole(exact * work), total), planned)
    parts = np.zeros((len(rows), len(COMPONENTS)), np.int64)
    parts[:, LAUNCH] = _whole(launch)
    parts[:, PLANNED] = planned
    parts[:, UNFUSED] = to_plan - planned
    parts[:, PADDING] = np.where(generic, 0, total - to_plan)
    parts[:, FALLBACK] = np.where(generic, total - to_plan, 0)
    return parts, demand


def _whole(values_ns: Floats) -> Ints:
    if len(values_ns) and not values_ns.max() < _LONGEST_NS:
        raise AcceleratorError("plan table", "a job takes over 104 days", "check its times and the work asked for")
    rounded: Ints = np.rint(values_ns).astype(np.int64)
    return rounded
