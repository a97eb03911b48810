"""Over-fusions that were measured to hurt: the planner does not choose them, and forced they hurt the way they did.

Sources of the cases: torch-spyre issue 4746, Enzyme-JAX pull request 2277, PyTorch pull request 179494, TensorFlow
pull request 57829, OpenXLA issue 2201.
"""

from __future__ import annotations

import dataclasses

import pytest

from fusetui.accelerator.blocks import build_block
from fusetui.accelerator.blocks.builder import Builder
from fusetui.accelerator.constants import default_constants
from fusetui.accelerator.graph import Graph
from fusetui.accelerator.plan import force_group, make_plans, price_graph
from fusetui.accelerator.presets import load_hardware
from fusetui.accelerator.price import Price


def forced(graph: Graph, device: str, dtype: str, *ops: str) -> tuple[Price, str]:
    hw = load_hardware(device)
    names = ops or tuple(op.name for op in graph.operators)
    return force_group(graph, hw, default_constants(hw, dtype), dtype, names)


def chosen(graph: Graph, device: str, dtype: str, policy: str = "balanced") -> tuple[float, list[set[str]]]:
    hw = load_hardware(device)
    plan = make_plans(graph, hw, default_constants(hw, dtype), dtype).plans[policy]
    return plan.totals.kernel_ns, [set(g.ops) for g in plan.groups]


@pytest.mark.parametrize("device", ["A100", "Wormhole", "Trainium2"])
def test_a_whole_encoder_block_in_one_kernel(device: str) -> None:
    # Measured 1689.7 against 1181.6 µs with attention split out: 4 of 5 launches gone and 43 % slower.
    graph = build_block("transformer-prefill", {"model": "bert-base", "batch": 8, "sequence": 512})
    price, reason = forced(graph, device, "bf16")
    time, groups = chosen(graph, device, "bf16")
    assert reason.startswith("more than one matrix product")
    assert len(groups) > 4
    assert price.time_ns > 1.4 * time
    assert price.bottleneck in ("occupancy", "spill")


def wide(width: int) -> Graph:
    """`width` values that all stay live until their sum is known."""
    b = Builder("wide", {"n": 1 << 24}, "fp32")
    values = [b.elementwise(f"value{i}", b.tensor(f"x{i}", ("n",))) for i in range(width)]
    total = values[0]
    for i in range(1, width):
        total = b.elementwise(f"sum{i}", total, values[i], cost_class="add")
    for i, value in enumerate(values):
        b.elementwise(f"share{i}", value, total, cost_class="add")
    return b.graph()


def test_too_many_live_values_leave_an_eighth_of_the_threads() -> None:
    # Measured: 255 registers, 12.5 % occupancy, 6.9 % of the peak bandwidth.
    graph = wide(29)
    price, _ = forced(graph, "A100", "fp32")
    moved = 2 * 29 * (1 << 24) * 4
    assert price.occupancy == pytest.approx(0.125)
    assert moved / price.time_ns * 1e9 / 2.039e12 == pytest.approx(0.069, abs=0.03)
    assert price.spill_bytes > 0
    time, groups = chosen(graph, "A100", "fp32")
    assert max(len(g) for g in groups) <= 10
    assert price.time_ns > 3 * time


def test_few_live_values_fuse_without_harm() -> None:
    graph = wide(3)
    price, _ = forced(graph, "A100", "fp32")
    assert chosen(graph, "A100", "fp32")[1] == [{op.name for op in graph.operators}]
    assert price.occupancy >= 0.5
    assert not price.spill_bytes


def test_reductions_over_rows_and_columns_in_one_kernel_spill() -> None:
    b = Builder("mixed", {"m": 8192, "n": 4096}, "fp32")
    x = b.elementwise("shared", b.tensor("x", ("m", "n")), b.tensor("y", ("m", "n")))
    b.reduction("rows", x, row="n", flops=1.0, cost_class="reduce", keep=False)
    b.reduction("columns", x, row="m", flops=1.0, cost_class="reduce", keep=False)
    graph = b.graph()
    price, reason = forced(graph, "H100", "fp32")
    time, groups = chosen(graph, "H100", "fp32")
    assert "kind of row" in reason
    assert price.spill_bytes > 0
    assert price.time_ns > time
    assert {"rows", "columns"} not in [g & {"rows", "columns"} for g in groups]


def test_a_cheap_chain_repeated_for_every_broadcast_point() -> None:
    # Measured 3.520 -> 4.130 s, about 250 cheap instructions repeated 512 times.
    b = Builder("repeat", {"n": 1 << 16, "copies": 512}, "fp32")
    h = b.elementwise("chain", b.tensor("x", ("n",)), flops=250.0)
    b.elementwise("spread", h, b.tensor("y", ("n", "copies")))
    graph = b.graph()
    price, reason = forced(graph, "A100", "fp32", "chain", "spread")
    time, groups = chosen(graph, "A100", "fp32")
    assert reason == ""
    assert groups == [{"chain"}, {"spread"}]
    assert price.bottleneck == "compute"
    assert price.repeated_flops / 511 == pytest.approx(250 * (1 << 16))
    assert price.time_ns > 1.17 * time


def test_fusion_does_not_raise_peak_memory() -> None:
    # Measured 34.04 -> 54.55 GiB when only time was minimised. Here the fastest plan reduces two large products in one
    # kernel, so both must be live at once; one after the other needs half.
    b = Builder("peak", {"m": 4096, "n": 65536, "k": 64}, "fp32")
    sums = []
    for i in "12":
        product = b.matmul(f"product{i}", b.tensor(f"x{i}", ("m", "k")), b.weight(f"w{i}", "k", "n"), ("m", "n"))
        sums.append(b.reduction(f"sum{i}", product, row="n", flops=1.0, cost_class="reduce", keep=False))
    b.elementwise("join", *sums)
    graph, hw = b.graph(), load_hardware("A100")
    constants = default_constants(hw, "fp32")
    priced = price_graph(graph, hw, constants, "fp32")
    prices = {g.mask: p.time_ns for g, p in zip(priced.groups, priced.prices, strict=True)}
    together = sum(1 << i for i, op in enumerate(graph.operators) if op.kind != "matmul")
    assert prices[together] < sum(prices[1 << i] for i in range(5) if together >> i & 1)
    plans = make_plans(graph, hw, constants, "fp32").plans
    one = 4096 * 65536 * 4
    for plan in plans.values():
        assert plan.totals.peak_bytes < 1.1 * one
        assert {"sum1", "sum2", "join"} not in [set(g.ops) for g in plan.groups]
    assert len(plans["balanced"].groups) == 4


def test_removed_launches_that_the_host_had_hidden_are_no_latency() -> None:
    graph = build_block("transformer-prefill", {"model": "bert-large", "batch": 8, "sequence": 512})
    hw = load_hardware("H100")
    saved = make_plans(graph, hw, default_constants(hw, "bf16"), "bf16").plans["aggressive"].totals.saved
    assert saved.launches is not None
    assert saved.exposed_time is not None
    assert saved.launches > saved.exposed_time + 0.1


def test_less_bandwidth_makes_fusion_matter_more() -> None:
    graph, hw = build_block("norm-chain"), load_hardware("A100")
    slow = dataclasses.replace(hw, dram_bytes_per_s=hw.dram_bytes_per_s / 4)

    def speedup(device: object) -> float:
        plans = make_plans(graph, device, default_constants(hw, "bf16"), "bf16").plans  # type: ignore[arg-type]
        return plans["none"].totals.predicted_ns / plans["balanced"].totals.predicted_ns

    assert speedup(slow) > speedup(hw) > 1
