"""Counters by what they measure: sources name them as their device or driver does."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import numpy as np

from fusetui.analysis.arrays import Floats
from fusetui.analysis.snapshot import CounterRow, Snapshot
from fusetui.triage.slots import Contrast

_USE: Final = r"(active|util|busy|throughput|occupancy)"
PATTERNS: Final = {
    "compute": re.compile(rf"\b(tensor|matrix|mfma|mxu|compute|sm|fp16|alu|valu)\b.*{_USE}|pipe_tensor.*active"),
    "dram": re.compile(rf"(dram|hbm|device memory|memory bandwidth|mem_copy).*{_USE}"),
    "onchip": re.compile(rf"\b(l1|l2|lds|sram|tex|shared memory|bank conflicts?)\b.*{_USE}?"),
    "spill": re.compile(r"spill|local memory|scratch (reads|writes|traffic|bytes)"),
    "burst": re.compile(r"peak dram demand"),
    "power": re.compile(r"\bpower\b|power_usage|watt"),
    "clock": re.compile(r"\bclocks?\b|_clock|\bmhz\b"),
    "temperature": re.compile(r"temp"),
    "capped": re.compile(r"throttl|capped|clocks_event|power violation|thermal violation"),
    "cpu": re.compile(r"^(host )?cpu( busy| util)"),
    "waiting": re.compile(r"\b(waiting|pending|queued)\b"),
    "running": re.compile(r"\brunning\b"),
    "tokens": re.compile(r"throughput|tokens"),
    "occupancy": re.compile(r"occupancy|waves?|warps?"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Series:
    """Readings of one counter: by_slot [S], shares as 0..1 where the unit is %."""

    row: CounterRow
    by_slot: Floats

    @property
    def label(self) -> str:
        """Name and device."""
        return f"{self.row.name} {self.row.device}".strip()


def counters(snapshot: Snapshot, what: str) -> tuple[Series, ...]:
    """The counters that measure it, in the order of the snapshot."""
    pattern = PATTERNS[what]
    found = (row for row in snapshot.counter_rows if pattern.search(row.name.lower().replace("_", " ")))
    return tuple(Series(row, row.by_slot / 100.0 if row.unit.strip() == "%" else row.by_slot) for row in found)


def total(series: tuple[Series, ...], slots: int) -> Floats:
    """Sum over series by slot [S]; NaN where none was read."""
    if not series:
        return np.full(slots, np.nan)
    stacked = np.stack([one.by_slot for one in series])
    return np.where(np.isnan(stacked).all(axis=0), np.nan, np.nansum(stacked, axis=0))


def level(series: Series, contrast: Contrast | None) -> tuple[float, float | None]:
    """(mean where the tail was made, mean over calm slots); without slots to compare (mean, None)."""
    found = contrast.of(series.by_slot) if contrast else None
    return found or (float(np.nanmean(series.by_slot)), None)
