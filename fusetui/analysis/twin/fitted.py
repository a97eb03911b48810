"""The twin of a trace of which no scenario is known: everything from telemetry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from fusetui.accelerator.runtime.config import Batching, Config, Lookup, Placement, PlacementKind
from fusetui.accelerator.runtime.load import Load, Stream
from fusetui.accelerator.runtime.paths import PlanTable
from fusetui.accelerator.runtime.simulate import simulate
from fusetui.analysis.arrays import Floats, Ints
from fusetui.analysis.twin.continuous import continuous_of
from fusetui.analysis.twin.jobs import Jobs, jobs_of, ran_for
from fusetui.analysis.twin.model import fit_of
from fusetui.analysis.twin.requests import ABSENT, Requests
from fusetui.analysis.twin.stragglers import slow_cores, slow_factor
from fusetui.analysis.twin.tables import table_of

if TYPE_CHECKING:
    import polars as pl

_PLACEMENTS: Final[tuple[PlacementKind, ...]] = ("shared", "least_loaded", "round_robin", "hashed")
_MOST_STREAMS: Final = 64
_CONTINUOUS: Final = "a continuous batch: data dependent work, slow cores and shared bandwidth are left out"
_NO_WAIT: Final = (
    "every request begins as it comes and names no core, so that waiting is not told from work: record start_ns when "
    "it is first on a device"
)
_OVERLAP: Final = 0.05
"""Share of jobs that begin before the one before on their core is done, from which a core runs several at once."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """A load and a runtime read off telemetry."""

    load: Load
    config: Config
    notes: tuple[str, ...]


def fitted_of(frame: pl.DataFrame, came: Requests, plans: Mapping[str, str]) -> Fitted | str:
    """Load and runtime of the requests; or why not and what to do, in one line. plans: the header's descriptions."""
    if len(came.streams) > _MOST_STREAMS:
        return f"{len(came.streams)} streams are more than {_MOST_STREAMS}: filter the trace to fewer"
    came, ran, dispatch = ran_for(frame, came, plans)
    jobs = jobs_of(came, ran, dispatch)
    if not len(jobs):
        return "no request tells when it began: record start_ns, or executions with the request's number"
    if not came.cores and bool((jobs.first == jobs.start).all()):
        return _NO_WAIT
    notes: list[str] = []
    cores, overlap = _servers(jobs, came.cores, notes)
    if overlap:  # a batch that requests join and leave has no job of its own
        running = continuous_of(frame, came, came.cores, plans)
        if running is not None:
            return Fitted(*running, (_CONTINUOUS,))
        jobs = jobs_of(replace(came, batch=np.ones_like(came.batch)), ran, dispatch)
    tables, lookups, base = _tables(came, jobs)
    slow = () if overlap else slow_cores(jobs, jobs.service / base, int(came.enqueue[0]), cores)
    factor = slow_factor(slow, jobs, int(came.enqueue[0]))
    work = np.ones(len(came))
    known = jobs.of != ABSENT
    work[known] = (jobs.service / base / factor)[jobs.of[known]]
    load = Load.of(
        came.enqueue - came.enqueue[0], came.tokens, came.output, stream=came.stream, work=work,
        streams=[Stream(name) for name in came.streams],
    )  # fmt: skip
    batching = tuple(_batching(jobs, i) for i in range(len(came.streams)))
    config = Config(tables, cores, batching=batching, lookup=lookups, slow=slow)
    if not any(jobs.generic):
        notes.append("nothing fell back: how long the generic path takes is not known")
    notes.append("priorities, shared bandwidth and exposed launches are not told apart: they are in the service times")
    return Fitted(load, _placed(load, config, came), tuple(notes))


def _servers(jobs: Jobs, cores: int, notes: list[str]) -> tuple[int, bool]:
    """(how many jobs can run at once, whether cores run several): named cores, else as many as ran at once."""
    times = np.concatenate([jobs.end, jobs.start])
    change = np.repeat([-1, 1], len(jobs))
    most = max(int(np.cumsum(change[np.argsort(times, kind="stable")]).max()), 1)
    if not cores or bool((jobs.core == ABSENT).any()):
        notes.append(f"no core is named: as many as the {most} that ran at once are assumed")
        return most, True
    order = np.lexsort((jobs.start, jobs.core))
    same = jobs.core[order][1:] == jobs.core[order][:-1]
    early = same & (jobs.start[order][1:] < jobs.end[order][:-1])
    if early.sum() > _OVERLAP * len(jobs):
        notes.append(f"requests overlap on their cores: they count as {most} servers, and do not slow each other")
        return most, True
    return cores, False


def _tables(came: Requests, jobs: Jobs) -> tuple[tuple[PlanTable, ...], tuple[Lookup, ...], Floats]:
    """(table of each stream, its lookup, (m,) ns that the table says for each job as it ran)."""
    tables, lookups = [], []
    base = np.ones(len(jobs))
    for i, name in enumerate(came.streams):
        mine = np.flatnonzero(jobs.stream == i)
        table, lookup = table_of(name, jobs, mine if len(mine) else np.arange(len(jobs)))
        generic = jobs.generic[mine]
        planned = table.plan.time_ns(jobs.ran[mine])[0]
        base[mine] = np.maximum(np.where(generic, table.fallback.time_ns(jobs.rows[mine])[0], planned), 1.0)
        tables.append(table)
        lookups.append(lookup)
    return tuple(tables), tuple(lookups), base


def _batching(jobs: Jobs, stream: int) -> Batching:
    """As seen: alone, always full, or as full as came until some time after the first."""
    mine = np.flatnonzero(jobs.stream == stream)
    most = int(jobs.size[mine].max(initial=1))
    part = mine[jobs.size[mine] < most]
    if most == 1:
        return Batching()
    if len(part) <= 1:
        return Batching("size", most)
    leaves = np.where(jobs.dispatch[part] != ABSENT, jobs.dispatch[part], jobs.start[part])
    wait = np.maximum(leaves, jobs.last[part]) - jobs.first[part]
    return Batching("deadline", most, int(np.sort(wait)[(len(wait) - 1) // 2]))


def _placed(load: Load, config: Config, came: Requests) -> Config:
    """With the placement whose p50, p95 and p99 come closest to the trace's; the first of equals."""
    if config.cores == 1:
        return config
    measured: Ints = np.where(came.ended, came.end - came.enqueue, ABSENT)
    best, least = config, np.inf
    for kind in _PLACEMENTS:
        tried = _with_placement(config, kind)
        error = fit_of(measured, simulate(load, tried)).error
        worst = max((abs(e) for e in error if e is not None), default=0.0)
        if worst < least:
            best, least = tried, worst
        if least < 0.02:
            break
    return best


def _with_placement(config: Config, kind: PlacementKind) -> Config:
    return replace(config, placement=Placement(kind))
