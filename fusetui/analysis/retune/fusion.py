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
from fusetui.analysis.retune.launches import kept
from fusetui.analysis.retune.paths import split
from fusetui.analysis.retune.seen import slice_of
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
    for name in _models(scenario):
        model = scenario.model(name)
        mine = np.isin(jobs.table, _tables(scenario, name))
        above = float(jobs.parts[mine][:, UNFUSED].sum())
        if model.policy == BALANCED or above < WORTH * max(float(jobs.parts[mine][:, [PLANNED, UNFUSED]].sum()), 1.0):
            continue
        found += _of_model(twin, scenario, model, above)
    return found


def _models(scenario: Scenario) -> list[str]:
    names = [stream.model for stream in scenario.streams] + ([scenario.decode] if scenario.decode else [])
    return list(dict.fromkeys(names))


def _tables(scenario: Scenario, name: str) -> list[int]:
    """Indices of the tables of a model; one past the last is the decode's."""
    own = [i for i, stream in enumerate(scenario.streams) if stream.model == name]
    return [*own, len(scenario.streams)] if scenario.decode == name else own


def _of_model(twin: Twin, scenario: Scenario, model: Model, above_ns: float) -> list[Action]:
    now = plan_model(model, scenario.hardware, scenario.slices)
    finer = plan_model(replace(model, policy=BALANCED), scenario.hardware, scenario.slices)
    weights = _weights(twin, scenario, model, now)
    losses = _losses(now, finer, weights)
    tables = _tables(scenario, model.name)
    why = f"{duration(above_ns).strip()} of work above the best plan known under the policy {model.policy}"
    ops = _JOINED.join(losses[0].group.ops) if losses else ""
    if losses:
        why += f"; most of it in g{losses[0].number} ({ops}) at {model.size}={losses[0].size}"
    policy = Action(
        knob=f"fusion {model.name}",
        title=f"{model.name}: fuse by the policy balanced (now {model.policy})",
        stream="",
        bottleneck=_bottleneck(losses),
        owner="compiler",
        why=why,
        slice=slice_of(twin, np.isin(twin.outcome.jobs.table[twin.outcome.job], tables)),
        cost=Cost(len(model.planned), None, _peak(finer)),
        rollback=f"policy {model.policy} as before",
        does_not_prove=(ONLY_THESE, MODEL),
        change=_with_plans(tables, finer.table),
        detail=kept(now.table, finer.table, weights),
    )
    if not losses:
        return [policy]
    capped = replace(now.table, plan=split(now.table.plan, finer.table.plan, ops))
    group = replace(
        policy,
        title=f"{model.name}: cap fusion group g{losses[0].number} ({ops}): split it",
        cost=Cost(len(model.planned), None, _peak(now)),
        rollback=f"fuse {ops} again",
        does_not_prove=(ONLY_THESE, MODEL, "that its launches are exposed as in the balanced plan"),
        change=_with_plans(tables, capped),
        detail=kept(now.table, capped, weights),
    )
    return [policy, group]


def _weights(twin: Twin, scenario: Scenario, model: Model, planned: Planned) -> dict[int, int]:
    """Jobs by the known size that holds them."""
    jobs = twin.outcome.jobs
    mine = np.isin(jobs.table, _tables(scenario, model.name))
    path = planned.table.plan
    sizes, n = np.unique(path.rows[path.knot(jobs.bucket[mine])], return_counts=True)
    return dict(zip(sizes.tolist(), n.tolist(), strict=True))


def _losses(now: Planned, finer: Planned, weights: Mapping[int, int]) -> list[_Loss]:
    """Groups that lose to the finer plan's kernels of the same operators, most lost over all jobs first."""
    lost: dict[tuple[str, ...], list[tuple[float, int, int, GroupPlan]]] = {}
    for size, n in weights.items():
        fine = finer.plan(size).groups
        for number, group in enumerate(now.plan(size).groups):
            parts = [g for g in fine if set(g.ops) <= set(group.ops)]
            if len(parts) > 1 and sorted(op for g in parts for op in g.ops) == sorted(group.ops):
                ns = n * (group.predicted_ns - sum(g.predicted_ns for g in parts))
                lost.setdefault(group.ops, []).append((ns, size, number, group))
    losses = []
    for found in lost.values():
        _, size, number, group = max(found, key=lambda one: one[:3])
        losses.append(_Loss(group, number, sum(ns for ns, *_ in found), size))
    return sorted((loss for loss in losses if loss.lost_ns > 0), key=lambda loss: -loss.lost_ns)


def _bottleneck(losses: list[_Loss]) -> str:
    """What the worst group is limited by: spilled registers, or the memory burst of what it moves at once."""
    if losses and losses[0].group.spill_bytes > 0:
        return "register/spill"
    return "memory burst"


def _peak(planned: Planned) -> float:
    return max(planned.plan(size).totals.peak_bytes for size in planned.plans)


def _with_plans(indices: list[int], table: PlanTable) -> Change:
    def make(config: Config) -> Config:
        tables = tuple(table if i in indices else own for i, own in enumerate(config.tables))
        decode = table if len(config.tables) in indices else config.decode
        return replace(config, tables=tables, decode=decode)

    return to_config(make)
