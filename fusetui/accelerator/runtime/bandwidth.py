"""Event loop with shared memory bandwidth: jobs on one device slow each other when together they ask for too much.

Bandwidth is shared max-min fair: nobody gets more than it asks for, and who asks for less than an equal share is not
slowed. A job that gets the part a of the d it asks for runs at a / d of its speed. Shares change at every start and
end. With one demand of 1 each and no queue this is processor sharing.
"""

from __future__ import annotations

from math import ceil
from typing import Final

import numpy as np

from fusetui.accelerator.runtime.config import Config
from fusetui.accelerator.runtime.queues import Queues
from fusetui.accelerator.runtime.types import Ints
from fusetui.accelerator.runtime.work import Ran, Speed, Work

_NEVER: Final = 1 << 62
# Below what a sum of rounded products can be off by, far below 1 ns: a job is not late for rounding.
_ROUNDING_NS: Final = 1e-3


class _Device:
    """Jobs that run on one device. Ends are whole ns: a job may end up to 1 ns late for it.

    `left` is what each job still needed at `then_ns`. While bandwidth is enough everybody runs at full speed and
    nothing has to be brought up to date: `rate` is None.
    """

    __slots__ = ("core", "demand", "job", "left", "next", "next_ns", "rate", "then_ns")

    def __init__(self) -> None:
        self.job: list[int] = []
        self.core: list[int] = []
        self.left: list[float] = []
        self.demand: list[float] = []
        self.rate: list[float] | None = None
        self.then_ns = 0
        self.next_ns = _NEVER
        self.next = 0

    def advance(self, now_ns: int) -> None:
        """Everyone has run at its rate since the last change."""
        rate, passed = self.rate, now_ns - self.then_ns
        if rate is None or not passed:
            return
        self.then_ns = now_ns
        self.left = [left - passed * rate[i] for i, left in enumerate(self.left)]

    def start(self, job: int, core: int, now_ns: int, needs: int, demand: float) -> None:
        """One more runs."""
        self.job.append(job)
        self.core.append(core)
        self.left.append(needs + now_ns - self.then_ns)
        self.demand.append(demand)

    def finish(self) -> tuple[int, int]:
        """(job, core) of the next that is done; it runs no more."""
        i = self.next
        self.left.pop(i)
        self.demand.pop(i)
        return self.job.pop(i), self.core.pop(i)

    def share(self, now_ns: int) -> None:
        """New rates, and who is done next."""
        if not self.job:
            self.rate, self.then_ns, self.next_ns = None, now_ns, _NEVER
        elif sum(self.demand) <= 1.0:
            self.rate = None
            self._next(self.left)
        else:
            if self.rate is None:
                passed, self.then_ns = now_ns - self.then_ns, now_ns
                self.left = [left - passed for left in self.left]
            rate = self.rate = rates(self.demand)
            self._next([left / rate[i] for i, left in enumerate(self.left)])

    def _next(self, needed: list[float]) -> None:
        soonest = min(needed)
        self.next = needed.index(soonest)
        if needed.count(soonest) > 1:  # as in `events.run`, the lowest core first
            self.next = min((core, i) for i, core in enumerate(self.core) if needed[i] == soonest)[1]
        self.next_ns = self.then_ns + max(ceil(soonest - _ROUNDING_NS), 0)


def rates(demand: list[float]) -> list[float]:
    """Speed of each job, 1 when it gets all it asks for."""
    left, sharers = 1.0, len(demand)
    for asked in sorted(demand):
        if asked * sharers > left:
            share = left / sharers
            return [1.0 if d <= share else share / d for d in demand]
        left -= asked
        sharers -= 1
    return [1.0] * len(demand)


def run(work: Work, config: Config, queues: Queues, free_ns: Ints, speed: Speed) -> Ran:
    """As `events.run`, with the rates of a device's jobs changing whenever one starts or ends there."""
    unlimited = config.placement.kind == "unlimited"
    loop = _Loop(work, config.per_device, unlimited, speed)
    busy = [] if unlimited else sorted((t, k) for k, t in enumerate(free_ns.tolist()) if t > 0)
    devices = 1 if unlimited else -(-config.cores // config.per_device)
    core, start, end, extra = loop.run(queues, [_Device() for _ in range(devices)], busy)
    place = np.array(core, np.int64) % config.cores
    return Ran(place, np.array(start, np.int64), np.array(end, np.int64), np.array(extra, np.int64))


class _Loop:
    def __init__(self, work: Work, per_device: int, unlimited: bool, speed: Speed) -> None:
        self.ready, self.kernel = work.ready_ns.tolist(), work.kernel_ns.tolist()
        self.service = (work.fixed_ns + work.kernel_ns).tolist()
        self.demand = work.demand.tolist()
        self.unlimited, self.per_device, self.speed = unlimited, per_device, speed
        n = len(work)
        self.core, self.start, self.end, self.extra = [0] * n, [0] * n, [0] * n, [0] * n

    def run(
        self, queues: Queues, devices: list[_Device], busy: list[tuple[int, int]]
    ) -> tuple[list[int], list[int], list[int], list[int]]:
        i, jobs, ready = 0, len(self.ready), self.ready
        busy = busy[::-1]
        while True:
            device = devices[0] if len(devices) == 1 else min(devices, key=_soonest)
            arrives = ready[i] if i < jobs else _NEVER
            freed = busy[-1][0] if busy else _NEVER
            now = device.next_ns
            if now <= arrives and now <= freed:
                if now == _NEVER:
                    return self.core, self.start, self.end, self.extra
                device.advance(now)
                done, core = device.finish()
                self.end[done] = now
                job = queues.release(core)
                if job < 0:
                    device.share(now)
            elif freed <= arrives:
                now, core = busy.pop()
                job = queues.release(core)
            else:
                job, now = i, arrives
                i += 1
                core = queues.arrive(job, now)
                if core < 0:
                    continue
            if job >= 0:
                self._begin(job, core, now, devices[0 if self.unlimited else core // self.per_device])

    def _begin(self, job: int, core: int, now: int, device: _Device) -> None:
        kernel = self.kernel[job]
        more = 0 if self.unlimited else self.speed.extra_ns(core, now, kernel)
        self.core[job], self.start[job], self.extra[job] = core, now, more
        device.advance(now)
        device.start(job, core, now, self.service[job] + more, self.demand[job])
        device.share(now)


def _soonest(device: _Device) -> int:
    return device.next_ns
