"""What caused the tail: quantiles of the same arrivals simulated on the twin, with each driver taken away.

Time share is not cause: little time spent falling back can own much of a p99, for others queue behind it. A twin that
does not reproduce its trace tells no causes. Random numbers are common to all runs, so differences are of the drivers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from fusetui.accelerator.errors import AcceleratorError
from fusetui.accelerator.runtime.config import Config
from fusetui.accelerator.runtime.counterfactual import Attribution, Driver, attribute, nearest_rank
from fusetui.accelerator.runtime.load import Load
from fusetui.accelerator.runtime.outcome import (
    FALLBACK,
    GATE,
    MISPLACED,
    PADDING,
    PLANNED,
    QUEUE,
    SLOW,
    UNFUSED,
    Outcome,
)
from fusetui.accelerator.runtime.simulate import simulate
from fusetui.analysis.attribution.drivers import BANDWIDTH, IMBALANCE, LAUNCHES, QUEUEING, drivers_of
from fusetui.analysis.twin import Twin

QUANTILES: Final = (("p95", 0.95), ("p99", 0.99))
MOST_DRIVERS: Final = 6
"""2^6 runs; of more drivers those that change least are left out."""
MINOR: Final = 0.005
"""Share of every quantile that a driver must change, taken away or brought in alone, to be looked at further."""
NAMED: Final = 0.05
LOAD_NAMED: Final = 0.25
"""Share of a quantile from which a driver is named; what any load has, queueing, bandwidth, launches: a quarter."""
_LOAD: Final = (QUEUEING, BANDWIDTH, LAUNCHES)
LARGE: Final = 0.1
_NO_QUEUE: Final = "no core is named (columns device, core) and nothing waits: such a model fits whatever came"

Scale = Literal["ns", "log"]


@dataclass(frozen=True, slots=True)
class CauseRow:
    """One driver's part in a quantile, largest first.

    share_ns    Shapley's: those of all drivers add up to all_ns - none_ns
    without_ns  the quantile with this driver alone taken away
    """

    name: str
    share_ns: float
    without_ns: int


@dataclass(frozen=True, slots=True)
class CausesAt:
    """One quantile of latency, simulated. all_ns as it is, none_ns without all the drivers.

    attribution  exact shares on the scale asked for, with values by set of drivers
    named        the driver to name first, "" when none changes the quantile enough
    together     pairs that make each other worse by a tenth of the quantile and more, as (driver, driver, ns)
    """

    q: float
    all_ns: int
    none_ns: int
    rows: tuple[CauseRow, ...]
    attribution: Attribution
    named: str
    together: tuple[tuple[str, str, float], ...]


@dataclass(frozen=True, slots=True)
class Causes:
    """From a model, which `fit` tells how far to trust.

    scale     of the shares: time, or the logarithm, in which shares are of a ratio
    runs      simulations it took
    left_out  drivers that change next to nothing, or least of too many
    notes     what cannot be asked, and evidence
    """

    fit: str
    scale: Scale
    n: int
    runs: int
    p95: CausesAt
    p99: CausesAt
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def causes_of(
    twin: Twin,
    *,
    drivers: Sequence[Driver] | None = None,
    scale: Scale = "ns",
    wanted: Callable[[], bool] = lambda: True,
) -> Causes | str:
    """The causes, or in a line why there are none. Takes seconds: call it on a worker.

    drivers  in the order in which they are taken away; None: those of `drivers_of`
    wanted   asked before each run; False gives up
    """
    if not twin.fit.good:
        return twin.fit.text
    if not twin.exact and (twin.came.core < 0).all() and not twin.outcome.parts[:, [GATE, QUEUE, MISPLACED]].any():
        return _NO_QUEUE
    try:
        found, notes = (tuple(drivers), ()) if drivers is not None else drivers_of(twin.load, twin.config, twin.outcome)
        if not found:
            return "no driver had a part in these latencies"
        runs = _Runs(twin, found, wanted)
        kept, left_out = _chosen(runs, screen=drivers is None)
        levels = [(q, runs.values(kept, q)) for _, q in QUANTILES]
    except AcceleratorError as error:
        return str(error)
    except _GivenUpError:
        return "given up"
    names = [found[i].name for i in kept]
    p95, p99 = (_at(names, q, values, scale) for q, values in levels)
    return Causes(
        twin.fit.text, scale, len(twin.load), runs.done, p95, p99, left_out, (*twin.notes, *notes)
    )  # fmt: skip


class _GivenUpError(Exception):
    pass


class _Runs:
    """Quantiles by set of drivers that are on, each simulated once."""

    def __init__(self, twin: Twin, drivers: Sequence[Driver], wanted: Callable[[], bool]) -> None:
        self.drivers = drivers
        self._twin, self._wanted = twin, wanted
        self._found: dict[int, tuple[int, ...]] = {}
        self.everything = (1 << len(drivers)) - 1
        self._slowed = _slowed(twin.load, twin.outcome)
        self._moot = 0
        for i, driver in enumerate(drivers):
            even = driver.name == IMBALANCE and not twin.config.slow and twin.config.split.slow_share == 0
            if even or driver.name == BANDWIDTH:
                self._moot |= 1 << i
        self._queue = sum(1 << i for i, driver in enumerate(drivers) if driver.name == QUEUEING)
        self.done = 0

    def of(self, on: int) -> tuple[int, ...]:
        """The quantiles while the drivers in the set are on."""
        if self._queue and not on & self._queue:
            on &= ~self._moot  # without a queue nobody shares a core or its bandwidth
        if on not in self._found:
            if not self._wanted():
                raise _GivenUpError
            self._found[on] = self._simulated(on)
        return self._found[on]

    def _simulated(self, on: int) -> tuple[int, ...]:
        self.done += 1
        if on == self.everything:
            latency = self._twin.outcome.latency_ns
        else:
            load, config = self._without(on)
            latency = simulate(load, config).latency_ns
        return tuple(nearest_rank(latency, q) for _, q in QUANTILES)

    def _without(self, on: int) -> tuple[Load, Config]:
        load, config = self._twin.load, self._twin.config
        for i, driver in enumerate(self.drivers):
            if not on >> i & 1:
                config = driver.without(config)
        if config.placement.kind == "unlimited" and config.slow:
            # A core of its own is as slow as the one it had: that is not the queue's doing.
            load = self._slowed
        return load, config

    def values(self, kept: Sequence[int], q: float) -> list[int]:
        """By set of the kept drivers, the others on: bit i of the index is kept[i]."""
        others = self.everything & ~sum(1 << i for i in kept)
        at = [level for _, level in QUANTILES].index(q)
        return [
            self.of(others | sum(1 << i for bit, i in enumerate(kept) if on >> bit & 1))[at]
            for on in range(1 << len(kept))
        ]


def _slowed(load: Load, outcome: Outcome) -> Load:
    """The load with as much more to do as the cores it ran on were slower."""
    parts = outcome.jobs.parts[outcome.job].astype(np.float64)
    kernel = parts[:, [PLANNED, UNFUSED, PADDING, FALLBACK]].sum(axis=1)
    more = np.divide(parts[:, SLOW], kernel, out=np.zeros(len(kernel)), where=kernel > 0)
    return replace(load, work=load.work * (1.0 + more))


def _chosen(runs: _Runs, screen: bool) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """(indices of the drivers worth all combinations, names of the others)."""
    every = range(len(runs.drivers))
    if not screen:
        return tuple(every), ()
    most, none = runs.of(runs.everything), runs.of(0)
    change = []
    for i in every:
        away, alone = runs.of(runs.everything ^ 1 << i), runs.of(1 << i)
        by = [abs(a - b) / max(b, 1) for a, b in zip((*away, *alone), (*most, *none), strict=True)]
        change.append(max(by))
    ranked = sorted(every, key=lambda i: -change[i])
    kept = [i for i in ranked if change[i] >= MINOR][:MOST_DRIVERS] or ranked[:1]
    return tuple(sorted(kept)), tuple(runs.drivers[i].name for i in ranked if i not in kept)


def _at(names: Sequence[str], q: float, values: Sequence[int], scale: Scale) -> CausesAt:
    exact = attribute(names, values)
    shown = exact if scale == "ns" else attribute(names, values, scale)
    everything = len(values) - 1
    rows = sorted(
        (
            CauseRow(name, float(share), values[everything ^ 1 << i])
            for i, (name, share) in enumerate(zip(names, exact.shares, strict=True))
        ),
        key=lambda row: -row.share_ns,
    )
    together = tuple((a, b, float(ns)) for a, b, ns in exact.interactions if ns >= LARGE * values[-1] > 0)
    return CausesAt(q, values[-1], values[0], tuple(rows), shown, _named(rows, values[-1]), together)


def _named(rows: Sequence[CauseRow], all_ns: int) -> str:
    for row in rows:
        if row.share_ns >= all_ns * (LOAD_NAMED if row.name in _LOAD else NAMED) > 0:
            return row.name
    return ""
