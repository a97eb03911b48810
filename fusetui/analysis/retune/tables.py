"""The plan tables of a twin that know only some sizes, with what each was asked for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusetui.accelerator.runtime.config import Lookup
from fusetui.accelerator.runtime.paths import PlanTable
from fusetui.accelerator.scenario.spec import Model
from fusetui.analysis.arrays import Bools, Floats, Ints
from fusetui.analysis.retune.action import lookups
from fusetui.analysis.retune.seen import Sizes, names_of, of_table, sizes_of
from fusetui.analysis.twin.model import Twin


@dataclass(frozen=True, slots=True)
class Table:
    """One plan table of a twin with what it was asked for; `index` is one past the last for the decode."""

    index: int
    plans: PlanTable
    lookup: Lookup
    model: Model | None
    sizes: Sizes
    stream: str
    known: bool

    @property
    def top(self) -> int:
        """Largest size there is a plan for."""
        return self.lookup.captured[-1]


def tables_of(twin: Twin) -> list[Table]:
    """The tables whose lookup knows only some sizes."""
    config, scenario, found = twin.config, twin.scenario, []
    decode = config.decode is not None
    indices = [len(config.tables)] if decode else list(range(len(config.tables)))
    for i in indices:
        lookup = lookups(config)[0 if decode else i]
        if not lookup.captured:
            continue
        plans = config.decode if config.decode is not None else config.tables[i]
        model = None
        if scenario is not None:
            model = scenario.model(scenario.decode if decode else scenario.streams[i].model)
        sizes = sizes_of(twin, i)
        known = twin.exact or bool(sizes.generic.sum())
        if len(sizes.rows):
            found.append(Table(i, plans, lookup, model, sizes, names_of(twin, i), known))
    return found


def took(table: Table, rows: Ints, bucket: Ints, generic: Bools) -> Floats:
    """ns of jobs of these sizes in these buckets, or on the generic path, with the launches they wait for, (b,)."""
    plan, generic_path = table.plans.plan.time_ns(bucket), table.plans.fallback.time_ns(rows)
    return np.where(generic, generic_path[0] + generic_path[1], plan[0] + plan[1])


def requests(twin: Twin, table: Table, rows: Ints) -> Bools:
    """(n,) requests of the table whose job had one of these sizes."""
    if twin.config.decode is not None:
        return np.ones(len(twin.load), np.bool_)
    jobs = twin.outcome.jobs
    return of_table(twin, table.index) & np.isin(jobs.rows[twin.outcome.job], rows)


def told(table: Table) -> str:
    """What a title begins with: the stream, where there are several."""
    return f"{table.stream}: " if table.stream else ""


def listed(sizes: tuple[int, ...]) -> str:
    """`150, 300, 600`."""
    return ", ".join(str(size) for size in sizes)
