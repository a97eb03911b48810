"""Launch recurrence and live memory, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusetui.accelerator.blocks import build_block
from fusetui.accelerator.blocks.builder import Builder
from fusetui.accelerator.graph import Graph
from fusetui.accelerator.group import Group, Rules
from fusetui.accelerator.hardware import LaunchCosts
from fusetui.accelerator.launch import launch_constants, reduction, starts, submitted, timeline
from fusetui.accelerator.memory import Burst, Residency, burst, peak_limit

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


def test_starts_are_the_recurrence_one_by_one() -> None:
    took = [3.0, 1.0, 9.0, 0.5, 0.5, 20.0, 2.0]
    for mode in ("eager", "graph"):
        ready = submitted(len(took), COSTS, mode)
        gap, end, expected = launch_constants(COSTS, mode)[1], 0.0, []
        for i, duration in enumerate(took):
            expected.append(max(end + gap if i else 0.0, float(ready[i])))
            end = expected[-1] + duration
        assert starts(took, COSTS, mode).tolist() == pytest.approx(expected)
        assert timeline(took, COSTS, mode).total_ns == pytest.approx(end)


def test_the_burst_is_the_busiest_window_over_the_mean() -> None:
    # 10 bytes over [0, 10), nothing until 90, 10 over [90, 100): mean 0.2; a window of 20 holds 10 of its own 4.
    start, end, moved = np.array([0.0, 90.0]), np.array([10.0, 100.0]), np.array([10.0, 10.0])
    found = burst(start, end, moved, 20.0)
    assert found.over_sustained == pytest.approx(10 / 4)
    assert found.above_bytes == pytest.approx(10 - 4)
    assert found.bytes_per_s == pytest.approx(10 / 20 * 1e9)
    assert burst(start, end, moved, 5.0).over_sustained == pytest.approx(5.0)
    assert burst(start, end, moved, 1000.0).over_sustained == pytest.approx(1.0)


def test_kernels_side_by_side_add_up() -> None:
    start, end = np.array([0.0, 5.0, 0.0]), np.array([10.0, 10.0, 20.0])
    found = burst(start, end, np.array([10.0, 10.0, 20.0]), 5.0)
    assert found.bytes_per_s == pytest.approx((1 + 2 + 1) * 1e9)  # in [5, 10)
    assert burst(np.array([0.0]), np.array([7.0]), np.array([0.0])) == Burst(1.0, 0.0, 0.0)


@given(st.lists(st.tuples(st.floats(0, 500), st.floats(1, 100), st.floats(0, 1000)), min_size=1), st.floats(1, 300))
def test_no_window_carries_more_than_the_burst(kernels: list[tuple[float, float, float]], window: float) -> None:
    start, length, moved = (np.array(column) for column in zip(*kernels, strict=True))
    found = burst(start, start + length, moved, window)
    first, last = start.min(), (start + length).max()
    width = min(window, last - first)
    for opens in np.linspace(first, last - width, 23):
        shared = np.minimum(start + length, opens + width) - np.maximum(start, opens)
        carried = float((np.clip(shared, 0.0, None) / length * moved).sum())
        assert carried <= found.bytes_per_s * width / 1e9 * (1 + 1e-6) + 1e-6


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


def test_a_value_lives_while_a_view_of_it_is_read() -> None:
    b = Builder("viewed", {"m": 100, "n": 1}, "fp16")
    h = b.elementwise("one", b.tensor("x", ("m", "n")))
    seen = b.layout("view", h, ("n", "m"), view=True)
    other = b.elementwise("two", b.tensor("y", ("n", "m")))
    b.elementwise("three", seen, other)
    graph = b.graph()
    assert [Residency.of(graph).after(done) for done in (0b0011, 0b0111, 0b1111)] == [600, 800, 600]


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
