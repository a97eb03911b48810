"""The made-up device: requests become kernels, kernels queue first come first served on their core."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final, Self

import numpy as np

from fusetui.sources.load_work import (
    KERNEL_WORK,
    KERNELS_OF,
    LAUNCH_NS,
    LOAD_WORK,
    SEQUENCE,
    SEQUENCE_AT,
    SHAPE_WORK,
    SLOW_CORE,
    SLOWDOWN,
    WORK_PER_REQUEST,
    Ints,
    Requests,
    arrivals,
    in_incident,
)

CHUNK_NS: Final = 100_000_000
UTILISATION: Final = 0.5
_NOISE: Final = 0.15
# Above any time within a chunk, small enough that cores x it stays far from 2^63.
_APART: Final = 1 << 50


@dataclass(slots=True)
class Kernels:
    """Launched kernels, all arrays (n,) int64, times ns since the start; start and end are set once scheduled.

    plan_ns   service on a healthy core
    position  number of the kernel in its request, last: whether it is the request's last
    """

    request: Ints
    load: Ints
    shape: Ints
    core: Ints
    kernel: Ints
    position: Ints
    last: Ints
    launch_ns: Ints
    enqueue_ns: Ints
    plan_ns: Ints
    start_ns: Ints
    end_ns: Ints

    def take(self, keep: np.ndarray) -> Self:
        """Some of them: a mask or an order."""
        return type(self)(*(getattr(self, f.name)[keep] for f in fields(self)))

    def plus(self, other: Kernels) -> Kernels:
        """These, then the others."""
        return Kernels(*(np.concatenate([getattr(self, f.name), getattr(other, f.name)]) for f in fields(self)))

    def __len__(self) -> int:
        return len(self.request)


class Device:
    """Runs a fixed span at a time, so that what happens does not depend on who looks when.

    per_s  requests a second that give about half utilisation of `cores` cores
    """

    def __init__(self, seed: int, per_s: float, cores: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._per_s = per_s
        self._cores = cores
        self._unit_ns = UTILISATION * cores * 1e9 / (per_s * WORK_PER_REQUEST)
        self._launch_ns = max(1.0, min(LAUNCH_NS, 0.05 * self._unit_ns * float(KERNEL_WORK.mean())))
        self._free_ns = np.zeros(cores, np.int64)
        self._next_request = 0
        self._launched = self._launch(Requests(*(np.zeros(0, np.int64) for _ in range(4))))
        self.position_ns = 0

    def advance(self) -> tuple[Requests, Kernels]:
        """The next span: requests that arrived in it, and kernels that got their time."""
        from_ns, to_ns = self.position_ns, self.position_ns + CHUNK_NS
        requests = arrivals(self._rng, self._per_s, from_ns, CHUNK_NS, self._cores)
        launched = self._launched.plus(self._launch(requests))
        # A kernel queued after this span must not get ahead of one the next span queues earlier.
        due = launched.enqueue_ns < to_ns
        self._launched = launched.take(~due)
        scheduled = launched.take(due)
        service = scheduled.plan_ns
        if in_incident(from_ns):
            service = np.where(scheduled.core == SLOW_CORE, (service * SLOWDOWN).astype(np.int64), service)
        self._schedule(scheduled, service, from_ns)
        self.position_ns = to_ns
        return requests, scheduled

    def _launch(self, requests: Requests) -> Kernels:
        counts = KERNELS_OF[requests.load]
        n = int(counts.sum())
        of = np.repeat(np.arange(len(counts)), counts)
        before = np.repeat(np.cumsum(counts) - counts, counts)
        position = np.arange(n) - before
        load, shape = requests.load[of], requests.shape[of]
        kernel = SEQUENCE[SEQUENCE_AT[load] + position]
        launch = np.maximum(1, self._launch_ns * self._rng.lognormal(0.0, 0.3, n)).astype(np.int64)
        launched = np.cumsum(launch)
        launched -= np.concatenate([[0], launched])[before]
        noise = self._rng.lognormal(-_NOISE * _NOISE / 2, _NOISE, n)
        plan = self._unit_ns * LOAD_WORK[load] * KERNEL_WORK[kernel] * SHAPE_WORK[shape] * noise
        request = self._next_request + of
        self._next_request += len(counts)
        unset = np.zeros(n, np.int64)
        return Kernels(
            request, load, shape, requests.core[of], kernel, position,
            (position == counts[of] - 1).astype(np.int64), launch, requests.arrival_ns[of] + launched,
            np.maximum(1, plan).astype(np.int64), unset, unset.copy(),
        )  # fmt: skip

    def _schedule(self, kernels: Kernels, service: Ints, from_ns: int) -> None:
        """Lindley's recursion on every core at once: start_i = max(enqueue_i, end_{i-1}), exactly, in ns."""
        if not len(kernels):
            return
        order = np.lexsort((kernels.enqueue_ns, kernels.core))
        core, run = kernels.core[order], service[order]
        ready = kernels.enqueue_ns[order] - from_ns
        first = np.flatnonzero(np.diff(core, prepend=-1))
        ready[first] = np.maximum(ready[first], self._free_ns[core[first]] - from_ns)
        before = np.cumsum(run) - run
        before -= np.repeat(before[first], np.diff(first, append=len(core)))
        start = before + np.maximum.accumulate(ready - before + core * _APART) - core * _APART + from_ns
        kernels.start_ns[order] = start
        kernels.end_ns[order] = start + run
        last = np.append(first[1:], len(core)) - 1
        self._free_ns[core[last]] = start[last] + run[last]
