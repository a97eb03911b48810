"""The slots of a window in which the tail was made, and those that were calm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from fusetui.analysis.arrays import Bools, Floats
from fusetui.analysis.snapshot import Snapshot

LEAST: Final = 2
OFF: Final = 0.02
"""Quantiles of slots come from histograms, up to 1.1 % off; that of the window may be exact."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """Bad slots reach the p95 of the window with their p99; calm ones stay at or under the median of theirs, [S]."""

    bad: Bools
    calm: Bools

    def of(self, series: Floats) -> tuple[float, float] | None:
        """(mean over bad slots, mean over calm slots) of a series [S]; None where either is not known."""
        known = ~np.isnan(series)
        bad, calm = series[self.bad & known], series[self.calm & known]
        if len(bad) < LEAST or len(calm) < LEAST:
            return None
        return float(bad.mean()), float(calm.mean())


def contrast_of(snapshot: Snapshot) -> Contrast | None:
    """None where the slots do not differ enough to tell, or too few are known."""
    p99, p95_ns = snapshot.latency_series.p99_ns, snapshot.latency.p95_ns
    known = ~np.isnan(p99)
    if p95_ns is None or known.sum() < 4 * LEAST:
        return None
    reach = p95_ns * (1 - OFF)
    middle = float(np.median(p99[known]))
    bad, calm = known & (p99 >= reach), known & (p99 <= middle) & (p99 < reach)
    return Contrast(bad, calm) if bad.sum() >= LEAST and calm.sum() >= LEAST else None


def work_per_item(snapshot: Snapshot) -> Floats:
    """Busy time of all cores per item done, by slot [S], ns; NaN: not known."""
    n = snapshot.latency_series.n
    busy = np.nansum(snapshot.cores.busy_share, axis=0) * snapshot.slot_ns
    return np.where((n > 0) & (busy > 0), busy / np.maximum(n, 1), np.nan)


def stalled_share(snapshot: Snapshot) -> Floats:
    """Share of a slot, or of the one before, in which a recompile stalled, [S]: who waited for it ends after it."""
    stall = snapshot.mapping_detail.stall_by_slot
    if len(stall) != len(snapshot.slot_start_ns):
        return np.zeros(len(snapshot.slot_start_ns))
    share = np.nan_to_num(stall) / snapshot.slot_ns
    either: Floats = np.maximum(share, np.append(0.0, share[:-1]))
    return either


def unplanned_share(snapshot: Snapshot) -> Floats:
    """Share of the time of executions that no plan of their size took, by slot [S]; NaN: none carries a mapping."""
    padded, fell = unplanned_parts(snapshot)
    return padded + fell


def unplanned_parts(snapshot: Snapshot) -> tuple[Floats, Floats]:
    """(what padding added, what fell back) as shares of the time of executions by slot, [S] each; NaN: no mapping.

    Of what ran padded what the padding added, half where the factor is not known.
    """
    detail, slots = snapshot.mapping_detail, len(snapshot.slot_start_ns)
    by_slot = detail.time_by_slot
    if by_slot.shape[1] != slots:
        return np.full(slots, np.nan), np.full(slots, np.nan)
    time = by_slot.sum(axis=0)
    known = time[:, :3].sum(axis=1)
    factor = detail.padding_by_slot if len(detail.padding_by_slot) == slots else np.full(slots, np.nan)
    of = np.where(known > 0, np.maximum(known, 1.0), np.nan)
    return _added(factor, time) * time[:, 1] / of, time[:, 2] / of


def _added(factor: Floats, time: Floats) -> Floats:
    """Share of the adapted time that padding added: the factor is over all executions, padded or not, [S]."""
    known = time[:, :3].sum(axis=1)
    adapted = np.divide(time[:, 1], known, out=np.zeros(len(known)), where=known > 0)
    excess = 1.0 - 1.0 / np.maximum(np.nan_to_num(factor, nan=1.0), 1.0)
    of_adapted = np.divide(excess, adapted, out=np.full(len(known), 0.5), where=adapted > 0)
    added: Floats = np.where(np.isnan(factor), 0.5, np.clip(of_adapted, 0.0, 1.0))
    return added
