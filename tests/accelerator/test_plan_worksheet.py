"""What a plan says of its groups beside time: registers, tiles to choose between, bursts and memory limits."""

from __future__ import annotations

import dataclasses
from unittest.mock import patch

import numpy as np
import pytest

from fusetui.accelerator import policy
from fusetui.accelerator.blocks import build_block
from fusetui.accelerator.constants import default_constants
from fusetui.accelerator.fusion import Partition, best_partition
from fusetui.accelerator.hardware import Hardware
from fusetui.accelerator.launch import starts
from fusetui.accelerator.memory import Residency, burst
from fusetui.accelerator.plan import Plans, make_plans, tile_options
from fusetui.accelerator.presets import load_hardware


def plans(name: str, hw: Hardware, **shapes: int | str) -> Plans:
    return make_plans(build_block(name, shapes), hw, default_constants(hw, "bf16"), "bf16")


def test_registers_of_a_thread_by_the_formula() -> None:
    hw = load_hardware("A100")
    groups = {g.ops: g for g in plans("mlp", hw, tokens=4096).plans["none"].groups}
    for group in groups.values():
        if group.tile is None:
            continue
        tile, threads = group.tile, min(max(group.tile.m * group.tile.n / 64, 64), 256)
        fragments = min(2 * (tile.m + tile.n) * hw.mma_shape("bf16")[2] * 2 / (4 * threads), 64)
        assert group.registers is not None
        assert group.registers == np.ceil(tile.m * tile.n / threads + fragments + 24)
        # Blocks that fit the register file fill the core to the occupancy that is shown, or less.
        most = max(1, int(hw.registers_per_core / (min(group.registers, 255) * threads))) * threads
        assert group.occupancy <= most / hw.max_threads_per_core


@pytest.mark.parametrize("device", ["TPU-v5e", "Wormhole"])
def test_no_registers_where_there_is_no_file(device: str) -> None:
    made = plans("transformer-prefill", load_hardware(device))
    assert all(g.registers is None for plan in made.plans.values() for g in plan.groups)


@pytest.mark.parametrize("device", ["H100", "TPU-v5e"])
def test_tiles_to_choose_between_beat_each_other_somewhere(device: str) -> None:
    hw = load_hardware(device)
    graph, constants = build_block("transformer-prefill"), default_constants(hw, "bf16")
    plan = make_plans(graph, hw, constants, "bf16").plans["balanced"]
    options = tile_options(graph, hw, constants, "bf16", plan)
    anchored = {g.ops: g for g in plan.groups if g.pattern == "matmul"}
    assert set(options) == set(anchored)
    for ops, tiles in options.items():
        keys = np.array([(t.time_ns, t.sram_bytes, t.dram_bytes) for t in tiles])
        assert (np.diff(keys[:, 0]) >= 0).all()
        beaten = (keys[:, None] <= keys[None]).all(axis=2).sum(axis=0)
        assert (beaten == 1).all()  # only by itself
        assert tiles[0].time_ns == pytest.approx(anchored[ops].predicted_ns)
        assert (keys[:, 1] <= hw.sram_bytes_per_core).all()
        assert anchored[ops].dram_bytes >= tiles[0].dram_bytes * (1 - 1e-9)


def test_the_burst_of_a_plan_is_that_of_its_timeline() -> None:
    hw = load_hardware("A100")
    plan = plans("transformer-prefill", hw).plans["balanced"]
    took, moved = np.array([(g.predicted_ns, g.dram_bytes) for g in plan.groups if g.pattern != "view"]).T
    began = starts(took, hw.launch, "eager")
    found = burst(began, began + took, moved)
    assert plan.totals.burst == pytest.approx(found.over_sustained)
    assert plan.totals.burst_bytes == pytest.approx(found.above_bytes)
    sustained = plan.totals.dram_bytes / (plan.totals.predicted_ns - began[0]) * 1e9
    assert plan.totals.burst * sustained == pytest.approx(plan.totals.burst_bytes_per_s)
    assert plan.totals.burst_bytes_per_s < hw.dram_bytes_per_s


@pytest.mark.parametrize(
    ("block", "device", "shapes"),
    [
        ("ssm-scan", "Gaudi3", {"model": "llama-3-8b", "batch": 8}),
        ("dlrm", "L40S", {"model": "gpt2"}),
        ("transformer-decode", "Blackhole", {"model": "bert-base"}),
    ],
)
def test_aggressive_fusion_cuts_launches_and_raises_bursts(
    block: str, device: str, shapes: dict[str, int | str]
) -> None:
    made = plans(block, load_hardware(device), **shapes).plans
    none, fused = made["none"].totals, made["aggressive"].totals
    assert fused.launches <= 0.5 * none.launches
    assert fused.exposed_launch_ns < 0.85 * none.exposed_launch_ns
    assert fused.burst > 1.5 * none.burst
    assert fused.burst_bytes > none.burst_bytes


def test_a_plan_says_that_it_does_not_fit_the_device() -> None:
    hw = load_hardware("A100")
    small = dataclasses.replace(hw, dram_bytes=100 << 20)
    assert plans("transformer-prefill", hw).plans["balanced"].totals.within_device
    assert not plans("transformer-prefill", small).plans["balanced"].totals.within_device


def test_a_plan_says_that_no_order_within_the_limit_was_found() -> None:
    def blind(*args: object, step_allowed: object = None, **options: object) -> Partition | None:
        return None if step_allowed else best_partition(*args, **options)  # type: ignore[arg-type]

    hw = load_hardware("A100")
    with patch.object(policy, "best_partition", blind), patch.object(policy.Priced, "memory_limit", 0.0):
        free = plans("mlp", hw).plans["balanced"]
    assert free.totals.peak_bytes <= plans("mlp", hw).plans["none"].totals.peak_bytes
    assert free.totals.within_unfused
    with patch.object(Residency, "peak", lambda self, graph, groups, workspace: 1e9 / len(groups)):
        assert not plans("mlp", hw).plans["balanced"].totals.within_unfused
