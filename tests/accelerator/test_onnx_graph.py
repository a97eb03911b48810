"""ONNX nodes as operators of the model: shapes, arithmetic, bytes, and what is said about what is left out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx_models import Model, residual_block, transformer

from fusetui.accelerator.constants import default_constants
from fusetui.accelerator.graph import Graph, GraphError, Operator, matmul_shape
from fusetui.accelerator.plan import make_plans
from fusetui.accelerator.presets import load_hardware


def kinds(graph: Graph) -> dict[str, int]:
    found: dict[str, int] = {}
    for op in graph.operators:
        kind = "view" if op.is_view else op.kind
        found[kind] = found.get(kind, 0) + 1
    return found


def only(graph: Graph, kind: str) -> Operator:
    (op,) = [op for op in graph.operators if op.kind == kind]
    return op


def sizes(graph: Graph, tensor: str) -> list[int]:
    return [graph.sizes[d] for d in graph.tensors[tensor].dims]


def test_a_layer_has_an_operator_per_node(tmp_path: Path) -> None:
    found = transformer().read(tmp_path, {"batch": 2, "sequence": 128})
    graph = found.graph
    assert len(graph.operators) == 51
    assert kinds(graph) == {"matmul": 8, "reduction": 5, "elementwise": 28, "layout": 5, "view": 5}
    assert found.dtype == "fp32"
    assert found.notes == ()
    tokens, width = 2 * 128, 256
    products = 2 * tokens * width * width * (4 + 2 * 4) + 2 * 2 * 2 * 4 * 128 * 128 * 64
    assert sum(graph.flops(op) for op in graph.operators if op.kind == "matmul") == products
    weights = (12 * width * width + 4 * width + 4 * width + width + 4 * width) * 4
    assert sum(graph.tensor_bytes(n) for n, t in graph.tensors.items() if t.role == "weight") == pytest.approx(
        weights, abs=64
    )


def test_self_attention_is_one_kernel(tmp_path: Path) -> None:
    """Queries and keys come from the same sequence and must be two loops."""
    graph = transformer().read(tmp_path, {"batch": 1, "sequence": 128}).graph
    hw = load_hardware("H100")
    balanced = make_plans(graph, hw, default_constants(hw, "fp32"), "fp32").plans["balanced"]
    (attention,) = [g for g in balanced.groups if g.pattern == "attention"]
    assert [op.rstrip("0123456789") for op in attention.ops].count("MatMul") == 2
    assert balanced.totals.launches == 9


def test_attention_without_transposes_reads_its_values_through_a_view(tmp_path: Path) -> None:
    """One head: the sequence of the values is that of the queries by name, and must become that of the keys."""
    m = Model()
    x = m.input("x", 96, 32)
    scores = m.node("MatMul", x, m.node("Transpose", x))
    m.output(m.node("MatMul", m.node("Softmax", scores), x))
    graph = m.read(tmp_path).graph
    first, second = (op for op in graph.operators if op.kind == "matmul")
    assert matmul_shape(graph, first) == (1, 96, 96, 32)
    assert matmul_shape(graph, second) == (1, 96, 32, 96)
    assert second.inputs[1] != "x"


@pytest.mark.parametrize(
    ("left", "right", "shape"),
    [((4, 8), (8, 16), (1, 4, 16, 8)), ((2, 3, 4, 8), (8, 16), (1, 24, 16, 8)), ((8,), (8, 16), (1, 1, 16, 8)),
     ((2, 3, 4, 8), (2, 3, 8, 16), (6, 4, 16, 8)), ((2, 3, 4, 8), (3, 8, 16), (3, 8, 16, 8)),
     ((4, 8), (8,), (1, 4, 1, 8)), ((1, 4, 8), (5, 8, 16), (1, 4, 80, 8))],
)  # fmt: skip
def test_products(
    left: tuple[int, ...], right: tuple[int, ...], shape: tuple[int, int, int, int], tmp_path: Path
) -> None:
    m = Model()
    m.output(m.node("MatMul", m.input("a", *left), m.input("b", *right)))
    graph = m.read(tmp_path).graph
    assert matmul_shape(graph, only(graph, "matmul")) == shape


def test_gemm_and_einsum(tmp_path: Path) -> None:
    m = Model()
    m.output(m.node("Gemm", m.input("a", 8, 4), m.weight(16, 8), m.weight(16), transA=1, transB=1))
    found = m.read(tmp_path)
    assert matmul_shape(found.graph, only(found.graph, "matmul")) == (1, 4, 16, 8)
    assert len(found.graph.operators) == 1
    assert "1 biases are inside their product" in found.notes[0]

    m = Model()
    m.output(m.node("Gemm", m.input("a", 4, 8), m.weight(8, 16), m.input("c", 4, 16)))
    assert kinds(m.read(tmp_path).graph) == {"matmul": 1, "elementwise": 1}

    m = Model()
    m.output(m.node("Einsum", m.input("a", 2, 5, 4, 8), m.input("b", 2, 6, 4, 8), equation="bqhd,bkhd->bhqk"))
    graph = m.read(tmp_path).graph
    assert matmul_shape(graph, only(graph, "matmul")) == (8, 5, 6, 8)


def convolution(folder: Path, op: str, weight: tuple[int, ...], **attributes: object) -> Graph:
    m = Model()
    m.output(m.node(op, m.input("x", 2, 8, 12, 12), m.weight(*weight), **attributes))
    return m.read(folder).graph


def test_convolutions(tmp_path: Path) -> None:
    graph = convolution(tmp_path, "Conv", (16, 8, 3, 3), strides=[2, 2], pads=[1, 1, 1, 1])
    conv = only(graph, "conv")
    assert matmul_shape(graph, conv) == (1, 2 * 6 * 6, 16, 8 * 9)
    assert graph.flops(conv) == 2 * (2 * 6 * 6) * 16 * 72
    assert (conv.kernel, conv.stride) == (3, 2)
    graph = convolution(tmp_path, "Conv", (8, 1, 3, 3), group=8, pads=[1, 1, 1, 1])
    assert graph.flops(only(graph, "conv")) == 2 * (2 * 144) * 8 * 9
    graph = convolution(tmp_path, "Conv", (16, 8, 1, 1))
    assert matmul_shape(graph, only(graph, "matmul")) == (1, 2 * 144, 16, 8)
    # Every input point meets every tap once: 2 x 144 x 8 x 4 x 4 x 16 multiply-adds for a stride of 2.
    graph = convolution(tmp_path, "ConvTranspose", (8, 16, 4, 4), strides=[2, 2])
    out = 2 * 26 * 26
    assert graph.flops(only(graph, "conv")) == pytest.approx(2 * out * 16 * 8 * 16 / 4)


def test_a_residual_block_keeps_its_shapes_apart(tmp_path: Path) -> None:
    graph = residual_block(16).read(tmp_path, {"batch": 2, "height": 10, "width": 12}).graph
    assert kinds(graph) == {"conv": 2, "elementwise": 5, "view": 1}
    assert all(sorted(sizes(graph, op.output)) == [2, 10, 12, 16] for op in graph.operators)


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "opset", "points"),
    [("Softmax", (), {"axis": 1}, 17, 6), ("Softmax", (), {}, 17, 8), ("Softmax", (), {"axis": 1}, 11, 6 * 8),
     ("LayerNormalization", ((8,), (8,)), {}, 17, 8), ("LayerNormalization", ((6, 8),), {"axis": -2}, 17, 48),
     ("InstanceNormalization", ((6,), (6,)), {}, 17, 8)],
)  # fmt: skip
def test_rows(
    op: str, inputs: tuple[tuple[int, ...], ...], attributes: dict[str, int], opset: int, points: int, tmp_path: Path
) -> None:
    m = Model(opset)
    m.output(m.node(op, m.input("x", 4, 6, 8), *(m.weight(*shape) for shape in inputs), **attributes))
    graph = m.read(tmp_path).graph
    row = only(graph, "reduction")
    assert graph.points(row.reduced) == points
    assert graph.points(graph.loops(row)) == 4 * 6 * 8
    assert row.online == (op == "Softmax")


def test_reductions(tmp_path: Path) -> None:
    m = Model(18)
    x = m.input("x", 4, 6, 8)
    m.output(
        m.node("ReduceMean", x, m.constant(np.array([-1])), keepdims=0),
        m.node("ReduceMax", x, keepdims=1),
        m.node("ArgMax", x, axis=1),
    )
    graph = m.read(tmp_path).graph
    assert [graph.points(op.reduced) for op in graph.operators] == [8, 192, 6]
    assert [sizes(graph, op.output) for op in graph.operators] == [[4, 6], [], [4, 8]]


def test_what_moves_no_byte_is_a_view(tmp_path: Path) -> None:
    m = Model()
    x = m.input("x", 1, 6, 8)
    m.output(
        m.node("Reshape", x, m.constant(np.array([8, 6]))),
        m.node("Unsqueeze", x, m.constant(np.array([0]))),
        m.node("Transpose", x, perm=[1, 0, 2]),
        m.node("Slice", x, m.constant(np.array([1])), m.constant(np.array([3])), m.constant(np.array([1]))),
        *m.node("Split", x, outputs=2, axis=1),
    )
    assert [op.is_view for op in m.read(tmp_path).graph.operators] == [True] * 6
    m = Model()
    x = m.input("x", 1, 6, 8)
    m.output(
        m.node("Transpose", x, perm=[0, 2, 1]),
        m.node("Slice", x, m.constant(np.array([1])), m.constant(np.array([3])), m.constant(np.array([2]))),
        *m.node("Split", x, outputs=2, axis=2),
        m.node("Concat", x, x, axis=1),
        m.node("Expand", x, m.constant(np.array([3, 6, 8]))),
    )
    graph = m.read(tmp_path).graph
    assert [op.is_view for op in graph.operators] == [False] * 6
    assert [graph.tensor_bytes(op.output) / 4 for op in graph.operators] == [48, 12, 24, 24, 96, 144]


def test_an_embedding_reads_only_its_rows(tmp_path: Path) -> None:
    m = Model()
    m.output(m.node("Gather", m.weight(50_000, 64), m.input("tokens", 7, kind="INT64")))
    graph = m.read(tmp_path).graph
    gather = only(graph, "gather")
    assert graph.op_bytes(gather) == 7 * 64 * 4 * 2 + 7 * 8


def test_constants_and_shapes_are_folded(tmp_path: Path) -> None:
    m = Model()
    x = m.input("x", "batch", 6, 8)
    batch = m.node("Gather", m.node("Shape", x), m.constant(np.array(0)))
    shape = m.node("Concat", m.node("Unsqueeze", batch, m.constant(np.array([0]))), m.constant(np.array([48])), axis=0)
    weight = m.node("Transpose", m.weight(16, 48), perm=[1, 0])
    m.node("Relu", x)
    m.output(m.node("MatMul", m.node("Reshape", x, shape), weight))
    found = m.read(tmp_path, {"batch": 4})
    assert kinds(found.graph) == {"view": 1, "matmul": 1}
    assert matmul_shape(found.graph, only(found.graph, "matmul")) == (1, 4, 16, 48)
    assert found.notes[0].startswith("5 nodes depend on constants and shapes alone")
    assert found.notes[1].startswith("1 nodes whose results nobody reads")


def test_sizes_that_the_model_computes_are_known(tmp_path: Path) -> None:
    """A third of a width, as exporters of `chunk` write it: inference over the whole model does not follow it."""
    m = Model()
    x = m.input("x", "batch", "sequence", 96)
    axis, zero, one = m.constant(np.array([2])), m.constant(np.array([0])), m.constant(np.array([1]))
    width = m.node("Gather", m.node("Shape", x), axis)
    part = m.node("Div", m.node("Add", width, m.constant(np.array([2]))), m.constant(np.array([3])))
    end = m.node("Mul", part, one)
    first = m.node("Slice", x, zero, end, axis)
    batch = m.node("Gather", m.node("Shape", first), zero)
    shape = m.node(
        "Concat", batch, m.constant(np.array([-1])), m.node("Cast", m.constant(np.array([4.0])), to=7), axis=0
    )
    m.output(m.node("Reshape", first, shape))
    found = m.read(tmp_path, {"batch": 2, "sequence": 5})
    assert [op.is_view for op in found.graph.operators] == [False, True]
    assert [sizes(found.graph, op.output) for op in found.graph.operators] == [[2, 5, 32], [2, 40, 4]]


def test_a_result_that_is_read_again_is_still_written(tmp_path: Path) -> None:
    m = Model()
    first = m.node("Relu", m.input("x", 1024))
    m.output(first, m.node("Tanh", first))
    graph = m.read(tmp_path).graph
    assert graph.compulsory_bytes == 3 * 4096
    hw = load_hardware("A100")
    plan = make_plans(graph, hw, default_constants(hw, "fp32"), "fp32").plans["aggressive"]
    assert plan.totals.launches == 1
    assert plan.totals.dram_bytes == pytest.approx(3 * 4096)


def test_what_is_not_known_is_said(tmp_path: Path) -> None:
    m = Model()
    x = m.input("x", 4, 8)
    top, _ = m.node("TopK", x, m.constant(np.array([2])), outputs=2)
    m.output(m.node("Relu", m.node("CumSum", top, m.constant(np.array(0)))))
    found = m.read(tmp_path)
    assert found.notes == ("not known to the model, taken for data movement: CumSum, TopK",)
    assert kinds(found.graph) == {"layout": 2, "elementwise": 1}


def test_operators_of_a_runtime_have_the_shapes_of_their_standard_ones(tmp_path: Path) -> None:
    m = Model()
    x = m.input("x", 4, 8)
    u = m.node("BiasGelu", m.node("FusedMatMul", x, m.weight(8, 32), domain="com.microsoft", alpha=0.5), m.weight(32),
               domain="com.microsoft")  # fmt: skip
    y = m.node("MatMul", u, m.weight(32, 8))
    m.output(m.node("SkipLayerNormalization", y, x, m.weight(8), m.weight(8), domain="com.microsoft"))
    found = m.read(tmp_path)
    assert kinds(found.graph) == {"matmul": 2, "elementwise": 1, "reduction": 1}
    assert found.notes == ()


@pytest.mark.parametrize("form", ["heads", "flat"])
def test_a_whole_attention_is_three_operators_and_one_kernel(form: str, tmp_path: Path) -> None:
    m = Model(23)
    if form == "heads":
        q, k, v = m.input("q", 2, 8, 64, 32), m.input("k", 2, 2, 96, 32), m.input("v", 2, 2, 96, 16)
        y = m.node("Attention", q, k, v)
    else:
        q, k, v = m.input("q", 2, 64, 8 * 32), m.input("k", 2, 96, 2 * 32), m.input("v", 2, 96, 2 * 16)
        y = m.node("Attention", q, k, v, q_num_heads=8, kv_num_heads=2)
    m.output(y)
    graph = m.read(tmp_path).graph
    first, second = (op for op in graph.operators if op.kind == "matmul")
    assert graph.flops(first) == 2 * 2 * 8 * 64 * 96 * 32
    assert graph.flops(second) == 2 * 2 * 8 * 64 * 96 * 16
    hw = load_hardware("A100")
    plan = make_plans(graph, hw, default_constants(hw, "fp16"), "fp16").plans["balanced"]
    assert plan.totals.launches == 1


def test_the_type_of_the_file_can_be_replaced(tmp_path: Path) -> None:
    m = Model()
    m.output(m.node("Relu", m.input("x", 4, 8)))
    found = m.read(tmp_path, dtype="fp16")
    assert {t.dtype for t in found.graph.tensors.values()} == {"fp16"}
    assert found.notes == ("the file holds fp32: planned as if it were converted to fp16",)


@pytest.mark.parametrize(
    ("shapes", "words"),
    [({"batch": 2}, "input x: axis 1 has no size; --shapes sequence=SIZE"),
     ({"batch": 2, "sequence": 4, "tokens": 8}, "--shapes tokens: is no symbolic dimension; it has batch, sequence"),
     ({"batch": 2, "sequence": 1 << 50}, "is not possible")],
)  # fmt: skip
def test_dimensions_are_bound_by_name(shapes: dict[str, int], words: str, tmp_path: Path) -> None:
    with pytest.raises(GraphError, match=words.replace("(", r"\(")):
        transformer(width=64).read(tmp_path, shapes)


def test_a_dimension_without_a_name_is_bound_by_its_place(tmp_path: Path) -> None:
    m = Model()
    m.output(m.node("Relu", m.input("x", "batch", 8)))
    graph = m.read(tmp_path, {"x.0": 6}).graph
    assert sizes(graph, "x") == [6, 8]
