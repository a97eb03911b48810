"""Which numbers a recording of numbered rows has not: `request` counts up from 0 in order of sending."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from fusetui.telemetry.folder import folder_segments
from fusetui.telemetry.open import open_trace


@dataclass
class Missing:
    """gaps: first and last number of each run of missing ones; repeated: rows whose number was there already."""

    found: int = 0
    repeated: int = 0
    last: int = -1
    segments: int = 0
    bytes: int = 0
    gaps: list[tuple[int, int]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(last - first + 1 for first, last in self.gaps)


def missing_numbers(folder: Path) -> Missing:
    """Read a recording folder as one trace and look for every number."""
    trace = open_trace(folder)
    runs: list[tuple[int, int]] = []
    result = Missing()
    for number in range(len(trace.index().rows)):
        batch = trace.read(number)
        numbers = np.sort(pc.drop_null(batch.column("request")).to_numpy())
        if not len(numbers):
            continue
        result.found += len(numbers)
        cuts = np.flatnonzero(np.diff(numbers) != 1) + 1
        runs += [(int(part[0]), int(part[-1])) for part in np.split(numbers, cuts)]
    result.notes = list(trace.notes)
    trace.close()
    files = folder_segments(folder).values()
    result.segments, result.bytes = len(files), sum(file.stat().st_size for file in files)
    expected = 0
    for first, last in sorted(runs):
        if first > expected:
            result.gaps.append((expected, first - 1))
        result.repeated += max(0, min(last + 1, expected) - first)
        expected = max(expected, last + 1)
    result.last = expected - 1
    return result
