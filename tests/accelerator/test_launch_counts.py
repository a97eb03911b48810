"""Launch counts of one exported layer against two real compilers, explained operator by operator.

Counted in their own profiles of the same layer (1 x 128 tokens, hidden 256, 4 heads): ONNX Runtime 1.32 runs 51
kernels with optimisation off, 33 at level basic and 27 at extended; IREE dispatches 17 at O0 and 12 at O3.
"""

from __future__ import annotations

from eager_blocks import onnx_layer

from fusetui.accelerator.constants import default_constants
from fusetui.accelerator.graph import Graph
from fusetui.accelerator.group import ANCHORED, VECTOR, Group, Rules
from fusetui.accelerator.plan import make_plans
from fusetui.accelerator.presets import load_hardware

NORM = ("mean", "sub", "pow", "variance", "epsilon", "sqrt", "div", "mul", "add")
GELU = ("up.bias", "gelu.div", "gelu.erf", "gelu.plus", "gelu.mul", "gelu.half")


def legal(graph: Graph, *names: str) -> Group:
    index = {op.name: i for i, op in enumerate(graph.operators)}
    group = Rules(graph).group(sum(1 << index[name] for name in names))
    assert isinstance(group, Group), group
    return group


def test_every_fusion_of_onnx_runtime_is_a_legal_group() -> None:
    graph = onnx_layer()
    assert len(graph.operators) == 51
    basic = [
        tuple(f"norm1.{part}" for part in NORM),
        tuple(f"norm2.{part}" for part in NORM),
        ("k.transpose", "k.transpose2"),
    ]
    extended = [GELU, ("scores", "scale")]
    assert [legal(graph, *names).reach for names in basic] == [VECTOR] * 3
    assert [legal(graph, *names).reach for names in extended] == [VECTOR, ANCHORED]
    removed_identity = 1
    at_basic = 51 - removed_identity - sum(len(names) - 1 for names in basic)
    assert at_basic == 33
    assert at_basic - sum(len(names) - 1 for names in extended) == 27


def test_every_dispatch_of_iree_is_a_legal_group() -> None:
    graph = onnx_layer()
    o3 = [
        tuple(f"norm1.{part}" for part in NORM),
        ("scores", "scale"),
        ("softmax",),
        ("values", "merge.transpose"),
        ("o", "o.bias", "residual1"),
        tuple(f"norm2.{part}" for part in NORM),
        ("up", "up.bias", *GELU[1:]),
        ("down", "down.bias", "residual2"),
    ]
    assert all(legal(graph, *names) for names in o3)
    one_packed_projection, copies_of_its_slices = 1, 3
    assert len(o3) + one_packed_projection + copies_of_its_slices == 12


def test_how_our_plans_differ_from_the_compilers() -> None:
    graph, hw = onnx_layer(), load_hardware("host")
    plans = make_plans(graph, hw, default_constants(hw, "fp32"), "fp32").plans
    counts = {name: plan.totals.launches for name, plan in plans.items()}
    views = sum(op.is_view for op in graph.operators)
    assert counts["none"] == 51 - views  # a reshape is a node to ONNX Runtime and no kernel to us
    # Conservative keeps 8 products alone like ONNX Runtime; between them it also joins biases, transposes, residuals
    # and norms that ONNX Runtime leaves apart.
    kinds = [op.kind for op in graph.operators]
    assert kinds.count("matmul") == 8
    assert 8 < counts["conservative"] < 27
    assert sum(g.pattern == "matmul" and len(g.ops) == 1 for g in plans["conservative"].groups) == 8
    # Balanced: three projections instead of a packed one (+2), no copies of slices (-3); what is left is attention.
    assert counts["aggressive"] <= counts["balanced"] <= 12
