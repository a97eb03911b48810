"""What ran beside what the model says: a residual per group, and what it may be taken to mean.

A group's time is the sum of the median times of the executions that make it up, whether they ran as one kernel or as
several; its prediction is of the one kernel the plan would run. Within the plan's error bar the two agree ("fits").
Slower is explained as long as running the operators one by one would take that long; faster as long as the
arithmetic alone would not take longer. Beyond that nothing the model knows explains it ("unexplained").

It does not prove why: a wrong prediction, a wrong shape and a slow kernel look the same, and clocks, contention and
profiling overhead are all in the measured time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from fusetui.accelerator.constants import Constants
from fusetui.accelerator.hardware import Hardware
from fusetui.accelerator.plan import GroupPlan, Plan, force_group, price_graph
from fusetui.analysis.planned import Captured, GroupRow, Measured

FITS: Final = "fits"
SLOWER: Final = "slower"
FASTER: Final = "faster"
UNEXPLAINED: Final = "unexplained"
_LEAST_BAR: Final = 0.05  # two runs of one kernel differ by this much


def group_rows(plan: Plan, captured: Captured, hw: Hardware | None = None) -> tuple[GroupRow, ...]:
    """A row per group of `plan`, with its measurement where all of its operators, and no others, were measured.

    hw  bounds how fast a group can be; without it nothing is too fast to be explained by the model being off
    """
    units = units_of(captured)
    bar = max(plan.totals.predicted_error, _LEAST_BAR)
    rate = None if hw is None else hw.rate(captured.dtype)
    rows = []
    for group in plan.groups:
        measured = _measured(group.ops, units, captured)
        if measured is None or group.predicted_ns <= 0:
            rows.append(GroupRow(group, measured, None, UNEXPLAINED if measured is not None else ""))
            continue
        residual = measured.p50_ns / group.predicted_ns - 1
        rows.append(GroupRow(group, measured, residual, _verdict(group, measured.p50_ns, bar, rate)))
    return tuple(rows)


def _verdict(group: GroupPlan, took_ns: float, bar: float, rate: float | None) -> str:
    """`bar` is a relative median error, so twice as far off is still the model's ordinary error."""
    if abs(took_ns / group.predicted_ns - 1) <= bar:
        return FITS
    if took_ns > group.predicted_ns:
        return SLOWER if took_ns <= max(group.unfused_ns, group.predicted_ns) * (1 + 2 * bar) else UNEXPLAINED
    least = 0.0 if rate is None or not group.pattern.startswith(("matmul", "attention")) else group.flops / rate * 1e9
    return FASTER if took_ns >= max(least, group.predicted_ns * (1 - 2 * bar)) else UNEXPLAINED


Units = Sequence[tuple[str, ...]]


def units_of(captured: Captured) -> Units:
    """The operators of each measured execution, those of fused kernels together."""
    joint = [names for names in captured.together if names[0] in captured.measured]
    inside = {name for names in joint for name in names}
    return [*joint, *((name,) for name in captured.measured if name not in inside)]


def _measured(ops: Iterable[str], units: Units, captured: Captured) -> Measured | None:
    """All executions that lie in `ops`; None when one reaches beyond it or an operator with work is missing."""
    views = {op.name for op in captured.graph.operators if op.is_view}
    wanted = set(ops) - views
    inside = [names for names in units if wanted.intersection(names)]
    if not wanted or {name for names in inside for name in names} != wanted:
        return None
    found = [captured.measured[names[0]] for names in inside]
    if len(found) == 1:
        return found[0]
    return Measured(
        runs=min(m.runs for m in found),
        p50_ns=sum(m.p50_ns for m in found),
        p95_ns=None,  # the p95 of a sum is not the sum of the p95s
        total_ns=sum(m.total_ns for m in found),
    )


@dataclass(frozen=True, slots=True)
class UnitResidual:
    """One measured execution beside the price of exactly its operators, ns. `legal`: the model has such a kernel."""

    ops: tuple[str, ...]
    measured_ns: int
    predicted_ns: float
    legal: bool

    @property
    def residual(self) -> float:
        """measured / predicted - 1."""
        return self.measured_ns / self.predicted_ns - 1


def as_ran(captured: Captured, hw: Hardware, constants: Constants) -> tuple[UnitResidual, ...]:
    """What ran against the prediction for what ran: the model's error, apart from what fusion would save."""
    priced = price_graph(captured.graph, hw, constants, captured.dtype)
    index = {op.name: i for i, op in enumerate(captured.graph.operators)}
    prices = {g.mask: p.time_ns for g, p in zip(priced.groups, priced.prices, strict=True)}
    found = []
    for names in units_of(captured):
        mask = sum(1 << index[name] for name in names)
        legal = mask in prices
        if not legal:
            forced, _ = force_group(captured.graph, hw, constants, captured.dtype, names)
            prices[mask] = min(forced.time_ns, sum(prices[1 << index[name]] for name in names))
        found.append(UnitResidual(names, captured.measured[names[0]].p50_ns, prices[mask], legal))
    return tuple(found)
