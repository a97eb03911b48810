"""Our launches for exported blocks, and what two runtimes made of the same blocks, accounted for node by node."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from launch_accounts import Kernel, differences, kernels_per_run, plan_kernels, profile_kernels, runtime_kernels
from onnx_models import Model, residual_block, transformer
from stablehlo_graph import iree_roots, plan_roots, read_stablehlo

from fusetui.accelerator.constants import default_constants
from fusetui.accelerator.graph import Graph
from fusetui.accelerator.plan import make_plans
from fusetui.accelerator.presets import load_hardware

HW = load_hardware("host")
BLOCK = {"batch": 1, "sequence": 128}
CONVOLUTIONS = {"batch": 1, "height": 32, "width": 32}
CORPUS = Path(os.environ.get("FUSETUI_CORPUS", "/nonexistent")) / "traces" / "local"
needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason="FUSETUI_CORPUS is not set")


def launches(graph: Graph) -> dict[str, int]:
    plans = make_plans(graph, HW, default_constants(HW, "fp32"), "fp32").plans
    return {name: plan.totals.launches for name, plan in plans.items()}


def test_launches_of_an_exported_layer(tmp_path: Path) -> None:
    """51 nodes: four reshapes and an identity are views. Eight products alone and ten vector kernels between them;
    balanced has two norms, an attention, and one kernel per projection, of which one goes into attention."""
    counts = launches(transformer().read(tmp_path, BLOCK).graph)
    assert counts["none"] == 51 - 4 - 1
    assert counts["conservative"] == 8 + 10
    assert counts["balanced"] == 9
    assert counts["aggressive"] <= 9 - 2


def test_launches_of_an_exported_convolution_block(tmp_path: Path) -> None:
    counts = launches(residual_block().read(tmp_path, CONVOLUTIONS).graph)
    assert counts == {"none": 7, "conservative": 4, "balanced": 2, "aggressive": 2}


def event(name: str, op: str, index: int, read: object = 0, made: object = 0) -> dict[str, Any]:
    args = {"op_name": op, "node_index": str(index), "input_type_shape": read, "output_type_shape": made}
    return {"cat": "Node", "name": f"{name}_kernel_time", "args": args}


def small(folder: Path) -> Graph:
    m = Model()
    y = m.node("MatMul", m.input("x", 64, 64), m.weight(64, 64))
    y = m.node("Softmax", m.node("Sigmoid", m.node("Add", y, m.weight(64))))
    y = m.node("Transpose", m.node("Transpose", y, perm=[1, 0]), perm=[1, 0])
    return m.output(m.node("Identity", m.node("Relu", y))).read(folder).graph


def test_a_profile_says_what_each_kernel_computes(tmp_path: Path) -> None:
    graph = small(tmp_path)
    off = [event(f"{op.name}x", op.name.rstrip("0123456789"), i, i, i) for i, op in enumerate(graph.operators)]
    assert [k.nodes for k in runtime_kernels(graph, off, off)] == [{i} for i in range(8)]
    level = [
        event("MatMul0x", "MatMul", 0, 0, 0),
        event("Fused", "BiasSigmoid", 8, 1, 2),
        event("Softmax3x", "Softmax", 3, 3, 3),
        event("Transpose5x", "Transpose", 5, 4, 5),
        event("Relu6x", "Relu", 6, 6, 6),
    ]
    assert runtime_kernels(graph, off, level) == [
        Kernel("MatMul", frozenset({0})),
        Kernel("BiasSigmoid", frozenset({1, 2})),  # makes what Sigmoid made
        Kernel("Softmax", frozenset({3})),
        Kernel("Transpose", frozenset({4, 5})),  # its input has changed
        Kernel("Relu", frozenset({6})),  # the identity at the end is in nothing
    ]
    path = tmp_path / "profile.json"
    path.write_text(json.dumps([{"cat": "Session", "name": "model_run"}] * 2 + level * 2))
    assert profile_kernels(path) == level
    assert kernels_per_run(path) == 5


def test_differences_add_up(tmp_path: Path) -> None:
    graph = small(tmp_path)
    theirs = [
        Kernel("a", frozenset({0})),
        Kernel("b", frozenset({1, 2})),
        Kernel("c", frozenset({3, 4})),
        Kernel("d", frozenset()),
    ]
    ours = [Kernel("matmul", frozenset({0, 1})), Kernel("vector", frozenset({2})), Kernel("vector", frozenset({3, 4}))]
    found = differences(graph, theirs, ours)
    assert [(len(d.theirs), len(d.ours)) for d in found] == [(2, 2), (1, 0)]
    assert "we take a product's neighbours into its kernel" in found[0].why
    assert "only the runtime joins Add1 | Sigmoid2 (b)" in found[0].why
    assert found[1].why == "layout changes that the runtime adds"


@needs_corpus
@pytest.mark.parametrize(
    ("name", "model", "shapes", "tag", "counts"),
    [("block", transformer, BLOCK, "1x128x256", {"off": 51, "basic": 33, "ext": 27, "all": 27}),
     ("conv", residual_block, CONVOLUTIONS, "1x64x32x32", {"off": 8, "basic": 5, "ext": 4, "all": 6})],
)  # fmt: skip
def test_onnx_runtime_is_accounted_for(
    name: str, model: Any, shapes: dict[str, int], tag: str, counts: dict[str, int], tmp_path: Path
) -> None:
    graph = model().read(tmp_path, shapes).graph
    off = profile_kernels(CORPUS / "ort" / f"ort_{name}_off_{tag}.json")
    for e in off:
        assert graph.operators[int(e["args"]["node_index"])].name.rstrip("0123456789") == e["args"]["op_name"]
    plans = make_plans(graph, HW, default_constants(HW, "fp32"), "fp32").plans
    for level, count in counts.items():
        path = CORPUS / "ort" / f"ort_{name}_{level}_{tag}.json"
        kernels = runtime_kernels(graph, off, profile_kernels(path))
        assert len(kernels) == kernels_per_run(path) == count
        nodes = [i for k in kernels for i in k.nodes]
        assert len(nodes) == len(set(nodes))
        left_out = {graph.operators[i].name.rstrip("0123456789") for i in range(len(off)) if i not in nodes}
        assert left_out == (set() if level == "off" else {"Identity"})
        added = [k.name for k in kernels if not k.nodes]
        assert added == (["ReorderInput", "ReorderOutput"] if (name, level) == ("conv", "all") else [])
        for plan in plans.values():
            ours = plan_kernels(graph, plan)
            found = differences(graph, kernels, ours)
            assert sum(len(d.theirs) - len(d.ours) for d in found) == count - plan.totals.launches
            assert all(d.why for d in found)


@needs_corpus
def test_iree_is_accounted_for() -> None:
    """17 is 4 reductions, 6 products, 3 copies of slices, 3 transposes and a softmax; 12 is without 2 and 3 of them."""
    graph = read_stablehlo(CORPUS / "iree" / "block_1x128.stablehlo.mlir")
    stats = {
        level: iree_roots(CORPUS / "iree" / f"block_1x128.{level}.stats.csv") for level in ("O0", "O1", "O2", "O3")
    }
    assert stats["O0"] == {"reduction": 4, "product": 6, "slice": 3, "transpose": 3, "softmax": 1}
    assert stats["O2"] == {"reduction": 2, "product": 6, "slice": 3, "softmax": 1}
    assert [s.total() for s in stats.values()] == [17, 17, 12, 12]
    plans = make_plans(graph, HW, default_constants(HW, "fp32"), "fp32").plans
    none = plan_roots(graph, plans["none"])
    assert all(none[root] >= count for root, count in stats["O0"].items())
    assert none["reduction"] == 4
    assert none["product"] == 6
    assert none.total() == plans["none"].totals.launches
    assert plan_roots(graph, plans["balanced"])["product"] == 6 - 1
    assert plans["balanced"].totals.launches < 12 <= plans["conservative"].totals.launches <= 17
