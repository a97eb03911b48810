"""Plans of graphs too long for one exact search: cut where few values cross, equal sections planned once.

No kernel spans two sections, so a plan made of several is not proved optimal. A section's inputs count as device
memory reads even when the section before has only just written them.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from fusetui.accelerator.constants import Constants
from fusetui.accelerator.graph import Graph, Operator, Role, Tensor
from fusetui.accelerator.hardware import Hardware
from fusetui.accelerator.launch import Mode, reduction, starts, timeline
from fusetui.accelerator.memory import Residency, burst
from fusetui.accelerator.plan import GroupPlan, Plan, Plans, Totals, make_plans
from fusetui.accelerator.policy import POLICIES

SECTION_CAP: Final = 64


@dataclass(frozen=True, slots=True)
class Section:
    """Operators [start, end) as a graph of its own, named by position; those from end - start on are views that
    stand for readers outside."""

    start: int
    end: int
    graph: Graph


def plan_graph(
    graph: Graph,
    hw: Hardware,
    constants: Constants,
    dtype: str,
    *,
    mode: Mode = "eager",
    policies: Sequence[str] = tuple(POLICIES),
) -> tuple[Plans, tuple[str, ...]]:
    """The plans of a graph of any length, and a note when it was planned in sections."""
    if len(graph.operators) <= SECTION_CAP:
        return make_plans(graph, hw, constants, dtype, mode=mode, policies=policies), ()
    began = time.perf_counter()
    known: dict[object, Plans] = {}
    sections = cut(graph)
    planned: list[Plans] = []
    for section in sections:
        key = (section.graph.operators, tuple(section.graph.tensors.values()), tuple(section.graph.sizes.items()))
        if key not in known:
            known[key] = make_plans(section.graph, hw, constants, dtype, mode=mode, policies=policies)
        planned.append(known[key])
    plans: dict[str, Plan] = {}
    for name in planned[0].plans:
        plans[name] = _joined(graph, hw, mode, sections, [p.plans[name] for p in planned], plans.get("none"))
    elapsed = (time.perf_counter() - began) * 1e3
    note = (
        f"{len(graph.operators)} operators planned in {len(sections)} sections of at most {SECTION_CAP}, "
        f"{len(known)} of them different: kernels that would span two sections are not considered"
    )
    return Plans(graph.name, hw.name, dtype, mode, constants.calibrated, plans, elapsed), (note,)


def cut(graph: Graph) -> list[Section]:
    """Sections of at most SECTION_CAP operators, each ending where the fewest values cross, latest first."""
    n = len(graph.operators)
    change = [0] * (n + 2)
    for i, op in enumerate(graph.operators):
        users = graph.consumers[op.output]
        if users:
            change[i + 1] += 1
            change[users[-1] + 1] -= 1
    crossing = [0] * (n + 1)
    for i in range(1, n + 1):
        crossing[i] = crossing[i - 1] + change[i]
    sections, start = [], 0
    while start < n:
        end = n
        if n - start > SECTION_CAP:
            end = min(range(start + SECTION_CAP // 3, start + SECTION_CAP + 1), key=lambda p: (crossing[p], -p))
        sections.append(_section(graph, start, end))
        start = end
    return sections


def _section(graph: Graph, start: int, end: int) -> Section:
    tensors: dict[str, Tensor] = {}
    dims: dict[str, str] = {}
    members = graph.operators[start:end]
    made = {op.output for op in members}

    def dim(name: str) -> str:
        return dims.setdefault(name, f"d{len(dims)}")

    def tensor(name: str) -> str:
        if name not in tensors:
            own = graph.tensors[name]
            role: Role = "value" if name in made else "weight" if own.role == "weight" else "input"
            tensors[name] = Tensor(f"t{len(tensors)}", tuple(dim(d) for d in own.dims), own.dtype, role)
        return tensors[name].name

    operators = [
        dataclasses.replace(
            op,
            name=f"o{i}",
            inputs=tuple(tensor(t) for t in op.inputs),
            output=tensor(op.output),
            reduced=tuple(dim(d) for d in op.reduced),
        )
        for i, op in enumerate(members)
    ]
    for op in members:
        users = graph.consumers[op.output]
        if users and users[0] < end <= users[-1]:
            kept = tensors[op.output]
            copy = Tensor(f"t{len(tensors)}", kept.dims, kept.dtype)
            tensors[f"{op.output} needed later"] = copy
            view = Operator(f"o{len(operators)}", "layout", (kept.name,), copy.name, (), 0.0, "copy", is_view=True)
            operators.append(view)
    sizes = {short: graph.sizes[name] for name, short in dims.items()}
    return Section(start, end, Graph("section", sizes, {t.name: t for t in tensors.values()}, tuple(operators)))


def _joined(
    graph: Graph, hw: Hardware, mode: Mode, sections: Sequence[Section], plans: Sequence[Plan], unfused: Plan | None
) -> Plan:
    groups: list[GroupPlan] = []
    for section, plan in zip(sections, plans, strict=True):
        names = {f"o{i}": op.name for i, op in enumerate(graph.operators[section.start : section.end])}
        for group in plan.groups:
            ops = tuple(names[op] for op in group.ops if op in names)
            if ops:
                groups.append(dataclasses.replace(group, ops=ops))
    kernels = [(g.predicted_ns, g.dram_bytes) for g in groups if g.pattern != "view"]
    took, moved = np.array(kernels, dtype=np.float64).reshape(-1, 2).T
    line, began = timeline(took, hw.launch, mode), starts(took, hw.launch, mode)
    most = burst(began, began + took, moved)
    before = line
    if unfused is not None:
        before = timeline([g.predicted_ns for g in unfused.groups if g.pattern != "view"], hw.launch, mode)
    served, filled = (sum(pair) for pair in zip(*map(_reuse, sections, plans), strict=True))
    peak = _peak(graph, sections, plans)
    totals = Totals(
        predicted_ns=line.total_ns,
        predicted_error=_error(plans, "predicted_error"),
        predicted_error_p95=_error(plans, "predicted_error_p95"),
        kernel_ns=float(took.sum()),
        launches=line.launches,
        exposed_launch_ns=line.exposed_ns,
        dram_bytes=sum(g.dram_bytes for g in groups),
        dram_lower_bound_bytes=graph.compulsory_bytes,
        reuse_factor=max(1.0, served / filled) if filled > 0 else None,
        peak_bytes=peak,
        burst=most.over_sustained,
        burst_bytes=most.above_bytes,
        burst_bytes_per_s=most.bytes_per_s,
        within_unfused=unfused is None or peak <= unfused.totals.peak_bytes,
        within_device=peak <= hw.dram_bytes,
        saved=reduction(before, line),
    )
    proved = plans[0].policy == "none" or (len(plans) == 1 and plans[0].proved_optimal)
    return Plan(plans[0].policy, tuple(groups), totals, proved)


def _error(plans: Sequence[Plan], name: str) -> float:
    """Relative error of the sections' times together: they point the same way, so they add."""
    total = sum(plan.totals.kernel_ns for plan in plans)
    off = sum(getattr(plan.totals, name) * plan.totals.kernel_ns for plan in plans)
    return off / total if total > 0 else float(getattr(plans[0].totals, name))


def _reuse(section: Section, plan: Plan) -> tuple[float, float]:
    """Bytes served to operators, and filled from device memory."""
    graph = section.graph
    makers = {op.name: op.output for op in graph.operators}
    filled = 0.0
    for group in plan.groups:
        inside = set(group.ops)
        users: Mapping[str, list[str]] = {
            op: [graph.operators[i].name for i in graph.consumers[makers[op]]] for op in group.ops
        }
        written = sum(graph.tensor_bytes(makers[op]) for op in group.ops if not inside.issuperset(users[op] or [""]))
        filled += max(0.0, group.dram_bytes - written)
    return (plan.totals.reuse_factor or 0.0) * filled, filled


def _peak(graph: Graph, sections: Sequence[Section], plans: Sequence[Plan]) -> float:
    """Most bytes live at once: a section's own, all weights and inputs, and the values that pass it by.

    An upper bound: a section holds what enters it to its end.
    """
    held = sum(graph.tensor_bytes(n) for n, t in graph.tensors.items() if t.role != "value")
    values = [
        (i, graph.consumers[op.output], graph.tensor_bytes(op.output))
        for i, op in enumerate(graph.operators)
        if not op.is_view
    ]
    most = 0.0
    for section, plan in zip(sections, plans, strict=True):
        start, end = section.start, section.end
        own = Residency.of(section.graph).fixed
        read = {name for op in graph.operators[start:end] for name in op.inputs}
        entering = sum(graph.tensor_bytes(name) for name in read if graph.producer.get(name, end) < start)
        passing = sum(
            size
            for i, users, size in values
            if i < start and (not users or users[-1] >= end) and not any(start <= j < end for j in users)
        )
        most = max(most, plan.totals.peak_bytes - own + entering + held + passing)
    return most
