"""What a twin is, and how well it reproduces its trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fusetui.accelerator.runtime.config import Config
from fusetui.accelerator.runtime.load import Load
from fusetui.accelerator.runtime.outcome import Outcome
from fusetui.accelerator.scenario.spec import Scenario
from fusetui.analysis.arrays import Ints
from fusetui.analysis.quantiles import nearest_rank
from fusetui.analysis.twin.requests import Requests

GOOD: Final = 0.15
"""Largest relative error of a quantile with which what the twin says of causes is shown."""
QUANTILES: Final = ((0.5, 1), (0.95, 20), (0.99, 100))
"""Quantile and the number of requests from which it is told."""

Tail = tuple[int | None, int | None, int | None]


@dataclass(frozen=True, slots=True)
class Fit:
    """p50, p95 and p99 of latency in ns, of the trace and of its twin, over the n requests that ended in the trace."""

    n: int
    measured_ns: Tail
    simulated_ns: Tail

    @property
    def error(self) -> tuple[float | None, float | None, float | None]:
        """simulated / measured - 1."""
        p50, p95, p99 = (
            simulated / measured - 1 if simulated is not None and measured else None
            for measured, simulated in zip(self.measured_ns, self.simulated_ns, strict=True)
        )
        return p50, p95, p99

    @property
    def good(self) -> bool:
        """Whether every quantile that is known is within GOOD of the trace's."""
        known = [error for error in self.error if error is not None]
        return bool(known) and all(abs(error) <= GOOD for error in known)

    @property
    def text(self) -> str:
        """`model fit p50 +0 %, p95 -1 %, p99 -38 % (n = 800): causes are not shown`."""
        told = [
            f"{name} {error * 100:+.0f} %"
            for name, error in zip(("p50", "p95", "p99"), self.error, strict=True)
            if error is not None
        ]
        verdict = "" if self.good else ": causes are not shown"
        return f"model fit {', '.join(told) or 'unknown'} (n = {self.n:,}){verdict}"


@dataclass(frozen=True, slots=True)
class Twin:
    """A load and a runtime that stand for a trace.

    load         requests as they came, ns since `start_ns`; `work` is how much longer each took than its like
    config       the runtime as observed: change it with dataclasses.replace and simulate the same load
    outcome      simulate(load, config)
    start_ns     trace time of the load's 0
    request      (n,) number in the trace of each request, -1 without one
    measured_ns  (n,) latency in the trace, -1 of requests that had not ended
    came         the rows of the requests, in the same order
    exact        tables and runtime are those of the scenario in the header, not fitted to telemetry
    scenario     that scenario; hardware: the preset's name, "" unknown
    notes        what the twin leaves out, one line each
    """

    load: Load
    config: Config
    outcome: Outcome
    fit: Fit
    start_ns: int
    request: Ints
    measured_ns: Ints
    came: Requests
    exact: bool = False
    scenario: Scenario | None = None
    hardware: str = ""
    notes: tuple[str, ...] = ()


def tail_of(latency_ns: Ints) -> Tail:
    """p50, p95, p99 by nearest rank, None where there are too few."""
    p50, p95, p99 = (nearest_rank(latency_ns, [q])[0] if len(latency_ns) >= enough else None for q, enough in QUANTILES)
    return p50, p95, p99


def fit_of(measured_ns: Ints, outcome: Outcome) -> Fit:
    """The fit over the requests that ended in the trace."""
    ended = measured_ns >= 0
    return Fit(int(ended.sum()), tail_of(measured_ns[ended]), tail_of(outcome.latency_ns[ended]))
