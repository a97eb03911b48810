"""Continuous batching: requests join and leave a core's batch between steps.

A step first runs the prefill of the requests that join, one after another, then one decode of the batch that was there
before. Prefill gives a request its first token, each step after that one more, `output` in all (at least one). The
decode of a batch larger than the largest captured size runs on the generic path: it takes longer, so the batch grows,
and may never shrink again at a rate it served before.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Final

import numpy as np

from fusetui.accelerator.errors import AcceleratorError
from fusetui.accelerator.runtime.config import Config
from fusetui.accelerator.runtime.load import Load
from fusetui.accelerator.runtime.lookup import find, kernel_parts
from fusetui.accelerator.runtime.outcome import ADAPTED, COMPONENTS, GENERIC, HIT, LAUNCH, RECOMPILED, Outcome
from fusetui.accelerator.runtime.paths import PlanTable
from fusetui.accelerator.runtime.steps import Costs, Steps, settle
from fusetui.accelerator.runtime.types import Ints
from fusetui.accelerator.runtime.work import Speed, Work, assigned

_BITS: Final = 40
_REQUEST: Final = (1 << _BITS) - 1


def simulate(load: Load, config: Config) -> Outcome:
    """Run a load step by step. Raises AcceleratorError for what does not go with continuous batching."""
    if config.contention or config.split.parts > 1 or config.placement.kind in ("stealing", "unlimited"):
        raise AcceleratorError(
            "continuous batching", "does not go with contention, split, stealing or unlimited cores", "drop one"
        )
    if config.decode is None:
        raise AcceleratorError("continuous batching", "no decode table", "give one")
    costs = _costs(load, config, config.decode)
    return settle(load, config, costs, _Loop(load, config, costs).run())


def _costs(load: Load, config: Config, decode: PlanTable) -> Costs:
    table = load.stream if len(config.tables) > 1 else np.zeros(len(load), np.int64)
    prefill = np.zeros((len(load), len(COMPONENTS)), np.int64)
    for i, plans in enumerate(config.tables):
        mine = table == i
        rows = load.tokens[mine]
        none = np.zeros_like(rows)
        prefill[mine] = kernel_parts(plans, rows, rows, none > 0, none, load.work[mine])[0]
    sizes = np.arange(max(1, min(config.batching_of(0).size, len(load))) + 1)
    bucket, mapping = find(sizes, config.lookup_of(0))
    none = np.zeros_like(sizes)
    step = kernel_parts(decode, sizes, bucket, mapping == GENERIC, none, np.ones(len(sizes)))[0]
    step[0], mapping[0] = 0, HIT
    return Costs(table, prefill, step, bucket, mapping)


class _Core:
    """One core's running batch: `ends` holds (step it is done with, request) as one integer."""

    __slots__ = ("asleep", "ends", "latest", "step", "waiting")

    def __init__(self, waiting: list[int]) -> None:
        self.waiting = waiting
        self.ends: list[int] = []
        self.step = 0
        self.latest = -1
        self.asleep = True


class _Loop:
    def __init__(self, load: Load, config: Config, costs: Costs) -> None:
        self.arrival = load.arrival_ns.tolist()
        self.output = np.maximum(load.output, 1).tolist()
        priority = np.array([s.priority for s in load.streams], np.int64)[load.stream]
        rank: Ints = np.unique(priority, return_inverse=True)[1]
        self.key = ((rank << _BITS) + np.arange(len(load))).tolist()
        self.limit = config.batching_of(0).size
        # A slow core is slow in its kernels, not in the host's launches.
        self.prefill, self.prefill_kernels = _with_kernels(costs.prefill)
        self.decode, self.decode_kernels = _with_kernels(costs.decode)
        made = (costs.mapping == ADAPTED) | (costs.mapping == RECOMPILED)
        self.stall = np.where(made, config.lookup_of(0).cost_ns, 0).tolist()
        self.speed = Speed(config.slow, config.cores)
        self.slow = any(self.speed.windows)
        shared: list[int] = []
        self.cores = [_Core(shared if config.placement.kind == "shared" else []) for _ in range(config.cores)]
        self.place = _place(load, config)
        self.rows: list[tuple[int, ...]] = []
        self.first, self.last = [0] * len(load), [0] * len(load)
        self.due: list[int] = []  # (end of step, core) as one integer

    def run(self) -> Steps:
        i, n, arrival, due, count = 0, len(self.arrival), self.arrival, self.due, len(self.cores)
        while i < n or due:
            # Who comes at this very instant is there before a core looks.
            if i < n and (not due or arrival[i] * count <= due[0]):
                self._arrive(i, arrival[i])
                i += 1
                continue
            now, k = divmod(heappop(due), count)
            self._leave(k, self.cores[k])
            self._step(k, self.cores[k], now)
        record = np.array(self.rows, np.int64).reshape(-1, 8)
        return Steps.of(record, np.array(self.first, np.int64), np.array(self.last, np.int64))

    def _arrive(self, request: int, now: int) -> None:
        k = self.place.core(request)
        if k < 0:
            k = next((i for i, core in enumerate(self.cores) if core.asleep), 0)
        core = self.cores[k]
        heappush(core.waiting, self.key[request])
        if core.asleep:
            core.asleep = False
            heappush(self.due, now * len(self.cores) + k)

    def _leave(self, k: int, core: _Core) -> None:
        """Requests whose last step this was."""
        ends, step = core.ends, core.step
        while ends and ends[0] >> _BITS <= step:
            request = heappop(ends) & _REQUEST
            self.last[request] = core.latest
            self.place.leave(request, k)

    def _step(self, k: int, core: _Core, now: int) -> None:
        running, waiting = len(core.ends), core.waiting
        joining = [heappop(waiting) & _REQUEST for _ in range(min(self.limit - running, len(waiting)))]
        if not running and not joining:
            core.asleep = True
            return
        core.step += 1
        core.latest = len(self.rows)
        filling = sum([self.prefill[r] for r in joining])
        stall, slow_fill, slow_decode = self.stall[running], 0, 0
        self.stall[running] = 0
        if self.slow:
            slow_fill = self.speed.extra_ns(k, now, sum([self.prefill_kernels[r] for r in joining]))
            slow_decode = self.speed.extra_ns(k, now, self.decode_kernels[running])
        end = now + filling + slow_fill + stall + self.decode[running] + slow_decode
        self.rows.append((k, now, end, running, filling + slow_fill, slow_fill, stall, slow_decode))
        for request in joining:
            heappush(core.ends, ((core.step + self.output[request] - 1) << _BITS) + request)
            self.first[request] = core.latest
        heappush(self.due, end * len(self.cores) + k)


def _with_kernels(parts: Ints) -> tuple[list[int], list[int]]:
    """(all, all but launches) ns."""
    total = parts.sum(axis=1)
    return total.tolist(), (total - parts[:, LAUNCH]).tolist()


class _Given:
    """Cores that were decided beforehand; -1: one queue for all."""

    def __init__(self, core: list[int]) -> None:
        self._core = core

    def core(self, request: int) -> int:
        return self._core[request]

    def leave(self, request: int, core: int) -> None:
        """Nothing to keep."""


class _Outstanding:
    """The core with the least outstanding: tokens to generate, or requests; the lowest on a tie."""

    def __init__(self, cores: int, weight: list[int]) -> None:
        self._weight = weight
        self._outstanding = [0] * cores

    def core(self, request: int) -> int:
        k = self._outstanding.index(min(self._outstanding))
        self._outstanding[k] += self._weight[request]
        return k

    def leave(self, request: int, core: int) -> None:
        """What it was counted for is done."""
        self._outstanding[core] -= self._weight[request]


def _place(load: Load, config: Config) -> _Given | _Outstanding:
    kind, n = config.placement.kind, len(load)
    if kind == "shared":
        return _Given([-1] * n)
    if kind in ("least_loaded", "shortest"):
        weight = np.maximum(load.output, 1).tolist() if kind == "least_loaded" else [1] * n
        return _Outstanding(config.cores, weight)
    none = np.zeros(n, np.int64)
    core = assigned(Work(load.arrival_ns, none, none, load.stream, none, np.zeros(n)), config)
    return _Given([0] * n if core is None else core.tolist())
