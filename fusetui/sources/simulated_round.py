"""One round of a simulation as numbers: executions and requests, each in the order of their ends.

Words stay codes until rows are made: a plan is a model and the size it was made for, a shape the size that came.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from fusetui.accelerator.runtime.executions import executions
from fusetui.accelerator.runtime.outcome import GENERIC, LAUNCH, MAPPING_WORDS, STALL, Jobs, Outcome
from fusetui.accelerator.scenario.build import Round
from fusetui.accelerator.scenario.table import ScenarioError
from fusetui.sources.simulated_words import NO_PLAN, RunWords, plan_key, request_shape, work_shape
from fusetui.telemetry.schema import MAPPINGS

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

ABSENT: Final = -1
MOST_KERNELS: Final = 1 << 23
"""Told one by one of a round, which is held in memory: about 300 bytes each."""
_MAPPING: Final[Ints] = np.array([MAPPINGS.index(word) for word in MAPPING_WORDS], np.int64)


@dataclass(slots=True)
class Work:
    """Executions or requests, all arrays (n,), times ns; ABSENT (NaN for floats) where a column says nothing.

    name, stream, plan, mapping, shape are codes of `RunWords`; start and enqueue are known of everything
    """

    name: Ints
    enqueue: Ints
    start: Ints
    end: Ints
    launch: Ints
    node: Ints
    core: Ints
    stream: Ints
    request: Ints
    plan: Ints
    group: Ints
    mapping: Ints
    shape: Ints
    batch: Ints
    flops: Floats
    dram: Floats

    def __len__(self) -> int:
        return len(self.end)

    def take(self, which: npt.NDArray[np.generic] | slice) -> Self:
        """Some of them: a mask, an order or a slice."""
        return type(self)(*(getattr(self, f.name)[which] for f in fields(self)))

    def plus(self, other: Work) -> Work:
        """These, then the others."""
        return Work(*(np.concatenate([getattr(self, f.name), getattr(other, f.name)]) for f in fields(self)))

    def by_end(self) -> Self:
        """In the order of their ends."""
        return self.take(np.argsort(self.end, kind="stable"))


def no_work() -> Work:
    """None at all."""
    none, nothing = np.zeros(0, np.int64), np.zeros(0)
    return Work(*(none,) * 14, flops=nothing, dram=nothing)


def requests_of(turn: Round, words: RunWords, first: int) -> Work:
    """The requests of a round, in arrival order; `first` is the number of its first one."""
    outcome = turn.outcome
    load, jobs, job = outcome.load, outcome.jobs, outcome.job
    n = len(load)
    nothing = np.full(n, ABSENT)
    return Work(
        name=words.stream_name(load.stream), enqueue=load.arrival_ns, start=outcome.start_ns, end=outcome.end_ns,
        launch=nothing, node=nothing, core=jobs.core[job], stream=load.stream, request=first + np.arange(n),
        plan=nothing, group=nothing, mapping=_MAPPING[jobs.mapping[job]],
        shape=request_shape(load.tokens, load.output, words), batch=jobs.requests[job],
        flops=np.full(n, np.nan), dram=np.full(n, np.nan),
    )  # fmt: skip


def executions_of(turn: Round, words: RunWords, first: int) -> Work:
    """The kernels of a round by end.

    The first kernel of a job waits in the queue since the job was handed over and its launch call was done. The next
    ones of a replayed graph are its nodes; of eager launches each has its own call, done as the kernel starts: the
    model knows how long the device waited for it, which is what the call took beyond the kernel before.
    """
    outcome = turn.outcome
    _check_size(turn, words)
    jobs, runs = outcome.jobs, executions(outcome)
    job = runs.job
    eager = words.eager[jobs.table[job]] | (jobs.mapping[job] == GENERIC)
    head = runs.group == 0
    ready = np.minimum(jobs.ready_ns[job] + runs.launch_ns, runs.start_ns)
    none_fits = jobs.mapping[job] == GENERIC
    return Work(
        name=words.kernel_name(runs.name), enqueue=np.where(head | ~eager, ready, runs.start_ns), start=runs.start_ns,
        end=runs.end_ns, launch=np.where(head | eager, runs.launch_ns, ABSENT),
        node=np.where(eager, ABSENT, runs.group), core=jobs.core[job], stream=jobs.stream[job],
        request=_first_request(outcome, jobs, first)[job],
        plan=np.where(none_fits, NO_PLAN, plan_key(jobs.table[job], jobs.bucket[job], words)),
        group=np.where(none_fits, ABSENT, runs.group % words.groups_in_layer(jobs, job)),
        mapping=_MAPPING[jobs.mapping[job]], shape=work_shape(jobs.rows[job], jobs.table[job]),
        batch=jobs.requests[job], flops=runs.flops, dram=runs.dram_bytes,
    ).by_end()  # fmt: skip


def _check_size(turn: Round, words: RunWords) -> None:
    kernels = words.kernels_of(turn.outcome.jobs)
    if kernels > MOST_KERNELS:
        raise ScenarioError(
            "scenario",
            f"{kernels:,} kernels in a round, over {MOST_KERNELS:,}",
            'write tell = "jobs", or fewer requests',
        )


def jobs_of(turn: Round, words: RunWords, first: int) -> Work:
    """The jobs of a round by end, one row each: a replay as a whole, as its runtime sees it."""
    outcome = turn.outcome
    jobs, m = outcome.jobs, len(outcome.jobs)
    none_fits = jobs.mapping == GENERIC
    nothing = np.full(m, ABSENT)
    launch = jobs.parts[:, LAUNCH] + jobs.parts[:, STALL]
    start = np.minimum(jobs.start_ns + launch, jobs.end_ns)
    return Work(
        name=words.job_name(jobs.table), enqueue=np.minimum(jobs.ready_ns + launch, start), start=start,
        end=jobs.end_ns, launch=launch, node=nothing, core=jobs.core, stream=jobs.stream,
        request=_first_request(outcome, jobs, first),
        plan=np.where(none_fits, NO_PLAN, plan_key(jobs.table, jobs.bucket, words)), group=nothing,
        mapping=_MAPPING[jobs.mapping], shape=work_shape(jobs.rows, jobs.table), batch=jobs.requests,
        flops=np.full(m, np.nan), dram=words.job_bytes(jobs.table, jobs.bucket, none_fits),
    ).by_end()  # fmt: skip


def _first_request(outcome: Outcome, jobs: Jobs, first: int) -> Ints:
    """(jobs,) the number of the first request each job was the last for, ABSENT for none (a step among others)."""
    n = len(outcome.load)
    found = np.full(len(jobs), np.iinfo(np.int64).max)
    np.minimum.at(found, outcome.job, np.arange(n))
    return np.where(found < n, found + first, ABSENT)
