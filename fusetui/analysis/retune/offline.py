"""The offline profile: what the compiler decided, size by size, before anything ran."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fusetui.accelerator.plan import Plan
from fusetui.accelerator.scenario.plans import plan_model
from fusetui.analysis.planned import DEFAULT_POLICY, Captured, Knobs, make_planned
from fusetui.analysis.twin.model import Twin
from fusetui.telemetry.header import Header


def offline_of(header: Header, twin: Twin | None, captured: Captured | None, hardware: str | None) -> dict[str, Any]:
    """JSON-ready: `plans` of the scenario's models by size, or of the capture's operators by policy; else as described.

    hardware  a preset or file for a capture that names none; predictions are the model's
    Raises AcceleratorError for hardware that is not known.
    """
    described = dict(header.plans)
    if twin is not None and twin.scenario is not None:
        plans = [
            _row(model.name, model.policy, f"{model.size}={size}", planned.plan(size))
            for model in twin.scenario.models
            for planned in (plan_model(model, twin.scenario.hardware, twin.scenario.slices),)
            for size in model.planned
        ]
        return {
            "hardware": twin.scenario.hardware,
            "from": "the scenario's models",
            "plans": plans,
            "described": described,
        }
    name = hardware or (captured.hardware if captured is not None else None)
    if captured is not None and name is not None:
        made = make_planned(Knobs(block="", hardware=name, dtype=captured.dtype), captured)
        plans = [_row("captured graph", policy, "as captured", plan) for policy, plan in made.plans.plans.items()]
        worst = sorted(
            (row for row in made.rows if row.residual is not None), key=lambda row: -abs(row.residual or 0.0)
        )
        groups = [
            {
                "group": " + ".join(row.plan.ops), "predicted_ns": row.plan.predicted_ns, "residual": row.residual,
                "verdict": row.verdict, "bottleneck": row.plan.bottleneck,
            }
            for row in worst[:5]
        ]  # fmt: skip
        return {
            "hardware": name, "from": f"operators recovered from the capture, {DEFAULT_POLICY} beside what ran",
            "plans": plans, "described": described, "groups": groups,
        }  # fmt: skip
    return {"hardware": name, "from": "the header", "plans": [], "described": described}


def _row(model: str, policy: str, size: str, plan: Plan) -> Mapping[str, Any]:
    totals = plan.totals
    slowest = max(plan.groups, key=lambda group: group.predicted_ns)
    return {
        "model": model, "policy": policy, "size": size, "groups": totals.launches, "predicted_ns": totals.predicted_ns,
        "error": totals.predicted_error, "exposed_launch_ns": totals.exposed_launch_ns, "dram_bytes": totals.dram_bytes,
        "peak_bytes": totals.peak_bytes, "burst": totals.burst, "slowest_group": " + ".join(slowest.ops),
        "bottleneck": slowest.bottleneck,
    }  # fmt: skip
