"""Graphs planned in sections: the same sums, equal sections once, skips kept alive, and nothing claimed as proved."""

from __future__ import annotations

import pytest

from fusetui.accelerator.blocks.builder import Builder
from fusetui.accelerator.constants import default_constants
from fusetui.accelerator.graph import Graph
from fusetui.accelerator.plan import make_plans
from fusetui.accelerator.presets import load_hardware
from fusetui.accelerator.sections import SECTION_CAP, cut, plan_graph

HW = load_hardware("A100")
CONSTANTS = default_constants(HW, "bf16")


def stack(layers: int, *, skip: bool = False) -> Graph:
    """Layers of ten operators, one value between them; with `skip`, the first one is read again at the end."""
    b = Builder("stack", {"tokens": 2048, "hidden": 512, "inner": 1024}, "bf16")
    x = first = b.tensor("x", ("tokens", "hidden"))
    for i in range(layers):
        h = b.norm(f"{i}.norm", x, "hidden", rms=True)
        h = b.linear(f"{i}.up", h, ("tokens", "inner"), bias=True)
        for step in "abc":
            h = b.elementwise(f"{i}.{step}", h)
        h = b.elementwise(f"{i}.gelu", h, flops=12.0)
        h = b.linear(f"{i}.down", h, ("tokens", "hidden"), bias=True)
        x = b.elementwise(f"{i}.residual", h, x, cost_class="add")
        first = x if i == 0 else first
    if skip:
        b.elementwise("skip", x, first, cost_class="add")
    return b.graph()


def test_cuts_come_where_one_value_crosses() -> None:
    graph = stack(20)
    sections = cut(graph)
    assert [s.end - s.start for s in sections] == [60, 60, 60, 20]
    assert sum(len(s.graph.operators) for s in sections) == len(graph.operators) == 200
    inputs = [[t for t in s.graph.tensors.values() if t.role == "input"] for s in sections]
    assert [len(i) for i in inputs] == [1] * 4


def test_a_value_needed_later_is_written_by_its_section() -> None:
    graph = stack(20, skip=True)
    sections = cut(graph)
    assert len(sections[0].graph.operators) == 61
    assert sections[0].graph.operators[-1].is_view
    plans, _ = plan_graph(graph, HW, CONSTANTS, "bf16")
    covered = [op for group in plans.plans["balanced"].groups for op in group.ops]
    assert sorted(covered) == sorted(op.name for op in graph.operators)
    # The skip is live all along.
    without, _ = plan_graph(stack(20), HW, CONSTANTS, "bf16")
    tensor = graph.tensor_bytes("0.residual")
    more = plans.plans["balanced"].totals.peak_bytes - without.plans["balanced"].totals.peak_bytes
    assert more == pytest.approx(tensor)


def test_equal_sections_are_planned_once_and_nothing_is_called_proved() -> None:
    plans, notes = plan_graph(stack(18), HW, CONSTANTS, "bf16")
    assert len(notes) == 1
    assert "180 operators planned in 3 sections of at most 64, 1 of them different" in notes[0]
    assert {name: p.proved_optimal for name, p in plans.plans.items()} == {
        "none": True, "conservative": False, "balanced": False, "aggressive": False,
    }  # fmt: skip
    one = make_plans(stack(6), HW, CONSTANTS, "bf16").plans["balanced"]
    three = plans.plans["balanced"]
    assert three.totals.launches == 3 * one.totals.launches
    assert three.totals.dram_bytes == pytest.approx(3 * one.totals.dram_bytes)
    assert three.totals.kernel_ns == pytest.approx(3 * one.totals.kernel_ns)


def test_the_unfused_plan_is_the_same_in_sections_and_whole() -> None:
    """Nothing is fused, so cutting loses nothing but what the cache still holds of the section before."""
    graph = stack(9, skip=True)
    assert len(graph.operators) > SECTION_CAP
    cut_up = plan_graph(graph, HW, CONSTANTS, "bf16", policies=("none",))[0].plans["none"]
    whole = make_plans(graph, HW, CONSTANTS, "bf16", policies=("none",)).plans["none"]
    assert [g.ops for g in cut_up.groups] == [g.ops for g in whole.groups]
    assert cut_up.totals.launches == whole.totals.launches
    over = cut_up.totals.peak_bytes - whole.totals.peak_bytes
    assert 0 <= over <= graph.tensor_bytes("x")  # a section holds its input to its end
    assert cut_up.totals.dram_lower_bound_bytes == whole.totals.dram_lower_bound_bytes
    assert cut_up.totals.kernel_ns == pytest.approx(whole.totals.kernel_ns, rel=0.02)
    assert cut_up.totals.reuse_factor == pytest.approx(whole.totals.reuse_factor, rel=0.1)


def test_a_short_graph_is_planned_whole() -> None:
    plans, notes = plan_graph(stack(2), HW, CONSTANTS, "bf16")
    assert notes == ()
    assert plans.plans["balanced"].proved_optimal
