"""Jobs unrolled into their kernels: one row each, for the telemetry contract."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusetui.accelerator.runtime.config import Config
from fusetui.accelerator.runtime.outcome import (
    FALLBACK,
    GENERIC,
    LAUNCH,
    PADDING,
    PLANNED,
    STALL,
    UNFUSED,
    Jobs,
    Outcome,
)
from fusetui.accelerator.runtime.paths import Path
from fusetui.accelerator.runtime.types import Bools, Floats, Ints


@dataclass(frozen=True, slots=True)
class Executions:
    """Kernel runs, jobs in dispatch order, kernels of a job in the order they run. Arrays of shape (e,).

    job        index in the outcome's jobs; group: number of the kernel in its job
    name       index in `names`
    launch_ns  the device stood waiting for this launch; start_ns, end_ns: it ran
    last       whether it is its job's last
    demand     on the device's bandwidth while it runs, as a multiple of it
    """

    names: tuple[str, ...]
    job: Ints
    group: Ints
    name: Ints
    launch_ns: Ints
    start_ns: Ints
    end_ns: Ints
    last: Bools
    dram_bytes: Floats
    flops: Floats
    demand: Floats

    def __len__(self) -> int:
        return len(self.job)


def executions(outcome: Outcome, which: Ints | None = None) -> Executions:
    """The kernels of all jobs, or of those in `which` (indices). Kernels of a job fill it from stall to end."""
    jobs = outcome.jobs
    chosen = np.arange(len(jobs)) if which is None else which
    book = _Book(_paths(outcome.config))
    return book.unroll(jobs, chosen, jobs.table[chosen] * 2 + (jobs.mapping[chosen] == GENERIC))


def _paths(config: Config) -> list[Path]:
    """Every path a job may run: plan and fallback of each table, the decode table's last."""
    tables = (*config.tables, *(() if config.decode is None else (config.decode,)))
    return [path for table in tables for path in (table.plan, table.fallback)]


class _Book:
    """All kernels of all paths end to end; a page is one path at one known size."""

    def __init__(self, paths: list[Path]) -> None:
        self.paths = paths
        pages: Ints = np.concatenate([np.diff(p.first) for p in paths])
        self.page_at: Ints = np.cumsum([0, *(len(p.rows) for p in paths)])
        self.kernels_of = pages
        self.kernel_at = np.cumsum(pages) - pages
        self.names = tuple(dict.fromkeys(name for p in paths for name in p.names))
        code = {name: i for i, name in enumerate(self.names)}
        self.name = np.array([code[name] for p in paths for name in p.names], np.int64)
        self.kernel_ns, self.launch_ns, self.dram, self.flops, self.demand = (
            np.concatenate([getattr(p, field) for p in paths])
            for field in ("kernel_ns", "launch_ns", "dram_bytes", "flops", "demand")
        )

    def unroll(self, jobs: Jobs, chosen: Ints, path: Ints) -> Executions:
        page = np.zeros(len(chosen), np.int64)
        for i, p in enumerate(self.paths):
            mine = path == i
            page[mine] = self.page_at[i] + p.knot(jobs.bucket[chosen[mine]])
        count: Ints = self.kernels_of[page]
        owner = np.repeat(np.arange(len(chosen)), count)
        group = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
        kernel = self.kernel_at[page][owner] + group
        launch_ns, start_ns, end_ns, scale = self._times(jobs, chosen, owner, kernel, count)
        last = np.zeros(len(owner), np.bool_)
        last[np.cumsum(count) - 1] = True
        return Executions(
            self.names, chosen[owner], group, self.name[kernel], launch_ns, start_ns, end_ns, last,
            self.dram[kernel] * scale, self.flops[kernel] * scale, self.demand[kernel],
        )  # fmt: skip

    def _times(
        self, jobs: Jobs, chosen: Ints, owner: Ints, kernel: Ints, count: Ints
    ) -> tuple[Ints, Ints, Ints, Floats]:
        """Launches and kernels laid end to end over the job, each kind stretched to what the job spent on it."""
        parts = jobs.parts[chosen]
        began = jobs.start_ns[chosen] + parts[:, STALL]
        launches = parts[:, LAUNCH]
        kernels = jobs.end_ns[chosen] - began - launches
        first = np.cumsum(count) - count
        launch_to = _shared_out(self.launch_ns[kernel], launches, owner, first, count)
        kernel_to = _shared_out(self.kernel_ns[kernel], kernels, owner, first, count)
        end_ns = began[owner] + launch_to + kernel_to
        before = np.concatenate([[0], end_ns[:-1]])
        before[first] = began
        launch_before = np.concatenate([[0], launch_to[:-1]])
        launch_before[first] = 0
        launch_ns = launch_to - launch_before
        planned = np.add.reduceat(self.kernel_ns[kernel], first)
        nominal = parts[:, [PLANNED, UNFUSED, PADDING, FALLBACK]].sum(axis=1)
        scale = np.divide(nominal, planned, out=np.ones(len(first)), where=planned > 0)
        return launch_ns, before + launch_ns, end_ns, scale[owner]


def _shared_out(weight: Floats, total: Ints, owner: Ints, first: Ints, count: Ints) -> Ints:
    """Running sums of each owner's total, divided in proportion to weight (evenly where all weigh nothing)."""
    sums = np.add.reduceat(weight, first)
    even = sums <= 0
    weight = np.where(even[owner], 1.0, weight)
    sums = np.where(even, count, sums)
    running = np.cumsum(weight)
    running -= (running[first] - weight[first])[owner]
    reached: Ints = np.rint(total[owner] * np.minimum(running / sums[owner], 1.0)).astype(np.int64)
    reached[first + count - 1] = total
    return reached
