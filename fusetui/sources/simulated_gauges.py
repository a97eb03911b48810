"""What a simulated device would report twice a second: memory traffic, its peaks, and how many wait and run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusetui.sources.simulated_round import Work


@dataclass(frozen=True, slots=True)
class Reading:
    """A counter's value; `counter` is its index in `simulated_words.COUNTERS`, device -1 where it is of all."""

    counter: int
    device: int
    value: float


class Gauges:
    """Readings over a window. bytes_per_s: a device's memory bandwidth; slices: cores of a device."""

    def __init__(self, devices: int, slices: int, bytes_per_s: float) -> None:
        self._devices = devices
        self._slices = slices
        self._bandwidth = bytes_per_s / 1e9  # bytes per ns

    def read(self, runs: Work, requests: Work, from_ns: int, to_ns: int) -> list[Reading]:
        """runs, requests: at least everything that ran or waited in (from_ns, to_ns]."""
        inside = runs.take((runs.start < to_ns) & (runs.end > from_ns) & (runs.end > runs.start) & (runs.dram > 0))
        start, end = np.maximum(inside.start, from_ns), np.minimum(inside.end, to_ns)
        rate = inside.dram / (inside.end - inside.start)
        device = inside.core // self._slices
        moved = np.bincount(device, rate * (end - start), self._devices)
        readings = [Reading(0, d, float(moved[d]) / (to_ns - from_ns)) for d in range(self._devices)]
        for d in range(self._devices):
            mine = device == d
            peak = _peak(start[mine], end[mine], rate[mine])
            readings.append(Reading(1, d, peak / self._bandwidth))
        waiting = (requests.enqueue <= to_ns) & (requests.start > to_ns)
        running = (requests.start <= to_ns) & (requests.end > to_ns)
        return [*readings, Reading(2, -1, float(waiting.sum())), Reading(3, -1, float(running.sum()))]


def _peak(start: np.ndarray, end: np.ndarray, rate: np.ndarray) -> float:
    """The largest sum of rates at one time; what ends at an instant makes room for what starts then."""
    if not len(start):
        return 0.0
    at = np.concatenate([end, start])
    change = np.concatenate([-rate, rate])[np.argsort(at, kind="stable")]
    return max(0.0, float(np.cumsum(change).max()))
