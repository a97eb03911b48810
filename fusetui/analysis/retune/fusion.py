"""How far operators are fused: another policy, or the one group split that costs most."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from fusetui.accelerator.plan import BALANCED, GroupPlan
from fusetui.accelerator.runtime.config import Config
from fusetui.accelerator.runtime.outcome import PLANNED, UNFUSED
from fusetui.accelerator.runtime.paths import PlanTable
from fusetui.accelerator.scenario.plans import Planned, plan_model
from fusetui.accelerator.scenario.spec import Model, Scenario
from fusetui.analysis.fmt import duration
from fusetui.analysis.retune.action import MODEL, ONLY_THESE, Action, Change, Cost, to_config
from fusetui.analysis.retune.paths import split
from fusetui.analysis.retune.seen import of_table, slice_of
from fusetui.analysis.twin.model import Twin

WORTH: Final = 0.02
"""Share of service above the best plan known from which fusion is looked at."""
_JOINED: Final = " + "


@dataclass(frozen=True, slots=True)
class _Loss:
    """A group of the plan in use that takes longer than the balanced plan's kernels for its operators."""

    group: GroupPlan
    number: int
    lost_ns: float
    size: int


def refuse_fusion(twin: Twin) -> list[Action]:
    """For every model whose plan is not the best known: the balanced policy, and its worst group split."""
    scenario = twin.scenario
    if scenario is None:
        return []
    jobs = twin.outcome.jobs
    found = []
    for i, name in enumerate(_models(scenario)):
        model = scenario.model(name)
        mine = np.isin(jobs.table, _tables(scenario, name))
        above = float(jobs.parts[mine][:, UNFUSED].sum())
        if model.policy == BALANCED or above < WORTH * max(float(jobs.parts[mine][:, [PLANNED, UNFUSED]].sum()), 1.0):
            continue
        found += _of_model(twin, scenario, model, above, i)
    return found


def _models(scenario: Scenario) -> list[str]:
    names = [stream.model for stream in scenario.streams] + ([scenario.decode] if scenario.decode else [])
    return list(dict.fromkeys(names))


def _tables(scenario: Scenario, name: str) -> list[int]:
    """Indices of the tables of a model; one past the last is the decode's."""
    own = [i for i, stream in enumerate(scenario.streams) if stream.model == name]
    return [*own, len(scenario.streams)] if scenario.decode == name else own


def _of_model(twin: Twin, scenario: Scenario, model: Model, above_ns: float, number: int) -> list[Action]:
    now = plan_model(model, scenario.hardware, scenario.slices)
    finer = plan_model(replace(model, policy=BALANCED), scenario.hardware, scenario.slices)
    losses = _losses(now, finer, _weights(twin, scenario, model, now))
    tables = _tables(scenario, model.name)
    table = tables[0]
    shown = slice_of(
        twin, of_table(twin, table) if table < len(scenario.streams) else np.ones(len(twin.load), np.bool_)
    )
    proves = (ONLY_THESE, MODEL)
    why = f"{duration(above_ns).strip()} of work above the best plan known under the policy {model.policy}"
    if losses:
        worst = losses[0]
        why += f"; most of it in g{worst.number} ({_JOINED.join(worst.group.ops)}) at {model.size}={worst.size}"
    kept = tuple(_kept(now, finer))
    found = [
        Action(
            f"fusion {model.name}", f"{model.name}: fuse by the policy balanced (now {model.policy})", "",
            _bottleneck(losses), "compiler", why, shown, Cost(len(model.planned), None, _peak(finer)),
            f"policy {model.policy} as before", proves, _with_plans(tables, finer.table), detail=kept,
        )
    ]  # fmt: skip
    if losses:
        worst = losses[0]
        ops = _JOINED.join(worst.group.ops)
        own = now.table
        capped = replace(own, plan=split(own.plan, finer.table.plan, ops))
        found.append(
            Action(
                f"fusion {model.name}", f"{model.name}: cap fusion group g{worst.number} ({ops}): split it", "",
                _bottleneck(losses), "compiler", why, shown, Cost(len(model.planned), None, _peak(now)),
                f"fuse {ops} again", (*proves, "exposed launches of the split group are those of the balanced plan"),
                _with_plans(tables, capped),
            )
        )  # fmt: skip
    return found


def _weights(twin: Twin, scenario: Scenario, model: Model, planned: Planned) -> dict[int, int]:
    """Jobs by the known size that holds them."""
    jobs = twin.outcome.jobs
    mine = np.isin(jobs.table, _tables(scenario, model.name))
    path = planned.table.plan
    sizes, n = np.unique(path.rows[path.knot(jobs.bucket[mine])], return_counts=True)
    return dict(zip(sizes.tolist(), n.tolist(), strict=True))


def _losses(now: Planned, finer: Planned, weights: Mapping[int, int]) -> list[_Loss]:
    """Groups that lose to the finer plan's kernels of the same operators, most lost over all jobs first."""
    total: dict[tuple[str, ...], _Loss] = {}
    for size, n in weights.items():
        fine = finer.plan(size).groups
        for number, group in enumerate(now.plan(size).groups):
            parts = [g for g in fine if set(g.ops) <= set(group.ops)]
            if len(parts) < 2 or sorted(op for g in parts for op in g.ops) != sorted(group.ops):
                continue
            lost = n * (group.predicted_ns - sum(g.predicted_ns for g in parts))
            before = total.get(group.ops)
            if before is None or abs(lost) > abs(before.lost_ns):
                total[group.ops] = _Loss(group, number, lost + (before.lost_ns if before else 0.0), size)
            else:
                total[group.ops] = replace(before, lost_ns=before.lost_ns + lost)
    return sorted((loss for loss in total.values() if loss.lost_ns > 0), key=lambda loss: -loss.lost_ns)


def _bottleneck(losses: list[_Loss]) -> str:
    """What the worst group is limited by: spilled registers, or the memory burst of what it moves at once."""
    if losses and losses[0].group.spill_bytes > 0:
        return "register/spill"
    return "memory burst"


def _kept(now: Planned, finer: Planned) -> list[str]:
    """How much of the launches that fusion saved the finer plan saves as well, and the burst of both, size by size."""
    told = []
    for size in now.plans:
        alone, before, after = (p.totals for p in (now.plans[size].plans["none"], now.plan(size), finer.plan(size)))
        saved = alone.launches - before.launches
        if saved > 0:
            kept = (alone.launches - after.launches) / saved
            told.append(
                f"{now.model.size}={size}: launches {alone.launches} unfused, {before.launches} before, "
                f"{after.launches} after ({kept * 100:.0f} % of the gain kept); "
                f"burst {before.burst:.2f}x before, {after.burst:.2f}x after"
            )
    return told


def _peak(planned: Planned) -> float:
    return max(planned.plan(size).totals.peak_bytes for size in planned.plans)


def _with_plans(indices: list[int], table: PlanTable) -> Change:
    def make(config: Config) -> Config:
        tables = tuple(table if i in indices else own for i, own in enumerate(config.tables))
        decode = table if len(config.tables) in indices else config.decode
        return replace(config, tables=tables, decode=decode)

    return to_config(make)
