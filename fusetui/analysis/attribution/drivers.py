"""What may have cost latency in a runtime, and the same runtime without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np

from fusetui.accelerator.memory import burst
from fusetui.accelerator.runtime.config import Batching, Config, Lookup, Placement
from fusetui.accelerator.runtime.counterfactual import Driver
from fusetui.accelerator.runtime.executions import executions
from fusetui.accelerator.runtime.load import Load
from fusetui.accelerator.runtime.outcome import CONTENTION, GENERIC, LAUNCH, PADDED, UNFUSED, Outcome
from fusetui.accelerator.runtime.paths import Path, PlanTable
from fusetui.accelerator.runtime.simulate import simulate

QUEUEING: Final = "queueing"
IMBALANCE: Final = "imbalance"
BATCHING: Final = "batch policy"
BURST: Final = "memory burst"
FUSION: Final = "fusion"
FALLBACK: Final = "fallback"
PADDING: Final = "padding"
BANDWIDTH: Final = "bandwidth"
LAUNCHES: Final = "launch"

_MOST_JOBS: Final = 200_000
_EVEN: Final = ("least_loaded", "shared", "stealing", "unlimited")


def without_queueing(config: Config) -> Config:
    """A core for every job, and so nobody to share its bandwidth with."""
    return replace(config, placement=Placement("unlimited"), contention=False)


def without_imbalance(config: Config) -> Config:
    """The least loaded core for every job, all cores and all parts of a job equally fast."""
    even = replace(config, slow=(), split=replace(config.split, slow_share=0.0))
    return even if even.placement.kind in _EVEN else replace(even, placement=Placement("least_loaded"))


def without_batching(config: Config) -> Config:
    """Every request for itself, at once."""
    return replace(config, batching=Batching())


def without_bandwidth(config: Config) -> Config:
    """Cores of a device that do not slow each other."""
    return replace(config, contention=False)


def without_burst(config: Config) -> Config:
    """The best plan known in place of the one in use."""
    return _tables(config, lambda t: t if t.best is None else replace(t, plan=t.best, best=None))


def without_fallback(config: Config) -> Config:
    """Where no plan fits, what one for the exact size would take."""
    return _tables(config, lambda t: replace(t, fallback=_going_on(t.plan)))


def without_padding(config: Config) -> Config:
    """Where a size is padded to a larger plan, one for the exact size; what fell back still does."""
    lookups = config.lookup if isinstance(config.lookup, tuple) else (config.lookup,)
    exact = tuple(_unpadded(lookup) for lookup in lookups)
    return replace(config, lookup=exact if isinstance(config.lookup, tuple) else exact[0])


def without_launches(config: Config) -> Config:
    """Launches that the device never waits for."""
    return _tables(
        config,
        lambda t: PlanTable(t.name, _launched(t.plan), _launched(t.fallback), t.best and _launched(t.best)),
    )


def drivers_of(load: Load, config: Config, outcome: Outcome) -> tuple[tuple[Driver, ...], tuple[str, ...]]:
    """(the drivers that had a part in an outcome, why one that one would look for is not among them).

    In the order they are to be taken away: what falls back is given the plan in use then, and who has no queue has no
    core to be even with.
    """
    jobs = outcome.jobs
    continuous = config.decode is not None
    uneven = config.placement.kind not in _EVEN or bool(config.slow) or config.split.slow_share > 0
    gates = config.batching if isinstance(config.batching, tuple) else (config.batching,)
    spent = jobs.parts.sum(axis=0)
    other = bool(spent[UNFUSED])
    plan, notes = _plan_driver(load, config, outcome) if other else (FUSION, ())
    listed = (
        (config.cores > 1 and uneven, IMBALANCE, without_imbalance),
        (not continuous and any(gate.kind != "none" for gate in gates), BATCHING, without_batching),
        (bool(spent[CONTENTION]), BANDWIDTH, without_bandwidth),
        (other, plan, without_burst),
        (bool((jobs.mapping == GENERIC).any()), FALLBACK, without_fallback),
        (bool((jobs.mapping == PADDED).any()), PADDING, without_padding),
        (bool(spent[LAUNCH]), LAUNCHES, without_launches),
        (not continuous and config.placement.kind != "unlimited", QUEUEING, without_queueing),
    )
    if continuous:
        notes += ("continuous batching: there is no runtime without its queue to compare with",)
    return tuple(Driver(name, change) for there, name, change in listed if there), notes


def _plan_driver(load: Load, config: Config, outcome: Outcome) -> tuple[str, tuple[str, ...]]:
    """A plan that is not the best known is a memory burst where its traffic comes in a higher peak than the best's."""
    if config.decode is not None or len(outcome.jobs) > _MOST_JOBS:
        return FUSION, ()
    own, best = _burst(outcome), _burst(simulate(load, without_burst(config)))
    if own <= best:
        return FUSION, ()
    return BURST, (
        f"the plan in use moves {own / 1e9:.4g} GB/s in its busiest 100 µs, the best known {best / 1e9:.4g}",
    )


def _burst(outcome: Outcome) -> float:
    """Bytes per s in the busiest 100 µs of the device where that is most."""
    runs = executions(outcome)
    device = outcome.jobs.core[runs.job] // outcome.config.per_device
    start, end = runs.start_ns.astype(np.float64), runs.end_ns.astype(np.float64)
    each = (device == number for number in np.unique(device).tolist())
    return max(burst(start[on], end[on], runs.dram_bytes[on]).bytes_per_s for on in each)


def _unpadded(lookup: Lookup) -> Lookup:
    if not lookup.captured:
        return lookup
    top = lookup.captured[-1]
    return Lookup(limit=top if lookup.limit is None else min(lookup.limit, top))


def _going_on(plan: Path) -> Path:
    """The plan for sizes beyond its largest: where measured times fall towards that, which is noise, a line through
    all of them goes on instead, and never below the largest's."""
    times = plan.time_ns(plan.rows)[0]
    if len(times) < 2 or times[-1] >= times[-2] or plan.demand.any():
        return plan
    slope, base = np.polyfit(plan.rows.astype(np.float64), times, 1)
    far = 2 * int(plan.rows[-1]) + 1
    launch = plan.time_ns(plan.rows)[1]
    return Path.of(
        np.append(plan.rows, far), np.append(times, max(base + slope * far, times[-1])),
        launch_ns=np.append(launch, launch[-1]), output_ns=plan.output_ns, name="planned",
    )  # fmt: skip


def _launched(path: Path) -> Path:
    return replace(path, launch_ns=np.zeros_like(path.launch_ns))


def _tables(config: Config, change: Callable[[PlanTable], PlanTable]) -> Config:
    decode = None if config.decode is None else change(config.decode)
    return replace(config, tables=tuple(change(table) for table in config.tables), decode=decode)
