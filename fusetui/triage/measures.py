"""What rules may read: a snapshot, what comes with it, and what is worked out of it once for all rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from fusetui.analysis.attribution.parts import GATE, PLANNED, QUEUE, REST, STAGES, TailTime
from fusetui.analysis.snapshot import Snapshot
from fusetui.telemetry.header import Header
from fusetui.triage.blame import OF_DRIVER, Blame, blame_of
from fusetui.triage.finding import Bottleneck, Confidence, Severity, Stage
from fusetui.triage.slots import Contrast, contrast_of

if TYPE_CHECKING:
    from fusetui.analysis.attribution.causes import Causes
    from fusetui.analysis.planned import GroupRow

Trouble = Literal["breach", "worse", "left", "long", ""]

NAMED: Final = 0.1
"""Share of the slowest latency from which a bottleneck is named: below, taking it away would not show."""
LONG: Final = 5.0
"""p99 over what the median takes to be served from which a tail is long by itself, where most is not planned work."""
LONG_WAIT: Final = 20.0
"""The same where most of it is wait: a mix of short and long items at a third of the load has 6 without any fault."""
TAIL: Final = 1.5
"""p99 over the median, or slow slots over calm ones, below which there is no tail to explain."""
FAR: Final = 1.5
"""The most a stage took over its budget: of 55 quiet windows two left one, by 1.1 and by 1.6."""
WORSE: Final = 1.25
ENOUGH: Final = 100
MOST: Final = 0.5
_NOBODY: Final = Blame()


@dataclass(frozen=True, slots=True)
class Measures:
    """snapshot: the window; header: of its trace; causes: of the same window; baseline: another one to compare with.

    blame     whose doing the tail is
    contrast  the slots in which the tail was made, and calm ones
    trouble   why the tail is worth a warning: p99 is over the objective; p95 is WORSE than the baseline's; a stage
              left its budget; p99 is LONG times the median's service and most of it is not planned work; "": it is not
    groups    of the plan, measured beside predicted
    """

    snapshot: Snapshot
    header: Header
    causes: Causes | None
    baseline: Snapshot | None
    blame: Mapping[Bottleneck, Blame]
    contrast: Contrast | None
    trouble: Trouble
    groups: tuple[GroupRow, ...] = ()

    def blamed(self, name: Bottleneck) -> Blame:
        """Its share, of nothing where it is not known."""
        return self.blame.get(name, _NOBODY)

    def without(self, name: Bottleneck) -> int | None:
        """p99 with the driver behind a bottleneck taken away, by the twin, ns; None: it has no part in it."""
        rows = () if self.causes is None else self.causes.p99.rows
        own = [row for row in rows if OF_DRIVER[row.name] == name and row.share_ns > 0]
        return max(own, key=lambda row: row.share_ns).without_ns if own else None

    def severity(self, name: Bottleneck) -> Severity:
        """Of a finding about the tail."""
        if not self.trouble or self.blamed(name).cause < NAMED:
            return "info"
        return "breach" if self.trouble == "breach" else "warn"

    def since(self, stage: Stage) -> int | None:
        """When a stage left its budget, None: it did not, or all the window."""
        time = self.snapshot.tail_time
        return None if time is None or not time.stages else time.stages[STAGES.index(stage)].left_ns

    def confidence(self, name: Bottleneck) -> tuple[Confidence, str]:
        """How sure a share of the tail is, and why."""
        blame = self.blamed(name)
        if blame.how == "twin":
            return "likely", f"simulated with and without it; {self.causes.fit if self.causes else ''}"
        if blame.how == "behind":
            return (
                "likely",
                "goes with the slots that are slow; what waits behind it is counted to it, no twin was asked",
            )
        return "possible", "share of time, which is not cause: no twin was asked"


def measures_of(
    snapshot: Snapshot,
    header: Header | None = None,
    causes: Causes | None = None,
    baseline: Snapshot | None = None,
    groups: Sequence[GroupRow] = (),
) -> Measures:
    """The measures of a snapshot."""
    header = header or snapshot.header
    blame = blame_of(snapshot, causes)
    contrast = contrast_of(snapshot)
    trouble = _trouble(snapshot, header.slo_ns, baseline, contrast)
    return Measures(snapshot, header, causes, baseline, blame, contrast, trouble, tuple(groups))


def _trouble(snapshot: Snapshot, slo_ns: int | None, baseline: Snapshot | None, contrast: Contrast | None) -> Trouble:
    latency, time = snapshot.latency, snapshot.tail_time
    tail_ns = latency.p99_ns or latency.p95_ns
    if slo_ns is not None and (tail_ns or 0) > slo_ns:
        return "breach"
    if baseline is not None and min(latency.n, baseline.latency.n) >= ENOUGH:
        old, new = baseline.latency.p95_ns, latency.p95_ns
        if old and new and new >= WORSE * old:
            return "worse"
    if time is None or tail_ns is None:
        return ""
    # Budgets that another objective was shared out to say nothing of this one.
    other = time.budget_of == "slo" and slo_ns != snapshot.header.slo_ns
    if _left(time) and not other and _stretched(tail_ns, latency.p50_ns, contrast, snapshot):
        return "left"
    return "long" if slo_ns is None and _long(tail_ns, time) else ""


def _left(time: TailTime) -> bool:
    """Whether a stage left its budget, by far where that is an estimate from the calm quarter of the window."""
    if time.first is None:
        return False
    stage = time.stages[time.first]
    return time.budget_of == "slo" or stage.worst_ns >= FAR * stage.budget_ns


def _stretched(tail_ns: int, median_ns: int | None, contrast: Contrast | None, snapshot: Snapshot) -> bool:
    """Whether there is a tail at all, over the window or between its slots."""
    if median_ns is not None and tail_ns >= TAIL * median_ns:
        return True
    slots = contrast.of(snapshot.latency_series.p99_ns) if contrast else None
    return slots is not None and slots[0] >= TAIL * slots[1]


def _long(tail_ns: int, time: TailTime) -> bool:
    slowest, median = time.extreme or time.tail, time.median
    waited = slowest.shares[QUEUE]
    planned = slowest.shares[PLANNED] + slowest.shares[REST]
    served = max(median.latency_ns - median.mean_ns[QUEUE] - median.mean_ns[GATE], 1.0)
    if planned >= MOST:
        return False
    return tail_ns >= served * (LONG_WAIT if waited >= MOST else LONG)
