"""First come first served where no event list is needed: one recursion a core, or the core that is free first."""

from __future__ import annotations

from heapq import heapify, heapreplace

import numpy as np

from fusetui.accelerator.runtime.types import Ints
from fusetui.accelerator.runtime.work import Ran, Speed, Work


def by_core(work: Work, core: Ints, free_ns: Ints, speed: Speed) -> Ran:
    """Jobs wait for the core they were given.

    Lindley's recursion end_i = max(ready_i, end_{i-1}) + s_i, in closed form with S_i = s_0 + .. + s_i:
    end_i = S_i + max(free, max_{j <= i} (ready_j - S_{j-1})).
    """
    end, slow = np.zeros(len(work), np.int64), np.zeros(len(work), np.int64)
    service = work.fixed_ns + work.kernel_ns
    if speed.steady:
        slow = speed.steady_extra_ns(core, work.kernel_ns)
        service = service + slow
    order = np.argsort(core, kind="stable")
    bounds = np.searchsorted(core[order], np.arange(len(free_ns) + 1))
    for k in np.flatnonzero(np.diff(bounds)).tolist():
        mine = order[bounds[k] : bounds[k + 1]]
        if speed.steady or not speed.windows[k]:
            took = service[mine]
            total = np.cumsum(took)
            idle = np.maximum.accumulate(work.ready_ns[mine] - (total - took))
            end[mine] = total + np.maximum(idle, free_ns[k])
        else:
            end[mine], slow[mine] = _stepwise(work, mine, k, int(free_ns[k]), speed)
    return Ran(core, end - work.fixed_ns - work.kernel_ns - slow, end, slow)


def _stepwise(work: Work, mine: Ints, core: int, free: int, speed: Speed) -> tuple[list[int], list[int]]:
    """By_core for a core whose speed changes: a job's time depends on when it starts."""
    ends, extras = [], []
    columns = (work.ready_ns[mine].tolist(), work.fixed_ns[mine].tolist(), work.kernel_ns[mine].tolist())
    for ready, fixed, kernel in zip(*columns, strict=True):
        start = max(ready, free)
        extra = speed.extra_ns(core, start, kernel)
        free = start + fixed + kernel + extra
        ends.append(free)
        extras.append(extra)
    return ends, extras


def first_free(work: Work, free_ns: Ints, speed: Speed) -> Ran:
    """One queue: the core that has been free longest, or is free first, takes the next job."""
    cores = len(free_ns)
    heap = (free_ns * cores + np.arange(cores)).tolist()  # (free, core) as one integer
    heapify(heap)
    core, start, extra = [], [], []
    slow = any(speed.windows)
    for ready, service, kernel in _columns(work):
        free, k = divmod(heap[0], cores)
        began = ready if ready > free else free
        more = speed.extra_ns(k, began, kernel) if slow else 0
        heapreplace(heap, (began + service + more) * cores + k)
        core.append(k)
        start.append(began)
        extra.append(more)
    began_ns, slow_ns = np.array(start, np.int64), np.array(extra, np.int64)
    end_ns = began_ns + work.fixed_ns + work.kernel_ns + slow_ns
    return Ran(np.array(core, np.int64), began_ns, end_ns, slow_ns)


def _columns(work: Work) -> zip[tuple[int, int, int]]:
    service = (work.fixed_ns + work.kernel_ns).tolist()
    return zip(work.ready_ns.tolist(), service, work.kernel_ns.tolist(), strict=True)
