"""What a simulated trace says of itself: that it is one, on what, with which plans."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from fusetui import __version__
from fusetui.accelerator.plan import Plan
from fusetui.accelerator.scenario.build import Run
from fusetui.accelerator.scenario.plans import Planned
from fusetui.accelerator.scenario.spec import Model
from fusetui.telemetry.header import Clock, Header

SOURCE: Final = "simulated"


def header_of(run: Run, clock: Clock) -> Header:
    """The header of a run's telemetry."""
    scenario = run.scenario
    per = f"{scenario.slices} per device" if scenario.slices > 1 else "the whole device"
    return Header(
        source=SOURCE,
        clock=clock,
        hardware={"devices": f"{scenario.devices} × {scenario.hardware}, modelled", "cores": per},
        build={
            "scenario": f"{Path(scenario.where).stem}: {scenario.title}",
            "seed": str(scenario.seed),
            "policy": ", ".join(dict.fromkeys(model.policy for model in scenario.models)),
            "model": f"fusetui {__version__} accelerator model, uncalibrated; no number is of a real device",
        },
        plans={
            name: text for model in scenario.models for name, text in _plans(model, run.planned[model.name]).items()
        },
        slo_ns=scenario.slo_ns,
    )


def _plans(model: Model, planned: Planned) -> dict[str, str]:
    if not model.captured:
        sizes = ", ".join(str(size) for size in model.planned)
        return {f"{model.name} {model.policy}": f"{model.block}, {model.launch}: any {model.size}, made at {sizes}"}
    return {
        f"{model.name} {model.policy} {size}": f"{model.block}, {model.size}={size}: {_told(planned.plan(size), model)}"
        for size in model.planned
    }


def _told(plan: Plan, model: Model) -> str:
    totals = plan.totals
    layers = f" × {model.layers} layers" if model.layers > 1 else ""
    return (
        f"{totals.launches} kernels{layers} ({model.launch}), ≈ {totals.predicted_ns / 1e3:.3g} µs, "
        f"{totals.dram_bytes / 1e6:.3g} MB"
    )
