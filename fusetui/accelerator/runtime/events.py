"""Event loop for queues with priorities, stealing or a look at the cores' state. One event list, no bandwidth."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np

from fusetui.accelerator.runtime.queues import Queues
from fusetui.accelerator.runtime.types import Ints
from fusetui.accelerator.runtime.work import Ran, Speed, Work


def run(work: Work, queues: Queues, free_ns: Ints, speed: Speed) -> Ran:
    """Jobs are never interrupted. At the same instant cores are released before jobs arrive, lower cores first."""
    jobs, cores = len(work), len(free_ns)
    ready, kernel = work.ready_ns.tolist(), work.kernel_ns.tolist()
    service = (work.fixed_ns + work.kernel_ns).tolist()
    core_of, start, extra = [0] * jobs, [0] * jobs, [0] * jobs
    ends = [t * cores + k for k, t in enumerate(free_ns.tolist()) if t > 0]  # (end, core) as one integer
    heapify(ends)
    slow = any(speed.windows)
    arrive, release = queues.arrive, queues.release
    i = 0
    while i < jobs or ends:
        if ends and (i == jobs or ends[0] < (ready[i] + 1) * cores):
            now, core = divmod(heappop(ends), cores)
            job = release(core)
            if job < 0:
                continue
        else:
            job, now = i, ready[i]
            i += 1
            core = arrive(job, now)
            if core < 0:
                continue
        more = speed.extra_ns(core, now, kernel[job]) if slow else 0
        core_of[job], start[job], extra[job] = core, now, more
        heappush(ends, (now + service[job] + more) * cores + core)
    slow_ns, start_ns = np.array(extra, np.int64), np.array(start, np.int64)
    end_ns = start_ns + work.fixed_ns + work.kernel_ns + slow_ns
    return Ran(np.array(core_of, np.int64), start_ns, end_ns, slow_ns)
