"""A fallback that feeds itself, from telemetry alone.

When the batch grows past the largest size that has a plan, every step falls back and takes longer, so that more
requests are in progress, so that the batch stays large: it does not recover although nothing waits and the throughput
looks normal. What shows it: batches above the largest planned one go with fallback, slot after slot until now, while
queue depth and rate are as they were before. The last twentieth of a window is not looked at: a load that ends drains.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from fusetui.analysis.arrays import Bools, Floats
from fusetui.analysis.mapping import Evidence

MIN_SLOTS: Final = 8
"""Slots with data that the fallback must have lasted, and that must lie before it."""
FALLEN: Final = 0.9
"""Share of fallback from which a slot is one of fallback; up to 1 - FALLEN it is one of planned work."""
HELD: Final = 0.85
"""The rate is normal from this share of what it was on."""
DRAIN: Final = 20
"""The last of this many parts of a window is left out."""
DEPTH_SLACK: Final = 1.0
"""Requests by which the queue may have grown and still look normal, or half as much again as it was."""
DOES_NOT_PROVE: Final = (
    "that the fallback keeps the batch large: demand may have grown by itself; lower the load for a moment and see",
    "that a plan for the larger batch would be faster: no such plan ran",
    "the largest planned size: it is the largest that was seen to run planned",
)


def metastable(mapping: Floats, batch: Floats, depth: Floats, rate: Floats, of: str = "") -> Evidence | None:
    """The evidence of a metastable fallback in series over the same slots [S], NaN: no data; None: not shown.

    mapping  share of executions that fell back
    of       what the executions are called
    batch    mean batch of executions; depth: mean queue depth; rate: completed work a second
    A queue that is not known cannot look normal: without depth before and during there is no evidence.
    """
    seen = len(mapping) - len(mapping) // DRAIN
    mapping, batch, depth, rate = mapping[:seen], batch[:seen], depth[:seen], rate[:seen]
    known = ~np.isnan(mapping) & ~np.isnan(batch)
    fell = known & (mapping >= FALLEN)
    first = _last_run(fell, known)
    during = fell & (np.arange(len(fell)) >= first)
    before = known & (mapping <= 1 - FALLEN) & (np.arange(len(fell)) < first)
    if during.sum() < MIN_SLOTS or before.sum() < MIN_SLOTS:
        return None
    largest = float(batch[before].max())
    if float(batch[during].min()) <= largest:
        return None
    values = [_median(series, slots) for series in (depth, rate) for slots in (before, during)]
    depth_before, depth_during, rate_before, rate_during = values
    if any(np.isnan(values)) or depth_during > max(depth_before + DEPTH_SLACK, 1.5 * depth_before):
        return None
    if rate_during < HELD * rate_before:
        return None
    return Evidence(
        from_slot=first,
        slots=int(during.sum()),
        largest_planned=int(np.ceil(largest)),
        batch_before=_median(batch, before),
        batch_during=_median(batch, during),
        fallback_share=float(mapping[during].mean()),
        depth_before=depth_before,
        depth_during=depth_during,
        rate_before=rate_before,
        rate_during=rate_during,
        does_not_prove=DOES_NOT_PROVE,
        of=of,
    )


def _last_run(fell: Bools, known: Bools) -> int:
    """The slot in which the fallback that still lasts began; len(fell) when the newest known slot is none."""
    others = np.flatnonzero(known & ~fell)
    after = int(others[-1]) + 1 if len(others) else 0
    run = np.flatnonzero(fell[after:])
    return after + int(run[0]) if len(run) else len(fell)


def _median(series: Floats, slots: Bools) -> float:
    values = series[slots]
    values = values[~np.isnan(values)]
    return float(np.median(values)) if len(values) else float("nan")
