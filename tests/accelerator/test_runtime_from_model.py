"""Plan tables that the accelerator model makes."""

from __future__ import annotations

import numpy as np
import pytest

from fusetui.accelerator.blocks import build_block
from fusetui.accelerator.constants import default_constants
from fusetui.accelerator.errors import AcceleratorError
from fusetui.accelerator.launch import Mode
from fusetui.accelerator.plan import make_plans
from fusetui.accelerator.presets import load_hardware
from fusetui.accelerator.runtime.config import Config, Lookup
from fusetui.accelerator.runtime.executions import executions
from fusetui.accelerator.runtime.from_model import path_of
from fusetui.accelerator.runtime.load import Load
from fusetui.accelerator.runtime.outcome import FALLBACK, LAUNCH, PADDING, PLANNED, UNFUSED
from fusetui.accelerator.runtime.paths import Path, PlanTable
from fusetui.accelerator.runtime.simulate import simulate

HW = load_hardware("H100")
CONSTANTS = default_constants(HW, "bf16")
SIZES = (64, 256, 1024)


def path(policy: str, mode: Mode, layers: int = 1) -> Path:
    plans = [
        make_plans(build_block("mlp", {"tokens": size}), HW, CONSTANTS, "bf16", mode=mode, policies=(policy,))
        for size in SIZES
    ]
    return path_of(SIZES, [p.plans[policy] for p in plans], HW, mode, layers)


def mlp_table(policy: str = "balanced", best: str | None = None, layers: int = 1) -> PlanTable:
    judged = None if best is None else path(best, "graph", layers)
    return PlanTable("mlp", path(policy, "graph", layers), path("none", "eager", layers), judged)


def test_a_job_takes_what_the_plan_predicts_kernel_by_kernel() -> None:
    table = mlp_table()
    plan = make_plans(build_block("mlp", {"tokens": 256}), HW, CONSTANTS, "bf16", mode="graph").plans["balanced"]
    run = simulate(Load.of([0], 256), Config((table,), lookup=Lookup(SIZES)))
    assert run.end_ns[0] == pytest.approx(plan.totals.predicted_ns, abs=2)
    assert run.parts[0, LAUNCH] == pytest.approx(plan.totals.exposed_launch_ns, abs=1)
    rows = executions(run)
    kernels = [g for g in plan.groups if g.pattern != "view"]
    assert [rows.names[i] for i in rows.name] == [" + ".join(g.ops) for g in kernels]
    assert rows.end_ns - rows.start_ns == pytest.approx([g.predicted_ns for g in kernels], abs=2)
    assert rows.dram_bytes == pytest.approx([g.dram_bytes for g in kernels], rel=1e-3)


def test_generic_work_is_every_operator_alone_and_launched_alone() -> None:
    table = mlp_table()
    none = make_plans(build_block("mlp", {"tokens": 1024}), HW, CONSTANTS, "bf16", mode="eager").plans["none"]
    run = simulate(Load.of([0], 1024), Config((table,), lookup=Lookup(SIZES[:2])))
    assert run.end_ns[0] == pytest.approx(none.totals.predicted_ns, abs=2)
    assert run.parts[0, FALLBACK] > 0
    assert len(executions(run)) == none.totals.launches


def test_an_unfused_plan_shows_what_fusion_would_save_and_padding_what_it_costs() -> None:
    table = mlp_table("none", "balanced", 2)
    run = simulate(Load.of([0], 200), Config((table,), lookup=Lookup(SIZES)))
    fused = mlp_table(layers=2)
    assert run.parts[0, PLANNED] == pytest.approx(fused.plan.time_ns(np.array([200]))[0][0], abs=1)
    assert run.parts[0, UNFUSED] > 0
    assert run.parts[0, PADDING] > 0


def test_no_sizes_no_table() -> None:
    with pytest.raises(AcceleratorError, match="0 sizes"):
        path_of((), (), HW, "graph")
