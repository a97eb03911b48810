"""Time and cause side by side: the rows of "what the tail is made of"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fusetui.analysis.attribution import drivers as d
from fusetui.analysis.attribution import parts as p
from fusetui.analysis.attribution.causes import CausesAt
from fusetui.analysis.attribution.parts import PARTS, TailTime

DRIVERS_OF: Final = {
    p.QUEUE: (d.QUEUEING,),
    p.GATE: (d.BATCHING,),
    p.LAUNCH: (d.LAUNCHES,),
    p.PLANNED: (d.BURST, d.FUSION),
    p.IMBALANCE: (d.IMBALANCE,),
    p.PADDING: (d.PADDING,),
    p.FALLBACK: (d.FALLBACK,),
    p.CONTENTION: (d.BANDWIDTH,),
    p.REST: (),
}
"""The drivers that could have caused each part."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line. name: the driver where it has been asked for, else the part of time.

    time_ns, median_ns, time_share  what the slowest spent there, what the median did, share of the slowest's latency
    without_ns, share_ns            model: the quantile without the driver, and its Shapley share; None: not asked
    """

    name: str
    time_ns: float
    median_ns: float
    time_share: float
    without_ns: int | None = None
    share_ns: float | None = None


def two_columns(time: TailTime, causes: CausesAt | None, extreme: bool = True) -> tuple[Row, ...]:
    """Largest first: by Shapley share where there are causes, then by time. extreme: the p99 cohort where it is known.

    Parts that took no time and caused nothing are left out.
    """
    slowest = time.extreme if extreme and time.extreme is not None else time.tail
    found = {} if causes is None else {row.name: row for row in causes.rows}
    rows = []
    for part, name in enumerate(PARTS):
        cause = next((found[driver] for driver in DRIVERS_OF[part] if driver in found), None)
        spent, share = slowest.mean_ns[part], slowest.shares[part]
        if cause is not None:
            median = time.median.mean_ns[part]
            rows.append(Row(cause.name, spent, median, share, cause.without_ns, cause.share_ns))
        elif spent > 0:
            rows.append(Row(name, spent, time.median.mean_ns[part], share))
    rows.sort(key=lambda row: (row.share_ns is None, -(row.share_ns or 0.0), -row.time_ns))
    return tuple(rows)
