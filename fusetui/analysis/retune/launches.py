"""What a change of fusion does to launches and memory bursts, over the jobs that ran."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fusetui.accelerator.memory import burst
from fusetui.accelerator.runtime.paths import Path, PlanTable
from fusetui.analysis.fmt import duration


def kept(before: PlanTable, after: PlanTable, weights: Mapping[int, int]) -> tuple[str, ...]:
    """How much of what fusion saved in launches stays, over the jobs that ran; and the memory burst of the worst size.

    The generic path is the unfused one. weights: jobs by known size
    """
    paths = (before.fallback, before.plan, after.plan)
    n = [np.array([weights.get(int(rows), 0) for rows in path.rows], np.float64) for path in paths]
    jobs = max(float(n[1].sum()), 1.0)
    launches = [float((np.diff(path.first) * w).sum()) / jobs for path, w in zip(paths, n, strict=True)]
    waits = [np.add.reduceat(path.launch_ns, path.first[:-1]) for path in paths]
    exposed = [float((wait * w).sum()) / jobs for wait, w in zip(waits, n, strict=True)]
    told = [
        *_gain("launches", launches, [f"{value:.1f}" for value in launches]),
        *_gain("exposed launches", exposed, [duration(value).strip() for value in exposed]),
    ]
    sizes = [int(rows) for rows, w in zip(before.plan.rows, n[1], strict=True) if w]
    bursts = {size: (_burst(before.plan, size), _burst(after.plan, size)) for size in sizes}
    if bursts:
        size = max(bursts, key=lambda size: bursts[size][0] - bursts[size][1])
        was, will = bursts[size]
        told.append(f"memory burst in 100 µs at {size}: {was / 1e9:.0f} GB/s now, {will / 1e9:.0f} GB/s then")
    return tuple(told)


def _gain(name: str, values: list[float], texts: list[str]) -> list[str]:
    """What is kept of a saving: unfused, now, then."""
    none, was, will = values
    if none <= was:
        return []
    kept = f"{(none - will) / (none - was):.0%} of the gain is kept"
    return [f"{name} a job: {texts[0]} unfused, {texts[1]} now, {texts[2]} then: {kept}"]


def _burst(path: Path, size: int) -> float:
    """Bytes a second in the busiest 100 µs of a job of a known size."""
    at = int(np.searchsorted(path.rows, size))
    page = slice(int(path.first[at]), int(path.first[at + 1]))
    end = np.cumsum(path.launch_ns[page] + path.kernel_ns[page])
    return burst(end - path.kernel_ns[page], end, path.dram_bytes[page]).bytes_per_s
