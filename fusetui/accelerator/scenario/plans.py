"""A scenario's models planned: what runs at each size under its plan, and under the generic path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from fusetui.accelerator.blocks import build_block
from fusetui.accelerator.constants import default_constants
from fusetui.accelerator.hardware import Hardware
from fusetui.accelerator.launch import Mode, starts
from fusetui.accelerator.plan import BALANCED, Plan, Plans, make_plans
from fusetui.accelerator.presets import load_hardware
from fusetui.accelerator.runtime.paths import Path, PlanTable
from fusetui.accelerator.scenario.spec import Model


@dataclass(frozen=True, slots=True)
class Planned:
    """A model's plans by size, and the table the runtime looks them up in."""

    model: Model
    plans: Mapping[int, Plans]
    table: PlanTable

    def plan(self, size: int) -> Plan:
        """The plan of the model's policy for a size it is known at."""
        return self.plans[size].plans[self.model.policy]


def core_hardware(name: str, slices: int) -> Hardware:
    """One core: a slice of a device with its share of everything but memory bandwidth, which all slices share."""
    device, k = load_hardware(name), slices
    if k == 1:
        return device
    return replace(
        device,
        cores=max(1, device.cores // k),
        matrix_flops={name: rate / k for name, rate in device.matrix_flops.items()},
        vector_flops={name: rate / k for name, rate in device.vector_flops.items()},
        l2_bytes=device.l2_bytes // k,
        l2_bytes_per_s=device.l2_bytes_per_s / k,
    )


@lru_cache(maxsize=32)
def plan_model(model: Model, hardware: str, slices: int) -> Planned:
    """Plan a model at every size it is known at, for one of the `slices` of a device."""
    hw = core_hardware(hardware, slices)
    constants = default_constants(hw, model.dtype)
    policies = tuple(dict.fromkeys(("none", BALANCED, model.policy)))
    sizes = sorted({*model.planned, *model.known})
    plans = {
        size: make_plans(
            build_block(model.block, {**dict(model.shapes), model.size: size}, model.dtype), hw, constants,
            model.dtype, mode=model.launch, policies=policies,
        )
        for size in sizes
    }  # fmt: skip
    own = _path(sizes, [plans[s].plans[model.policy] for s in sizes], hw, model.launch, model.layers)
    generic = _path(sizes, [plans[s].plans["none"] for s in sizes], hw, "eager", model.layers)
    best = None
    if model.policy != BALANCED:
        best = _path(sizes, [plans[s].plans[BALANCED] for s in sizes], hw, model.launch, model.layers)
    return Planned(model, plans, PlanTable(model.name, own, generic, best))


def _path(sizes: Sequence[int], plans: Sequence[Plan], hw: Hardware, mode: Mode, layers: int) -> Path:
    """The kernels of each plan in order, with the time the device stands waiting for each launch."""
    names: list[str] = []
    columns: list[list[float]] = []
    first = [0]
    for plan in plans:
        groups = [g for g in plan.groups if g.pattern != "view"] * layers
        kernel_ns = np.array([g.predicted_ns for g in groups])
        began = starts(kernel_ns, hw.launch, mode)
        waited = began - np.concatenate([[0.0], (began + kernel_ns)[:-1]])
        for group, took, launch in zip(groups, kernel_ns.tolist(), waited.tolist(), strict=True):
            names.append(" + ".join(group.ops))
            asked = group.dram_bytes / took * 1e9 / hw.dram_bytes_per_s if took > 0 else 0.0
            columns.append([took, max(0.0, launch), group.dram_bytes, group.flops, asked])
        first.append(len(names))
    kernel, launch_ns, dram, flops, demand = np.array(columns, np.float64).T
    return Path(
        np.array(sizes, np.int64), np.array(first, np.int64), tuple(names), kernel, launch_ns, dram, flops, demand
    )
