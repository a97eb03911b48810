"""How much of the tail is whose doing: one share per bottleneck, of time and of cause, and how each is known.

Of time: what the slowest spend in a part more than the median, over their latency.

Of cause, from the twin: Shapley's share. Queueing, bandwidth and launches are what any load has: they count for what
faults of the same quantile do not explain, at p95 and at p99 both. Where the twin names nothing, time it is.

Of cause, without a twin: the share of time; and where more ran without a plan of its size in the bad slots than in the
calm ones, the wait behind it too: as much of the growth of load (items a second × work of an item) as is work of an
item, and of the growth of planned time as much as ran unplanned. All of it, where recompiles stall the bad slots.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from fusetui.analysis.attribution import parts
from fusetui.analysis.attribution.parts import TailTime
from fusetui.analysis.snapshot import Snapshot
from fusetui.triage.finding import Bottleneck
from fusetui.triage.slots import contrast_of, stalled_share, unplanned_share, work_per_item

if TYPE_CHECKING:
    from fusetui.analysis.attribution.causes import Causes, CausesAt

How = Literal["twin", "time", "behind"]

_OF_PART: Final[dict[int, Bottleneck]] = {
    parts.QUEUE: "queueing", parts.GATE: "batching", parts.LAUNCH: "launch", parts.IMBALANCE: "imbalance",
    parts.PADDING: "fallback", parts.FALLBACK: "fallback", parts.CONTENTION: "DRAM bandwidth",
}  # fmt: skip
OF_DRIVER: Final[dict[str, Bottleneck]] = {
    "queueing": "queueing", "imbalance": "imbalance", "batch policy": "batching", "memory burst": "memory burst",
    "fusion": "launch", "fallback": "fallback", "padding": "fallback", "bandwidth": "DRAM bandwidth",
    "launch": "launch",
}  # fmt: skip
"""A plan that is not the best known ("fusion") costs launches and traffic between its kernels."""
_LOAD: Final = ("queueing", "bandwidth", "launch")
STALLED: Final = 0.1
"""Share of time by which recompiles stall bad slots more than calm ones for the wait to be behind them."""
ROSE: Final = 0.1
"""Share of unplanned time by which bad slots must exceed calm ones for the wait to be behind it."""


@dataclass(frozen=True, slots=True)
class Blame:
    """time: share of the slowest's latency beyond the median's; cause: what is ranked by; how it is known."""

    time: float = 0.0
    cause: float = 0.0
    how: How = "time"


def blame_of(snapshot: Snapshot, causes: Causes | None) -> dict[Bottleneck, Blame]:
    """By bottleneck; empty where neither time nor cause is known."""
    times = _times(snapshot.tail_time)
    from_twin = {} if causes is None else _by_twin(causes)
    if causes is not None and (causes.p95.named or causes.p99.named):
        names = {*times, *from_twin}
        return {name: Blame(times.get(name, 0.0), from_twin.get(name, 0.0), "twin") for name in names}
    found = {name: Blame(share, share) for name, share in times.items()}
    behind, of_planned = _behind(snapshot)
    if behind > 0:
        queue, fallback = times.get("queueing", 0.0), times.get("fallback", 0.0)
        planned = growth(snapshot.tail_time, parts.PLANNED)
        found["fallback"] = Blame(fallback, fallback + behind * queue + of_planned * planned, "behind")
        found["queueing"] = Blame(queue, (1.0 - behind) * queue)
    return found


def growth(time: TailTime | None, part: int) -> float:
    """What the slowest spend in a part (index in PARTS) more than the median, over their latency."""
    if time is None:
        return 0.0
    slowest = time.extreme or time.tail
    more = max(slowest.mean_ns[part] - time.median.mean_ns[part], 0.0)
    return more / slowest.latency_ns if slowest.latency_ns > 0 else 0.0


def _times(time: TailTime | None) -> dict[Bottleneck, float]:
    found: dict[Bottleneck, float] = {}
    for part, name in _OF_PART.items():
        found[name] = found.get(name, 0.0) + growth(time, part)
    return found if time is not None else {}


def _by_twin(causes: Causes) -> dict[Bottleneck, float]:
    p95, p99 = (_at(at) for at in (causes.p95, causes.p99))
    found: dict[Bottleneck, float] = {}
    for driver in {*p95, *p99}:
        both = p95.get(driver, 0.0), p99.get(driver, 0.0)
        share = min(both) if driver in _LOAD else max(both)
        found[OF_DRIVER[driver]] = found.get(OF_DRIVER[driver], 0.0) + share
    return found


def _at(at: CausesAt) -> dict[str, float]:
    """Share of a quantile by driver, of load beside the faults."""
    faults = sum(max(row.share_ns, 0.0) for row in at.rows if row.name not in _LOAD)
    all_ns = max(at.all_ns, 1)
    return {row.name: max(row.share_ns - (faults if row.name in _LOAD else 0.0), 0.0) / all_ns for row in at.rows}


def _behind(snapshot: Snapshot) -> tuple[float, float]:
    """(share of the growth of queue wait, share of the growth of planned time) that goes with unplanned work."""
    contrast = contrast_of(snapshot)
    stalled = contrast and contrast.of(stalled_share(snapshot))
    if stalled and stalled[0] - stalled[1] >= STALLED and stalled[0] >= 2 * stalled[1]:
        return 1.0, 0.0
    unplanned = contrast and contrast.of(unplanned_share(snapshot))
    if not contrast or not unplanned or unplanned[0] - unplanned[1] < ROSE:
        return 0.0, 0.0
    rose = unplanned[0] - unplanned[1]
    work, items = contrast.of(work_per_item(snapshot)), contrast.of(snapshot.latency_series.n.astype(float))
    if not work or not items or min(*work, *items) <= 0:
        return 0.0, rose
    by_work, by_items = math.log(work[0] / work[1]), max(math.log(items[0] / items[1]), 0.0)
    return (by_work / (by_work + by_items) if by_work > 0 else 0.0), rose
