"""Runs of one scenario side by side: what `fusetui simulate --policy A,B,C` prints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fusetui.accelerator.memory import burst
from fusetui.accelerator.runtime.counterfactual import nearest_rank
from fusetui.accelerator.runtime.executions import executions
from fusetui.accelerator.runtime.outcome import COMPONENTS, LAUNCH, Outcome
from fusetui.accelerator.scenario.build import Run
from fusetui.analysis.fmt import DASH, duration, percent

_QUANTILES = (("p50_ns", 0.5), ("p95_ns", 0.95), ("p99_ns", 0.99))


def figures(run: Run) -> dict[str, Any]:
    """One round in numbers, JSON-ready; kernels and bursts are None where jobs are told whole.

    launch_ns    exposed launch time, mean per job; launches: kernels per job
    burst        traffic in the busiest 100 µs over the device's bandwidth, the worst device; over_sustained: over what
                 that device sustained over the whole run
    busy         share of the cores' time
    parts_ns     mean latency of a request by component; they add up to mean_ns
    """
    outcome = next(run.rounds()).outcome
    latency = outcome.latency_ns
    n = len(latency)
    kernels, burst_share, over = _bursts(run, outcome)
    span = max(int(outcome.end_ns.max(initial=1)), 1)
    jobs = outcome.jobs
    return {
        "requests": n,
        "jobs": len(jobs),
        "launches": None if kernels is None else kernels / max(len(jobs), 1),
        "launch_ns": float(jobs.parts[:, LAUNCH].mean()) if len(jobs) else None,
        "burst": burst_share,
        "over_sustained": over,
        "busy": float((jobs.end_ns - jobs.start_ns).sum()) / (span * run.config.cores),
        **{name: nearest_rank(latency, q) if n * (1 - q) >= 1 else None for name, q in _QUANTILES},
        "mean_ns": float(latency.mean()) if n else None,
        "parts_ns": dict(zip(COMPONENTS, outcome.parts.mean(axis=0).tolist(), strict=True)) if n else {},
    }


def _bursts(run: Run, outcome: Outcome) -> tuple[int | None, float | None, float | None]:
    """(kernels, burst over bandwidth, burst over sustained) of the device where the burst is largest."""
    if not run.scenario.kernels:
        return None, None, None
    runs = executions(outcome)
    device = outcome.jobs.core[runs.job] // run.config.per_device
    most: tuple[float, float | None] | None = None
    for number in np.unique(device).tolist():
        mine = device == number
        found = burst(
            runs.start_ns[mine].astype(np.float64), runs.end_ns[mine].astype(np.float64), runs.dram_bytes[mine]
        )
        share = found.bytes_per_s / run.hardware.dram_bytes_per_s
        if most is None or share > most[0]:
            most = (share, found.over_sustained)
    return len(runs), *(most or (None, None))


def table_lines(run: Run, rows: list[dict[str, Any]]) -> Iterator[str]:
    """A line a policy, the component means below."""
    scenario = run.scenario
    yield f"{scenario.title} (simulated, {scenario.seconds:g} s, seed {scenario.seed}, {scenario.hardware})"
    yield ""
    yield (
        f"{'policy':14}{'kernels':>8}{'launch':>10}{'burst':>7}{'busy':>7}"
        + "".join(f"{name[:-3]:>10}" for name, _ in _QUANTILES)
        + f"{'mean':>10}{'n':>9}"
    )
    for row in rows:
        cells = "".join(f"{_ns(row[name]):>10}" for name in (*(name for name, _ in _QUANTILES), "mean_ns"))
        yield (
            f"{row['policy']:14}{_number(row['launches']):>8}{_ns(row['launch_ns']):>10}{_times(row['burst']):>7}"
            f"{percent(row['busy']).strip():>7}{cells}{row['requests']:>9,}"
        )
    yield ""
    yield "launch: exposed launch time of a job; burst: traffic in the busiest 100 µs over the device's bandwidth"
    yield "mean latency by component:"
    for part in COMPONENTS:
        values = [row["parts_ns"].get(part, 0.0) for row in rows]
        if any(values):
            told = "  ".join(f"{row['policy']} {_ns(v)}" for row, v in zip(rows, values, strict=True))
            yield f"  {part:12}{told}"


def _ns(value: float | None) -> str:
    return duration(value).strip()


def _number(value: float | None) -> str:
    return DASH if value is None else f"{value:.1f}"


def _times(value: float | None) -> str:
    return DASH if value is None else f"{value:.2f}x"
