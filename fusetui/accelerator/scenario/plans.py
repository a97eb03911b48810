"""A scenario's models planned: what runs at each size under its plan, and under the generic path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from fusetui.accelerator.blocks import build_block
from fusetui.accelerator.constants import default_constants
from fusetui.accelerator.hardware import Hardware
from fusetui.accelerator.plan import BALANCED, Plan, Plans, make_plans
from fusetui.accelerator.presets import load_hardware
from fusetui.accelerator.runtime.from_model import path_of
from fusetui.accelerator.runtime.paths import PlanTable
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
    own = path_of(sizes, [plans[s].plans[model.policy] for s in sizes], hw, model.launch, model.layers)
    generic = path_of(sizes, [plans[s].plans["none"] for s in sizes], hw, "eager", model.layers)
    best = None
    if model.policy != BALANCED:
        best = path_of(sizes, [plans[s].plans[BALANCED] for s in sizes], hw, model.launch, model.layers)
    return Planned(model, plans, PlanTable(model.name, own, generic, best))
