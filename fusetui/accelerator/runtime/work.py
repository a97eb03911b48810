"""Work between the gate and the cores, and how fast each core is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from fusetui.accelerator.runtime.arrivals import generator
from fusetui.accelerator.runtime.config import Config, Slow
from fusetui.accelerator.runtime.types import Floats, Ints

ALWAYS: Final = 1 << 62
_HASH: Final = 2_654_435_761  # Knuth's multiplicative hash: scatters consecutive numbers evenly over 2^32


@dataclass(frozen=True, slots=True)
class Work:
    """Jobs in dispatch order, (m,) each. `fixed_ns` (stalls, launches) is no faster on any core, `kernel_ns` may be."""

    ready_ns: Ints
    fixed_ns: Ints
    kernel_ns: Ints
    stream: Ints
    priority: Ints
    demand: Floats

    def __len__(self) -> int:
        return len(self.ready_ns)


@dataclass(frozen=True, slots=True)
class Ran:
    """Where and when the jobs ran; what end - start has above fixed + kernel + slow is contention."""

    core: Ints
    start_ns: Ints
    end_ns: Ints
    slow_ns: Ints


def assigned(work: Work, config: Config) -> Ints | None:
    """(m,) cores where the placement does not look at their state, else None."""
    placement, jobs = config.placement, np.arange(len(work))
    if placement.kind in ("static", "round_robin", "unlimited"):
        return (work.stream if placement.kind == "static" else jobs) % config.cores
    if placement.kind in ("hashed", "stealing"):
        draw = (jobs.astype(np.uint64) * np.uint64(_HASH) % np.uint64(1 << 32)).astype(np.float64) / (1 << 32)
    elif placement.kind == "random":
        draw = generator(placement.seed, 3).random(len(work))
    else:
        return None
    weights = np.array(placement.weights or (1.0,) * config.cores)
    core: Ints = np.searchsorted(np.cumsum(weights) / weights.sum(), draw, side="right")
    return np.minimum(core, config.cores - 1)


class Speed:
    """What slow cores add to the kernels they run."""

    def __init__(self, slow: tuple[Slow, ...], cores: int) -> None:
        self.steady = all(s.from_ns <= 0 and s.to_ns >= ALWAYS for s in slow)
        self.windows: list[list[tuple[int, int, float]]] = [[] for _ in range(cores)]
        for s in slow:
            self.windows[s.core].append((s.from_ns, s.to_ns, s.factor))

    def extra_ns(self, core: int, start_ns: int, kernel_ns: int) -> int:
        """Above `kernel_ns` for a job that starts then; of overlapping windows the slowest counts."""
        factors = [factor for begins, ends, factor in self.windows[core] if begins <= start_ns < ends]
        return round((max(factors) - 1.0) * kernel_ns) if factors else 0

    def steady_extra_ns(self, core: Ints, kernel_ns: Ints) -> Ints:
        """The same for all jobs at once, when no window ever opens or closes."""
        factor = np.array([max((f for _, _, f in w), default=1.0) for w in self.windows])
        extra: Ints = np.rint((factor[core] - 1.0) * kernel_ns).astype(np.int64)
        return extra
