"""Where the tail's time went: latency split into parts that add up, and the stage that left its budget first.

Per item (a request; an execution where there are no requests), ns. The parts of an item sum to its latency exactly:

| part | column evidence |
| --- | --- |
| gate | from the request's enqueue to the begin of the first launch call of its work (its enqueue - launch_ns) |
| queue | from then to its start, while no other core its stream uses stood idle; later: others ran on its core |
| launch | its core stood still between its executions: up to their enqueue_ns, their launch_ns, or within a graph |
| planned | its executions ran, up to the typical time of their shape under a plan |
| imbalance | waited while another core stood idle; a core slower than its like; slowest less mean of a parallel step |
| padding | adapted executions above the planned time of their size |
| fallback | fallback executions above the planned time of their size |
| contention | as executions that share a device take longer than alone, by the number that run beside them |
| rest | what no column tells: time over the typical of its shape, stalls, and service without executions |

The planned time of a size that never ran planned lies on the line through the sizes that did.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from fusetui.analysis.attribution.backlog import Backlog

PARTS: Final = ("queue", "gate", "launch", "planned", "imbalance", "padding", "fallback", "contention", "rest")
QUEUE, GATE, LAUNCH, PLANNED, IMBALANCE, PADDING, FALLBACK, CONTENTION, REST = range(len(PARTS))

STAGES: Final = ("compile plan", "runtime queue", "core placement", "completion")
STAGE_OF: Final = (1, 1, 1, 3, 2, 0, 0, 2, 3)
"""The stage each part is spent in."""

BudgetOf = Literal["slo", "calm"]


@dataclass(frozen=True, slots=True)
class Cohort:
    """Items with latency from from_ns to to_ns; mean_ns by PARTS, which sum to the mean latency.

    bare_ns  mean of the rest in which nothing of theirs ran; the other rest is work slower than its like
    """

    n: int
    from_ns: int
    to_ns: int
    mean_ns: tuple[float, ...]
    bare_ns: float = 0.0

    @property
    def latency_ns(self) -> float:
        """Mean latency."""
        return sum(self.mean_ns)

    @property
    def shares(self) -> tuple[float, ...]:
        """Share of the latency by PARTS; all 0 where there is none."""
        total = self.latency_ns
        return tuple(ns / total if total > 0 else 0.0 for ns in self.mean_ns)

    @property
    def by_stage_ns(self) -> tuple[float, ...]:
        """Mean time by STAGES."""
        return tuple(
            sum(ns for ns, of in zip(self.mean_ns, STAGE_OF, strict=True) if of == stage)
            for stage in range(len(STAGES))
        )


@dataclass(frozen=True, slots=True)
class StageBudget:
    """What a stage may take of the slowest items, and when it took more: left_ns is the first time, None: never.

    budget_ns  see `TailTime.budget_of`; worst_ns: the most it took in one slice of the window
    """

    budget_ns: float
    worst_ns: float
    left_ns: int | None


@dataclass(frozen=True, slots=True)
class TailTime:
    """Where the time of the slowest items went.

    of         what an item is; items looked at, and executions found of them
    tail       at or above p95; extreme: at or above p99, None below 100 items; median: from p45 to p55
    stages     by STAGES; () where the window is too short to tell calm from not
    first      the stage that left its budget first, the one furthest over where several did at once; None: none did
    budget_of  "slo": the objective shared out as the calm slices spend it; "calm": their median and spread
    notes      what was not known and so is in rest, one line each
    backlog    the largest build-up of what came and had not ended, None: nothing piled up
    """

    of: Literal["request", "execution"]
    items: int
    executions: int
    tail: Cohort
    extreme: Cohort | None
    median: Cohort
    stages: tuple[StageBudget, ...] = ()
    first: int | None = None
    budget_of: BudgetOf = "calm"
    notes: tuple[str, ...] = ()
    backlog: Backlog | None = None

    @property
    def grown(self) -> int:
        """The part (index in PARTS) by which the slowest known cohort most exceeds the median."""
        slowest = self.extreme or self.tail
        more = [tail - median for tail, median in zip(slowest.mean_ns, self.median.mean_ns, strict=True)]
        return max(range(len(PARTS)), key=more.__getitem__)
