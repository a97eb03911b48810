"""Queue disciplines for the event loops: who runs next, where. Jobs are numbers in dispatch order."""

from __future__ import annotations

from heapq import heapify, heappop, heappush, heapreplace
from typing import Final, Protocol

import numpy as np

from fusetui.accelerator.runtime.arrivals import generator
from fusetui.accelerator.runtime.config import Config
from fusetui.accelerator.runtime.types import Ints
from fusetui.accelerator.runtime.work import Work, assigned

_JOB_BITS: Final = 40
_JOB: Final = (1 << _JOB_BITS) - 1


class Queues(Protocol):
    """Jobs between dispatch and start. Within a queue the lower priority number is first, then who came first."""

    def arrive(self, job: int, now_ns: int) -> int:
        """The core that runs it at once, or -1 when it has to wait."""

    def release(self, core: int) -> int:
        """The job a core that is free takes, or -1 when there is none."""


class SharedQueue:
    """One queue for all cores; of several idle cores the lowest takes a job."""

    def __init__(self, work: Work, idle: list[int]) -> None:
        self._key = _keys(work)
        self._idle = idle
        self._waiting: list[int] = []
        heapify(self._idle)

    def arrive(self, job: int, now_ns: int) -> int:
        if self._idle:
            return heappop(self._idle)
        heappush(self._waiting, self._key[job])
        return -1

    def release(self, core: int) -> int:
        if self._waiting:
            return heappop(self._waiting) & _JOB
        heappush(self._idle, core)
        return -1


class OwnQueues:
    """A queue for each core; with `steal` a core with nothing to do takes from the longest."""

    def __init__(self, work: Work, config: Config, free_ns: Ints, *, steal: bool) -> None:
        self._key = _keys(work)
        self._waiting: list[list[int]] = [[] for _ in range(config.cores)]
        self._idle = (free_ns <= 0).tolist()
        self._steal = steal
        self._place = _placing(work, config, free_ns, self)

    def length(self, core: int) -> int:
        """Jobs at a core, the one it runs included."""
        return len(self._waiting[core]) + (not self._idle[core])

    def arrive(self, job: int, now_ns: int) -> int:
        core = self._place.core(job, now_ns)
        if not self._idle[core]:
            if not (self._steal and True in self._idle):
                heappush(self._waiting[core], self._key[job])
                return -1
            core = self._idle.index(True)
        self._idle[core] = False
        return core

    def release(self, core: int) -> int:
        queue = self._waiting[core]
        if not queue and self._steal:
            queue = max(self._waiting, key=len)
        if queue:
            return heappop(queue) & _JOB
        self._idle[core] = True
        return -1


class NoQueue:
    """Every job has a core of its own."""

    def arrive(self, job: int, now_ns: int) -> int:
        return job

    def release(self, core: int) -> int:
        return -1


def make_queues(work: Work, config: Config, free_ns: Ints) -> Queues:
    """The discipline of a configuration; cores that are still busy are released when they are free."""
    kind = config.placement.kind
    if kind == "unlimited":
        return NoQueue()
    if kind == "shared":
        return SharedQueue(work, np.flatnonzero(free_ns <= 0).tolist())
    return OwnQueues(work, config, free_ns, steal=kind == "stealing")


def _keys(work: Work) -> list[int]:
    rank: Ints = np.unique(work.priority, return_inverse=True)[1]
    keys: list[int] = ((rank << _JOB_BITS) + np.arange(len(work))).tolist()
    return keys


class _Place(Protocol):
    def core(self, job: int, now_ns: int) -> int: ...


def _placing(work: Work, config: Config, free_ns: Ints, queues: OwnQueues) -> _Place:
    given = assigned(work, config)
    if given is not None:
        return _Given(given)
    if config.placement.kind == "shortest":
        return _Shortest(len(work), config, queues)
    return _LeastLoaded(work, config, free_ns)


class _Given:
    def __init__(self, core: Ints) -> None:
        self._core: list[int] = core.tolist()

    def core(self, job: int, now_ns: int) -> int:
        return self._core[job]


class _LeastLoaded:
    """By the time each core would be done with what it was given, at its nominal speed."""

    def __init__(self, work: Work, config: Config, free_ns: Ints) -> None:
        self._took = (work.fixed_ns + work.kernel_ns).tolist()
        self._cores = config.cores
        self._done: list[int] = (
            free_ns * config.cores + np.arange(config.cores)
        ).tolist()  # (done, core) as one integer
        heapify(self._done)

    def core(self, job: int, now_ns: int) -> int:
        done, core = divmod(self._done[0], self._cores)
        heapreplace(self._done, (max(done, now_ns) + self._took[job]) * self._cores + core)
        return core


class _Shortest:
    """Fewest jobs among `choices` cores drawn with replacement; the first drawn, or the lowest of all, on a tie."""

    def __init__(self, jobs: int, config: Config, queues: OwnQueues) -> None:
        self._length = queues.length
        self._all = range(config.cores)
        drawn = generator(config.placement.seed, 4).integers(0, config.cores, (jobs, config.placement.choices))
        self._drawn = drawn.tolist() if config.placement.choices else None

    def core(self, job: int, now_ns: int) -> int:
        return min(self._all if self._drawn is None else self._drawn[job], key=self._length)
