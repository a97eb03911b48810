"""What happened: requests, the jobs they ran in, and where each nanosecond of their latency went."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from fusetui.accelerator.runtime.config import Config
from fusetui.accelerator.runtime.load import Load
from fusetui.accelerator.runtime.types import Floats, Ints

COMPONENTS: Final = (
    "gate",  # waited for others of its batch, or ran on their behalf
    "queue",  # waited while every core was busy
    "misplaced",  # waited while another core stood idle
    "stall",  # a plan was being made
    "launch",  # the device waited for launches
    "planned",  # what the best plan takes
    "unfused",  # what the plan in use takes above the best known
    "padding",  # above the plan for the exact size
    "fallback",  # the generic path, above the plan
    "contention",  # others used the bandwidth
    "slow_core",  # this core, or this part, was slower than its like
)
GATE, QUEUE, MISPLACED, STALL, LAUNCH, PLANNED, UNFUSED, PADDING, FALLBACK, CONTENTION, SLOW = range(len(COMPONENTS))

# What ran, by code in `mapping`, and the word of the telemetry contract for it.
HIT, PADDED, ADAPTED, RECOMPILED, GENERIC = range(5)
MAPPING_WORDS: Final = ("planned", "adapted", "adapted", "planned", "fallback")


@dataclass(frozen=True, slots=True)
class Jobs:
    """Work units on a core (a batch, a part of one, or a step), in order of dispatch. Arrays of shape (m,).

    stream      index in the load's streams; -1 of a decode step that may serve several
    table       index in the configuration's tables; one past the last is `decode`
    requests    how many it served
    rows        that came; bucket: rows that ran (more when padded)
    mapping     code: HIT, PADDED, ADAPTED, RECOMPILED or GENERIC
    core        over all devices
    ready_ns    handed to the runtime queue; start_ns, end_ns: on the core
    parts       (m, len(COMPONENTS)) ns of end - ready by component; gate is 0 here
    demand      on the device's bandwidth, as a multiple of it
    """

    stream: Ints
    table: Ints
    requests: Ints
    rows: Ints
    bucket: Ints
    mapping: Ints
    core: Ints
    ready_ns: Ints
    start_ns: Ints
    end_ns: Ints
    parts: Ints
    demand: Floats

    def __len__(self) -> int:
        return len(self.start_ns)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run. Request arrays have shape (n,), in arrival order.

    job          the job it was done with: index in `jobs` (its last part, its last step)
    dispatch_ns  left the batching gate; start_ns: first on a core; end_ns: done
    first_ns     first token there (continuous batching; elsewhere the end)
    parts        (n, len(COMPONENTS)) ns; each row sums to end - arrival exactly
    seen         keys of the sizes a plan was made for on the way
    """

    load: Load
    config: Config
    jobs: Jobs
    job: Ints
    dispatch_ns: Ints
    start_ns: Ints
    first_ns: Ints
    end_ns: Ints
    parts: Ints
    seen: frozenset[int]

    @property
    def latency_ns(self) -> Ints:
        """end - arrival of each request."""
        return self.end_ns - self.load.arrival_ns

    @property
    def free_ns(self) -> Ints:
        """(cores,) when each core is done with all of this: where a following load goes on."""
        free = np.zeros(self.config.cores, np.int64)
        if self.config.placement.kind != "unlimited":
            np.maximum.at(free, self.jobs.core, self.jobs.end_ns)
        return free
