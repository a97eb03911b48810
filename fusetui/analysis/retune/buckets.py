"""Plans for sizes that have none of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from fusetui.accelerator.runtime.config import Config, Lookup
from fusetui.accelerator.runtime.lookup import find
from fusetui.accelerator.runtime.outcome import GENERIC
from fusetui.accelerator.runtime.paths import PlanTable
from fusetui.analysis.arrays import Bools, Ints
from fusetui.analysis.fmt import duration
from fusetui.analysis.retune.action import MODEL, ONLY_THESE, Action, Change, Cost, Slice, to_config, with_lookup
from fusetui.analysis.retune.paths import planned_at
from fusetui.analysis.retune.seen import slice_of, slice_of_jobs
from fusetui.analysis.retune.tables import Table, listed, requests, told, took
from fusetui.analysis.twin.model import Twin

MOST_BUCKETS: Final = 8
MOST_ASKED: Final = 64
ROUND: Final = 8
"""New sizes are multiples of this where so many came that none is of its own."""
ENOUGH: Final = 20
"""Jobs of a size from which it is worth a change."""
WORTH: Final = 0.02
"""Share of a table's work, or of what there is to gain, from which a size is looked at."""
INTERPOLATED: Final = "that a plan for a new size takes what lies between those that were measured"


def add_buckets(twin: Twin, table: Table, stall_ns: int | None) -> Iterator[Action]:
    """Plans for sizes that pad or fall back: the few that save most; for a decode batch also up to what was reached."""
    sizes = table.sizes
    worth = sizes.excess_ns.sum() >= WORTH * _work(twin, table)
    came = (sizes.n >= ENOUGH) | (twin.config.decode is not None)
    if not worth or not came.any():
        return
    chosen = [_best_sizes(table, came)]
    if twin.config.decode is not None and sizes.rows[-1] > table.top:
        chosen = [_ladder(table.top, 2 * table.top), _ladder(table.top, int(sizes.rows[-1])), *chosen]
    largest = int(table.plans.plan.rows[-1])
    if table.model is None:  # measured times say nothing of larger sizes
        above = sizes.rows[came & (sizes.rows > largest) & (sizes.generic > 0)]
        most = above[np.argsort(-sizes.n[np.isin(sizes.rows, above)], kind="stable")][:MOST_BUCKETS]
        if twin.config.decode is not None and len(above):
            most = np.array(_ladder(table.top, int(above[-1])))
        chosen = [tuple(s for s in chosen[-1] if s <= largest), tuple(sorted(most.tolist()))]
    for new in dict.fromkeys(chosen):
        if new and (_served(table, tuple(sorted({*table.lookup.captured, *new}))) & (sizes.excess_ns > 0)).any():
            yield _add(twin, table, new, stall_ns)


def _work(twin: Twin, table: Table) -> float:
    jobs = twin.outcome.jobs
    mine = jobs.table == table.index
    return float((jobs.end_ns - jobs.start_ns)[mine].sum())


def _best_sizes(table: Table, came: Bools) -> tuple[int, ...]:
    """Greedy: the size that saves most, until what is left to gain is not worth one more."""
    rows, n = table.sizes.rows, table.sizes.n
    asked = rows[came & (table.sizes.excess_ns > 0) & (rows >= 1)]
    if len(asked) > MOST_ASKED:  # round sizes, each holding as many of those that came
        asked = asked[np.unique(np.linspace(0, len(asked) - 1, MOST_ASKED).astype(np.int64))]
        asked = np.unique(-(-asked // ROUND) * ROUND)
    if not len(asked):
        return ()
    captured = table.lookup.captured
    chosen: list[int] = []
    cost = _cost(table, captured, rows, n)
    gain_at_first = cost - _cost(table, tuple(sorted({*captured, *asked.tolist()})), rows, n)
    while len(chosen) < MOST_BUCKETS:
        tried = [(_cost(table, tuple(sorted({*captured, size})), rows, n), size) for size in asked.tolist()]
        least, size = min(tried)
        if cost - least < WORTH * max(gain_at_first, 1.0):
            break
        cost, captured = least, tuple(sorted({*captured, size}))
        chosen.append(size)
    return tuple(sorted(chosen))


def _cost(table: Table, captured: tuple[int, ...], rows: Ints, n: Ints) -> float:
    """Time of all jobs with these sizes planned, by the times that are known, ns."""
    top = max(captured[-1], table.lookup.limit or 0)
    bucket, mapping = find(rows, replace(table.lookup, captured=captured, limit=top))
    return float((took(table, rows, bucket, mapping == GENERIC) * n).sum())


def _ladder(top: int, until: int) -> tuple[int, ...]:
    """Sizes above top, each half as much again as the one before, in steps of 8, that hold `until`."""
    sizes: list[int] = []
    while top < until and len(sizes) < MOST_BUCKETS:
        top = min(-(-top * 3 // 16) * 8, -(-until // 8) * 8)
        sizes.append(top)
    return tuple(sizes)


def _add(twin: Twin, table: Table, new: tuple[int, ...], stall_ns: int | None) -> Action:
    captured = tuple(sorted({*table.lookup.captured, *new}))
    raised = f" (raises the limit from {table.top} to {captured[-1]})" if captured[-1] > table.top else ""
    largest = int(table.plans.plan.rows[-1])
    why_not, memory, proves_not = "", None, (ONLY_THESE, INTERPOLATED)
    plans = None
    if table.model is not None and twin.scenario is not None:
        plans, memory = planned_at(twin.scenario, table.model, new)
        proves_not = (ONLY_THESE, MODEL)
    elif new[-1] > largest:
        why_not = f"no plan of {new[-1]} or more ran: what one would take is not known; capture it once and compare"
    served = _served(table, captured) & (table.sizes.excess_ns > 0)
    excess, n = int(table.sizes.excess_ns[served].sum()), int(table.sizes.n[served].sum())
    fell = bool(table.sizes.generic[served].sum())
    work = "steps" if twin.config.decode is not None else "jobs"
    return Action(
        knob=f"buckets {table.stream}",
        title=f"{told(table)}add buckets {listed(new)}{raised}",
        stream=table.stream,
        bottleneck="fallback" if fell else "compute",
        owner="compiler",
        why=f"{n:,} {work} of sizes without a plan of their own took {duration(excess).strip()} more than planned",
        slice=_shown(twin, table, served, fell),
        cost=Cost(len(new), None if stall_ns is None else stall_ns * len(new), memory),
        rollback=f"capture {listed(table.lookup.captured)} as before",
        does_not_prove=proves_not,
        change=None if why_not else _captured(table.index, new, plans),
        why_not=why_not,
    )


def _served(table: Table, captured: tuple[int, ...]) -> Bools:
    """(b,) sizes that would run something else."""
    rows = table.sizes.rows
    wider = replace(table.lookup, captured=captured, limit=max(captured[-1], table.lookup.limit or 0))
    before, after = find(rows, table.lookup), find(rows, wider)
    changed: Bools = (before[0] != after[0]) | (before[1] != after[1])
    return changed


def _captured(index: int, new: tuple[int, ...], plans: PlanTable | None) -> Change:
    """More sizes captured, with the plans for them where they are known."""

    def wider(lookup: Lookup) -> Lookup:
        captured = tuple(sorted({*lookup.captured, *new}))
        return replace(lookup, captured=captured, limit=lookup.limit and max(lookup.limit, captured[-1]))

    def make(config: Config) -> Config:
        changed = with_lookup(config, index, wider)
        if plans is None:
            return changed
        if config.decode is not None:
            return replace(changed, decode=plans)
        tables = list(changed.tables)
        tables[index] = plans
        return replace(changed, tables=tuple(tables))

    return to_config(make)


def _shown(twin: Twin, table: Table, served: Bools, fell: bool) -> Slice:
    """The requests of these sizes; of a continuous batch, which mixes them, its steps."""
    rows = table.sizes.rows[served]
    if twin.config.decode is None:
        return slice_of(twin, requests(twin, table, rows))
    jobs = twin.outcome.jobs
    way = "fallback" if fell else "adapted"
    steps = (jobs.table == table.index) & np.isin(jobs.rows, rows)
    return slice_of_jobs(twin, steps, f"kind = execution and mapping = {way}")
