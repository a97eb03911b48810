"""What more of a resource may never make worse, over random blocks, shapes and devices."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusetui.accelerator.blocks import blocks, build_block
from fusetui.accelerator.blocks.builder import Builder
from fusetui.accelerator.constants import default_constants
from fusetui.accelerator.errors import AcceleratorError, HardwareError
from fusetui.accelerator.graph import Graph
from fusetui.accelerator.hardware import Hardware, Kind, LaunchCosts
from fusetui.accelerator.launch import Mode
from fusetui.accelerator.plan import Plans, make_plans
from fusetui.accelerator.presets import hardware_names, load_hardware

SLACK = 1 + 1e-9
TIMED = ("none", "conservative", "balanced")  # `aggressive` asks for few launches, whatever they cost
SIZES = {
    "tokens": [1, 37, 256, 2048, 5000],
    "sequence": [1, 37, 128, 777, 2048],
    "batch": [1, 3, 16, 64],
    "context": [2048, 9000],
    "hidden": [512, 768, 4096],
    "inner": [2048, 11008],
}


@st.composite
def built_in(draw: st.DrawFn) -> Graph:
    block = draw(st.sampled_from(list(blocks())))
    shapes: dict[str, int | str] = {k: draw(st.sampled_from(v)) for k, v in SIZES.items() if k in block.defaults}
    return build_block(block.name, shapes)


@st.composite
def random_graphs(draw: st.DrawFn) -> Graph:
    """Two to seven operators: products, row operators, point by point, joins; each reads any value before it."""
    side = st.sampled_from([64, 200, 512, 1000, 4096, 11008])
    n = draw(side)
    b = Builder("random", {"m": draw(side | st.just(1)), "n": n, "k": n}, "bf16")
    values = [b.tensor("x", ("m", "n"))]
    for i in range(draw(st.integers(2, 7))):
        source, kind = draw(st.sampled_from(values)), draw(st.sampled_from(["product", "join", "softmax", "point"]))
        if kind == "product":
            turned = b.layout(f"turn{i}", source, ("m", "k"), view=True)
            values.append(b.matmul(f"op{i}", turned, b.weight(f"w{i}", "k", "n"), ("m", "n")))
        elif kind == "join":
            values.append(b.elementwise(f"op{i}", source, draw(st.sampled_from(values)), cost_class="add"))
        elif kind == "softmax":
            values.append(b.reduction(f"op{i}", source, row="n", flops=5.0, cost_class="softmax", online=True))
        else:
            values.append(b.elementwise(f"op{i}", source, flops=4.0))
    return b.graph()


GRAPHS = built_in() | random_graphs()
DEVICES = st.sampled_from([name for name in hardware_names() if name != "host"])
MODES: st.SearchStrategy[Mode] = st.sampled_from(["eager", "graph"])


def planned(graph: Graph, hw: Hardware, mode: Mode) -> Plans | None:
    """None where an operator does not fit the device."""
    with contextlib.suppress(HardwareError):
        return make_plans(graph, hw, default_constants(hw, "bf16"), "bf16", mode=mode)
    return None


@settings(max_examples=25, deadline=None)
@given(GRAPHS, DEVICES, MODES, st.lists(st.floats(0.2, 6.0), min_size=2, max_size=3))
def test_more_bandwidth_never_raises_time(graph: Graph, device: str, mode: Mode, factors: list[float]) -> None:
    hw = load_hardware(device)
    faster = [dataclasses.replace(hw, dram_bytes_per_s=hw.dram_bytes_per_s * f) for f in sorted(factors)]
    found = [p.plans for one in faster if (p := planned(graph, one, mode)) is not None]
    for slow, fast in itertools.pairwise(found):
        for name in TIMED:
            assert fast[name].totals.predicted_ns <= slow[name].totals.predicted_ns * SLACK


@settings(max_examples=25, deadline=None)
@given(GRAPHS, DEVICES, MODES, st.lists(st.floats(0.3, 4.0), min_size=2, max_size=3))
def test_more_on_chip_memory_never_raises_time(graph: Graph, device: str, mode: Mode, factors: list[float]) -> None:
    hw = load_hardware(device)
    larger = [dataclasses.replace(hw, sram_bytes_per_core=int(hw.sram_bytes_per_core * f)) for f in sorted(factors)]
    found = [p.plans for one in larger if (p := planned(graph, one, mode)) is not None]
    for small, large in itertools.pairwise(found):
        for name in TIMED:
            assert large[name].totals.predicted_ns <= small[name].totals.predicted_ns * SLACK


@pytest.mark.parametrize("device", ["A100", "H100", "L4", "MI300X", "TPU-v5e", "Wormhole"])
@pytest.mark.parametrize("name", [b.name for b in blocks()])
def test_more_on_chip_memory_never_raises_traffic_of_a_built_in_block(name: str, device: str) -> None:
    graph, hw = build_block(name), load_hardware(device)
    larger = [
        dataclasses.replace(hw, sram_bytes_per_core=int(hw.sram_bytes_per_core * f)) for f in (0.25, 0.5, 1, 2, 4, 8)
    ]
    found = [p.plans for one in larger if (p := planned(graph, one, "eager")) is not None]
    assert len(found) >= 4
    for small, large in itertools.pairwise(found):
        for policy, plan in large.items():
            assert plan.totals.dram_bytes <= small[policy].totals.dram_bytes * SLACK


@settings(max_examples=25, deadline=None)
@given(GRAPHS, DEVICES, MODES)
def test_what_policies_promise(graph: Graph, device: str, mode: Mode) -> None:
    found = planned(graph, load_hardware(device), mode)
    assert found is not None
    totals = {name: plan.totals for name, plan in found.plans.items()}
    none = totals["none"]
    assert totals["balanced"].predicted_ns <= totals["conservative"].predicted_ns * SLACK
    assert totals["conservative"].predicted_ns <= none.predicted_ns * SLACK
    assert totals["aggressive"].launches <= min(t.launches for t in totals.values())
    for t in totals.values():
        assert t.within_unfused
        assert t.peak_bytes <= none.peak_bytes * SLACK
        assert t.dram_bytes * SLACK >= t.dram_lower_bound_bytes
        assert t.burst >= 1
    assert totals["aggressive"].dram_bytes <= none.dram_bytes * SLACK


@settings(max_examples=40, deadline=None)
@given(random_graphs(), st.data())
def test_nonsense_hardware_is_one_line(graph: Graph, data: st.DataObject) -> None:
    number = st.sampled_from([1, 7, 1000, 1 << 20, 1 << 40])
    kind: Kind = data.draw(st.sampled_from(["gpu", "systolic", "cpu"]))
    hw = Hardware(
        name="nonsense",
        title="",
        kind=kind,
        cores=data.draw(number),
        clock_hz=1e9,
        matrix_flops={data.draw(st.sampled_from(["bf16", "fp64", "int8"])): float(data.draw(number))},
        vector_flops={"fp32": float(data.draw(number))},
        sram_bytes_per_core=data.draw(number),
        dram_bytes=data.draw(number),
        dram_bytes_per_s=float(data.draw(number)),
        mma={"bf16": (data.draw(st.integers(1, 300)), 8, 16)},
        launch=LaunchCosts(0.0, 0.0, 0.0, 0.0),
        registers_per_core=data.draw(st.sampled_from([1, 65536])) if kind == "gpu" else 0,
        max_threads_per_core=data.draw(st.sampled_from([1, 2048])) if kind == "gpu" else 0,
        l2_bytes=data.draw(st.sampled_from([0, 1, 1 << 26])),
        l2_bytes_per_s=1e12,
    )
    said = ""
    try:
        made = make_plans(graph, hw, default_constants(hw, "bf16"), "bf16").plans
    except HardwareError as error:
        said, made = str(error), {}
    assert bool(made) != said.startswith("hardware nonsense")
    assert "\n" not in said
    for plan in made.values():
        assert 0 < plan.totals.predicted_ns < float("inf")
        assert plan.totals.within_device == (plan.totals.peak_bytes <= hw.dram_bytes)


@pytest.mark.parametrize("shapes", [{"batch": 0}, {"sequence": -4}, {"heads": 7, "kv_heads": 2}, {"batch": 1 << 70}])
def test_nonsense_shapes_are_one_line(shapes: dict[str, int | str]) -> None:
    with pytest.raises(AcceleratorError) as caught:
        make_plans(build_block("attention", shapes), hw := load_hardware("A100"), default_constants(hw, "bf16"), "bf16")
    assert "\n" not in str(caught.value)
