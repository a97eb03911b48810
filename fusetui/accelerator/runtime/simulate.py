"""A load on a runtime: gate, plan lookup, queue and placement, completion, and where every nanosecond went."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusetui.accelerator.errors import AcceleratorError
from fusetui.accelerator.runtime import bandwidth, continuous, events, fcfs
from fusetui.accelerator.runtime.arrivals import generator
from fusetui.accelerator.runtime.batching import gate
from fusetui.accelerator.runtime.config import Config, Split
from fusetui.accelerator.runtime.idle import idle_between
from fusetui.accelerator.runtime.load import Load
from fusetui.accelerator.runtime.lookup import Mapped, map_jobs
from fusetui.accelerator.runtime.outcome import (
    CONTENTION,
    FALLBACK,
    GATE,
    LAUNCH,
    MISPLACED,
    PADDING,
    PLANNED,
    QUEUE,
    SLOW,
    STALL,
    UNFUSED,
    Jobs,
    Outcome,
)
from fusetui.accelerator.runtime.queues import make_queues
from fusetui.accelerator.runtime.types import Floats, Ints
from fusetui.accelerator.runtime.work import Ran, Speed, Work, assigned

_KERNEL = [PLANNED, UNFUSED, PADDING, FALLBACK]


def simulate(load: Load, config: Config, *, after: Outcome | None = None) -> Outcome:
    """Run a load. Raises AcceleratorError where the load and the runtime do not fit together.

    after  a run of the same runtime that came before on the same clock: its cores are busy until they were done, and
           the plans it made are there (not for continuous batching, whose running batch is not carried over)
    """
    if len(config.tables) not in (1, len(load.streams)):
        raise AcceleratorError("runtime", f"{len(config.tables)} plan tables for {len(load.streams)} streams",
                               "one for all or one each")  # fmt: skip
    if isinstance(config.batching, tuple) and len(config.batching) != len(load.streams):
        raise AcceleratorError("runtime", f"{len(config.batching)} gates for {len(load.streams)} streams", "one each")
    if config.decode is not None:
        if after is not None:
            raise AcceleratorError("runtime", "continuous batching cannot go on from an earlier run", "simulate in one")
        return continuous.simulate(load, config)
    free_ns = np.zeros(config.cores, np.int64) if after is None else after.free_ns
    unit, leaves = gate(load, config)
    units = _units(load, config, unit, leaves)
    mapped = map_jobs(units.rows, units.output, units.work, units.table, config, after.seen if after else frozenset())
    parts, owner, slow_part = _split(mapped, config.split)
    kernel = parts[:, _KERNEL].sum(axis=1) + slow_part
    fixed = parts[:, STALL] + parts[:, LAUNCH]
    busy_share = np.divide(kernel, fixed + kernel, out=np.zeros(len(kernel)), where=fixed + kernel > 0)
    priority = np.array([s.priority for s in load.streams], np.int64)[units.stream[owner]]
    work = Work(
        units.ready_ns[owner], fixed, kernel, units.stream[owner], priority, mapped.demand[owner] * busy_share
    )  # fmt: skip
    ran = place(work, config, free_ns)
    parts[:, SLOW] = slow_part + ran.slow_ns
    parts[:, CONTENTION] = ran.end_ns - ran.start_ns - fixed - kernel - ran.slow_ns
    waits = ran.start_ns - work.ready_ns
    if config.cores > 1 and config.placement.kind not in ("shared", "unlimited"):
        idle = idle_between(work.ready_ns, ran.start_ns, ran.start_ns, ran.end_ns, free_ns)
        parts[:, MISPLACED] = idle
        waits = waits - idle
    parts[:, QUEUE] = waits
    jobs = Jobs(
        work.stream, units.table[owner], units.requests[owner], units.rows[owner], mapped.bucket[owner],
        mapped.mapping[owner], ran.core, work.ready_ns, ran.start_ns, ran.end_ns, parts, mapped.demand[owner],
    )  # fmt: skip
    return _outcome(load, config, jobs, units.of_request, owner, leaves, mapped.seen)


def place(work: Work, config: Config, free_ns: Ints) -> Ran:
    """Jobs on cores, by the cheapest exact way for the policy."""
    speed, kind = Speed(config.slow, config.cores), config.placement.kind
    if config.contention:
        return bandwidth.run(work, config, make_queues(work, config, free_ns), free_ns, speed)
    core = assigned(work, config)
    if kind == "unlimited" and core is not None:
        return Ran(core, work.ready_ns, work.ready_ns + work.fixed_ns + work.kernel_ns, np.zeros_like(core))
    ranked = len(work) > 0 and int(work.priority.min()) != int(work.priority.max())
    if not ranked:
        if core is not None and kind != "stealing":
            return fcfs.by_core(work, core, free_ns, speed)
        if kind == "shared" or (kind == "least_loaded" and not config.slow):
            return fcfs.first_free(work, free_ns, speed)
    return events.run(work, make_queues(work, config, free_ns), free_ns, speed)


@dataclass(frozen=True, slots=True)
class _Units:
    """What leaves the gate, in dispatch order (u,); `of_request` (n,) says which unit each request is in."""

    of_request: Ints
    ready_ns: Ints
    stream: Ints
    table: Ints
    requests: Ints
    rows: Ints
    output: Ints
    work: Floats


def _units(load: Load, config: Config, batch: Ints, leaves: Ints) -> _Units:
    if not len(load) or int(batch.max()) + 1 == len(load):
        return _each(load, config, leaves)
    count = np.bincount(batch)
    n = len(count)
    ready, stream, output = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    ready[batch], stream[batch] = leaves, load.stream
    np.maximum.at(output, batch, load.output)
    rows = np.zeros(n, np.int64)
    np.add.at(rows, batch, load.tokens)
    # A batch has as much to do above its shape as its requests have, by their rows.
    weight = np.maximum(load.tokens, 1)
    work = np.bincount(batch, load.work * weight, n) / np.bincount(batch, weight, n)
    order = np.argsort(ready, kind="stable")
    rank = np.empty(n, np.int64)
    rank[order] = np.arange(n)
    table = stream if len(config.tables) > 1 else np.zeros(n, np.int64)
    return _Units(
        rank[batch], ready[order], stream[order], table[order], count[order], rows[order], output[order], work[order]
    )


def _each(load: Load, config: Config, leaves: Ints) -> _Units:
    """Every request for itself."""
    n = len(load)
    order = np.argsort(leaves, kind="stable")
    rank = np.empty(n, np.int64)
    rank[order] = np.arange(n)
    stream = load.stream[order]
    table = stream if len(config.tables) > 1 else np.zeros(n, np.int64)
    return _Units(
        rank, leaves[order], stream, table, np.ones(n, np.int64), load.tokens[order], load.output[order],
        load.work[order],
    )  # fmt: skip


def _split(mapped: Mapped, split: Split) -> tuple[Ints, Ints, Ints]:
    """(component ns of each part, unit of each part, ns that a slow part takes longer)."""
    units = len(mapped.bucket)
    owner = np.arange(units)
    parts = mapped.parts
    if split.parts > 1:
        owner = np.repeat(owner, split.parts)
        parts = parts[owner]
        parts[:, _KERNEL] = np.rint(parts[:, _KERNEL] / split.parts).astype(np.int64)
    slow = np.zeros(len(owner), np.int64)
    if split.slow_share > 0:
        hit = generator(split.seed, 5).random(len(owner)) < split.slow_share
        slow = np.where(hit, np.rint(parts[:, _KERNEL].sum(axis=1) * (split.slow_factor - 1)), 0).astype(np.int64)
    return parts, owner, slow


def _outcome(
    load: Load, config: Config, jobs: Jobs, unit: Ints, owner: Ints, leaves: Ints, seen: frozenset[int]
) -> Outcome:
    """A request is done with the last part of its unit, and its components are that part's."""
    k = config.split.parts
    ends, starts = jobs.end_ns.reshape(-1, k), jobs.start_ns.reshape(-1, k)
    last = ends.argmax(axis=1) + np.arange(len(ends)) * k
    job = last[unit]
    parts = jobs.parts[job]
    parts[:, GATE] = leaves - load.arrival_ns
    end = jobs.end_ns[job]
    return Outcome(load, config, jobs, job, leaves, starts.min(axis=1)[unit], end, end, parts, seen)
