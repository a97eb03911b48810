"""Launch recurrence and live memory, by hand."""

from __future__ import annotations

import pytest

from fusetui.accelerator.blocks import build_block
from fusetui.accelerator.blocks.builder import Builder
from fusetui.accelerator.graph import Graph
from fusetui.accelerator.group import Group, Rules
from fusetui.accelerator.hardware import LaunchCosts
from fusetui.accelerator.launch import reduction, steady_cost, timeline
from fusetui.accelerator.memory import Residency, peak_limit

COSTS = LaunchCosts(call_ns=5.0, gap_ns=1.0, latency_ns=7.0, graph_gap_ns=0.5)


def test_short_kernels_wait_for_the_host() -> None:
    # submits 5, 10, 15; starts 12, 17, 22; each runs 2 and waits 12, 3, 3.
    line = timeline([2.0, 2.0, 2.0], COSTS, "eager")
    assert (line.total_ns, line.exposed_ns, line.launches) == (24.0, 18.0, 3)


def test_long_kernels_hide_the_host() -> None:
    line = timeline([100.0, 100.0], COSTS, "eager")
    assert (line.total_ns, line.exposed_ns) == (12.0 + 100 + 1 + 100, 13.0)


def test_a_graph_pays_one_call() -> None:
    line = timeline([2.0, 2.0, 2.0], COSTS, "graph")
    assert (line.total_ns, line.exposed_ns) == (12.0 + 2 + 0.5 + 2 + 0.5 + 2, 13.0)


def test_removed_launches_are_not_removed_time() -> None:
    before, after = timeline([100.0] * 5, COSTS, "eager"), timeline([100.0], COSTS, "eager")
    cut = reduction(before, after)
    assert cut.launches == pytest.approx(0.8)
    assert cut.exposed_time == pytest.approx(1 - 12 / 16)


def test_one_more_kernel_costs_its_gap_or_the_call() -> None:
    assert steady_cost([2.0, 100.0], COSTS, "eager").tolist() == [5.0, 101.0]
    assert steady_cost([2.0, 100.0], COSTS, "graph").tolist() == [2.5, 100.5]


def singles(graph: Graph) -> list[Group]:
    groups = [Rules(graph).group(1 << i) for i in range(len(graph.operators))]
    return [g for g in groups if isinstance(g, Group)]


def test_a_value_lives_until_its_last_reader() -> None:
    b = Builder("chain", {"m": 100}, "fp16")
    h = b.elementwise("one", b.tensor("x", ("m",)))
    h = b.elementwise("two", h)
    b.elementwise("three", h)
    graph = b.graph()
    residency = Residency.of(graph)
    assert residency.fixed == 200
    assert [residency.after(done) for done in (0, 1, 3, 7)] == [200, 400, 400, 400]
    assert residency.peak(graph, singles(graph), [0.0] * 3) == 600
    assert residency.peak(graph, singles(graph), [0.0, 50.0, 0.0]) == 650
    whole = Rules(graph).group(7)
    assert isinstance(whole, Group)
    assert residency.peak(graph, [whole], [0.0]) == 400
    fits = peak_limit(graph, {7: whole, 1: singles(graph)[0], 2: singles(graph)[1]}, {7: 0.0, 1: 0.0, 2: 0.0}, 500)
    assert fits(0, 7)
    assert fits(0, 1)
    assert not fits(1, 2)


def test_attention_memory_is_linear_fused_and_quadratic_not() -> None:
    def peak(sequence: int, fused: bool) -> float:
        shapes: dict[str, int | str] = {"batch": 1, "heads": 1, "kv_heads": 1, "head": 64, "causal": 0}
        graph = build_block("attention", shapes | {"sequence": sequence, "context": sequence})
        whole = Rules(graph).group(15)
        assert isinstance(whole, Group)
        groups = [whole] if fused else singles(graph)
        return Residency.of(graph).peak(graph, groups, [0.0] * len(groups))

    assert peak(8192, True) == pytest.approx(2 * peak(4096, True))
    assert peak(8192, False) / peak(4096, False) > 3.8
