"""A baseline on the axes of what is shown: over the same time since the beginning, or as a level."""

from __future__ import annotations

import numpy as np

from fusetui.analysis.snapshot import Snapshot
from fusetui.app import fmt
from fusetui.app.charts.line import Series
from fusetui.app.charts.resample import Floats
from fusetui.app.palette import WAS
from fusetui.app.panes.common import shown

LEGEND = "◦ was"


def titled(title: str, baseline: Snapshot | None) -> str:
    """A title that says what the dots are."""
    return title if baseline is None else f"{title} · {LEGEND}"


def was_series(
    snapshot: Snapshot, baseline: Snapshot | None, by_slot: Floats | None, level: float | None, unit: float = 1.0
) -> list[Series]:
    """The baseline as a dotted line: by_slot of the baseline [S], or `level` where time cannot be laid side by side."""
    if baseline is None or by_slot is None:
        return []
    label = f"was  {fmt.number(None if level is None else level / unit)}"
    return [Series(aligned(snapshot, baseline, by_slot, level), label, WAS, dotted=True)]


def aligned(snapshot: Snapshot, baseline: Snapshot, by_slot: Floats, level: float | None) -> Floats:
    """The baseline's slots on the shown time axis, [slots shown]: means over the same time since the beginning.

    Of a live source, whose beginning is when somebody looked, and where the baseline was over by then: `level`.
    """
    starts = snapshot.slot_start_ns[len(snapshot.slot_start_ns) - len(shown(snapshot, snapshot.depth_by_slot)) :]
    flat = np.full(len(starts), np.nan if level is None else level)
    filled = np.flatnonzero(baseline.rows_by_slot)
    transport = snapshot.transport
    if transport is None or not len(filled) or len(by_slot) != len(baseline.slot_start_ns):
        return flat
    begin = baseline.slot_start_ns[filled[0]]
    # Whole ns: as floating numbers times since 1970 are hundreds of ns apart.
    since = starts - transport.start_ns + begin - baseline.slot_start_ns[0]
    first = since // baseline.slot_ns
    last = np.maximum(-(-(since + snapshot.slot_ns) // baseline.slot_ns), first + 1)
    known = ~np.isnan(by_slot)
    sums = np.concatenate([[0.0], np.where(known, by_slot, 0.0).cumsum()])
    counts = np.concatenate([[0], known.cumsum()])
    first, last = (np.clip(edge, 0, len(by_slot)) for edge in (first, last))
    n = counts[last] - counts[first]
    found = np.where(n > 0, (sums[last] - sums[first]) / np.maximum(n, 1), np.nan)
    return flat if np.isnan(found).all() else found
