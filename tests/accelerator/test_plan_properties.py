"""Plans of every built-in block: bounds, monotonicity, and what each policy promises."""

from __future__ import annotations

import dataclasses
import itertools

import pytest

from fusetui.accelerator.blocks import blocks, build_block
from fusetui.accelerator.constants import default_constants
from fusetui.accelerator.graph import Graph
from fusetui.accelerator.hardware import Hardware
from fusetui.accelerator.plan import Plans, make_plans
from fusetui.accelerator.presets import load_hardware

DEVICES = ("A100", "H100", "TPU-v5e")
NAMES = tuple(b.name for b in blocks())
SLACK = 1 + 1e-9


def plans(graph: Graph, hw: Hardware, **options: str) -> Plans:
    return make_plans(graph, hw, default_constants(hw, "bf16"), "bf16", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NAMES)
def test_what_every_plan_holds(name: str, device: str) -> None:
    graph, hw = build_block(name), load_hardware(device)
    found = plans(graph, hw)
    assert not found.calibrated
    assert list(found.plans) == ["none", "conservative", "balanced", "aggressive"]
    none = found.plans["none"]
    assert none.totals.launches == len(graph.operators)
    for plan in found.plans.values():
        assert plan.proved_optimal
        assert sorted(op for g in plan.groups for op in g.ops) == sorted(op.name for op in graph.operators)
        t = plan.totals
        assert t.dram_bytes * SLACK >= t.dram_lower_bound_bytes
        assert t.launches <= none.totals.launches
        assert t.peak_bytes <= none.totals.peak_bytes * SLACK
        assert t.predicted_ns >= t.kernel_ns
        assert t.exposed_launch_ns == pytest.approx(t.predicted_ns - t.kernel_ns)
        assert t.saved.launches == pytest.approx(1 - t.launches / none.totals.launches)
        assert all(g.reuse_factor is None or g.reuse_factor >= 1 for g in plan.groups)
    assert found.plans["aggressive"].totals.launches == min(p.totals.launches for p in found.plans.values())
    assert not any(g.spill_bytes for g in found.plans["balanced"].groups if len(g.ops) > 1)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NAMES)
def test_a_replayed_graph_orders_policies_by_time(name: str, device: str) -> None:
    found = plans(build_block(name), load_hardware(device), mode="graph")
    time = {policy: plan.totals.predicted_ns for policy, plan in found.plans.items()}
    assert time["balanced"] <= time["conservative"] * SLACK
    assert time["conservative"] <= time["none"] * SLACK


@pytest.mark.parametrize("name", NAMES)
def test_more_bandwidth_never_raises_time(name: str) -> None:
    graph, hw = build_block(name), load_hardware("H100")
    times = []
    for factor in (0.25, 0.5, 1.0, 2.0, 4.0):
        faster = dataclasses.replace(hw, dram_bytes_per_s=hw.dram_bytes_per_s * factor)
        times.append({n: p.totals.predicted_ns for n, p in plans(graph, faster, mode="graph").plans.items()})
    for slow, fast in itertools.pairwise(times):
        assert all(fast[n] <= slow[n] * SLACK for n in ("none", "conservative", "balanced"))


@pytest.mark.parametrize("device", ["H100", "TPU-v5e"])
@pytest.mark.parametrize("name", NAMES)
def test_more_on_chip_memory_never_raises_time_nor_unfused_traffic(name: str, device: str) -> None:
    graph, hw = build_block(name), load_hardware(device)
    before: Plans | None = None
    for factor in (0.25, 0.5, 1.0, 2.0, 4.0):
        larger = dataclasses.replace(hw, sram_bytes_per_core=int(hw.sram_bytes_per_core * factor))
        now = plans(graph, larger, mode="graph")
        if before is not None:
            for policy in ("none", "conservative", "balanced"):
                assert now.plans[policy].totals.predicted_ns <= before.plans[policy].totals.predicted_ns * SLACK
            assert now.plans["none"].totals.dram_bytes <= before.plans["none"].totals.dram_bytes * SLACK
        before = now


def test_attention_in_one_kernel_moves_each_operand_once() -> None:
    graph, hw = build_block("attention", {"sequence": 4096, "context": 4096}), load_hardware("A100")
    found = plans(graph, hw)
    fused, unfused = found.plans["balanced"], found.plans["none"]
    assert len(fused.groups) == 1
    assert fused.totals.dram_bytes == pytest.approx(graph.compulsory_bytes)
    assert unfused.totals.dram_bytes / fused.totals.dram_bytes > 50
    group = fused.groups[0]
    assert group.reuse_factor is not None
    assert group.reuse_factor > 10
    assert group.reuse_ratio == pytest.approx(1 - 1 / group.reuse_factor)
    assert (group.bottleneck_before, group.bottleneck) == ("dram", "compute")


def test_fused_attention_needs_memory_linear_in_the_sequence() -> None:
    hw = load_hardware("A100")

    def peaks(sequence: int) -> dict[str, float]:
        graph = build_block(
            "attention", {"sequence": sequence, "context": sequence, "head": 64, "heads": 8, "kv_heads": 8}
        )
        return {n: p.totals.peak_bytes for n, p in plans(graph, hw).plans.items()}

    small, large = peaks(8192), peaks(16384)
    assert large["balanced"] / small["balanced"] == pytest.approx(2.0)
    assert large["none"] / small["none"] == pytest.approx(4.0, rel=0.02)


def test_grouped_queries_shrink_what_decode_reads() -> None:
    hw = load_hardware("H100")
    shapes: dict[str, int | str] = {"model": "llama-3-8b", "batch": 8, "context": 8192}
    grouped = plans(build_block("transformer-decode", shapes), hw).plans["balanced"].totals.dram_bytes
    full = plans(build_block("transformer-decode", shapes | {"kv_heads": 32}), hw).plans["balanced"].totals.dram_bytes
    cache = 2 * 8 * 8192 * 128 * 2
    assert full - grouped == pytest.approx(24 * cache, rel=0.12)
