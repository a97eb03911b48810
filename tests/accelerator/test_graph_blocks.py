"""Graphs: shapes, arithmetic and bytes of real models; errors that name operator and dimension."""

from __future__ import annotations

import pytest

from fusetui.accelerator.blocks import blocks, build_block, parse_shapes
from fusetui.accelerator.graph import Graph, GraphError, Operator, Tensor, matmul_shape


def test_every_block_builds_at_its_defaults() -> None:
    assert {b.name for b in blocks()} == {
        "attention", "conv-bottleneck", "dlrm", "mlp", "moe-expert", "norm-chain", "ssm-scan",
        "transformer-decode", "transformer-prefill",
    }  # fmt: skip
    for block in blocks():
        graph = build_block(block.name)
        assert graph.total_flops > 0
        assert graph.compulsory_bytes > 0
        assert all(graph.op_bytes(op) >= graph.tensor_bytes(op.output) for op in graph.operators if not op.is_view)


def test_bert_large_encoder_has_the_published_arithmetic() -> None:
    # 8 x 512 tokens, hidden 1024: Q,K,V 25.77 Gflop together, both attention products 4.295 each, output 8.59,
    # the two linears 34.36 each (Ivanov et al., table of operators).
    graph = build_block("transformer-prefill", {"model": "bert-large", "batch": 8, "sequence": 512}, "fp16")
    flops = {op.name: graph.flops(op) for op in graph.operators}
    assert sum(flops[f"{x}_proj"] for x in "qkv") == pytest.approx(25.770e9, rel=1e-4)
    assert flops["scores"] == flops["values"] == pytest.approx(4.295e9, rel=1e-4)
    assert flops["o_proj"] == pytest.approx(8.590e9, rel=1e-4)
    assert flops["up_proj"] == flops["down_proj"] == pytest.approx(34.360e9, rel=1e-4)
    matrix = sum(graph.flops(op) for op in graph.operators if op.kind == "matmul")
    assert matrix / graph.total_flops > 0.99  # published 99.8 % with a ReLU, counted here with a GELU


def test_grouped_queries_share_keys() -> None:
    graph = build_block("transformer-decode", {"model": "llama-70b", "batch": 4, "context": 4096})
    shapes = {op.name: matmul_shape(graph, op) for op in graph.operators if op.kind == "matmul"}
    assert shapes["scores"] == (4 * 8, 8, 4096, 128)  # 8 queries of a group against one head of keys
    assert shapes["values"] == (4 * 8, 8, 128, 4096)
    assert shapes["k_proj"] == (1, 4, 1024, 8192)
    assert graph.tensor_bytes("k_cache") == 4 * 8 * 4096 * 128 * 2


def test_a_convolution_is_a_matrix_product_over_its_window() -> None:
    graph = build_block("conv-bottleneck", {"batch": 2, "height": 8, "width": 8, "channels": 64, "middle": 16})
    spatial = next(op for op in graph.operators if op.kind == "conv")
    assert matmul_shape(graph, spatial) == (1, 128, 16, 144)
    assert graph.read_bytes(spatial, spatial.inputs[0]) == 2 * 8 * 8 * 16 * 2


def test_a_gather_reads_the_rows_asked_for_not_the_table() -> None:
    graph = build_block("dlrm", {"batch": 4, "tables": 2, "rows": 1000, "pooling": 3, "width": 8})
    lookup = next(op for op in graph.operators if op.kind == "gather")
    assert graph.read_bytes(lookup, "embeddings") == 4 * 2 * 3 * 8 * 2
    assert graph.tensor_bytes("embeddings") == 2 * 1000 * 8 * 2
    assert graph.compulsory_bytes < graph.tensor_bytes("embeddings") + 1e6


@pytest.mark.parametrize(
    ("text", "shapes"),
    [("", {}), ("batch=4, sequence=1024", {"batch": 4, "sequence": 1024}), ("model=gpt2", {"model": "gpt2"})],
)
def test_shapes_are_parsed(text: str, shapes: dict[str, int | str]) -> None:
    assert parse_shapes(text) == shapes


@pytest.mark.parametrize("text", ["batch", "batch=", "=4", "batch=-1", "batch=1.5", "batch=four"])
def test_nonsense_shapes_are_refused(text: str) -> None:
    with pytest.raises(GraphError, match="--shapes"):
        parse_shapes(text)


@pytest.mark.parametrize(
    ("name", "shapes", "words"),
    [
        ("atention", {}, "block atention: does not exist"),
        ("mlp", {"model": "llama-8t"}, "model llama-8t: is not known"),
        ("mlp", {"sequence": 4}, "has no parameter sequence"),
        ("mlp", {"tokens": 0}, "parameter tokens"),
        ("attention", {"heads": 3, "kv_heads": 2}, "heads: 3 is not a multiple of kv_heads = 2"),
        ("attention", {"sequence": 8, "context": 4}, "context: 4 keys are too few for 8 causal queries"),
    ],
)
def test_unknown_blocks_models_and_parameters_are_named(name: str, shapes: dict[str, int | str], words: str) -> None:
    with pytest.raises(GraphError, match=words):
        build_block(name, shapes)


def small(op: Operator, out: tuple[str, ...], **sizes: int) -> Graph:
    tensors = {
        "x": Tensor("x", ("m", "k"), "fp16", "input"),
        "w": Tensor("w", ("k", "n"), "fp16", "weight"),
        "y": Tensor("y", out, "fp16"),
    }
    return Graph("small", {"m": 2, "n": 3, "k": 4} | sizes, tensors, (op,))


@pytest.mark.parametrize(
    ("op", "out", "words"),
    [
        (Operator("mm", "matmul", ("x", "w"), "y", ("m",)), ("n",), "operator mm: contracted dimension m"),
        (Operator("mm", "matmul", ("x",), "y", ("k",)), ("m",), "operator mm: needs two inputs"),
        (Operator("mm", "matmul", ("x", "w"), "y"), ("m", "n"), "operator mm: dimension k of its inputs"),
        (Operator("add", "elementwise", ("x",), "y"), ("m", "k", "n"), "operator add: dimension n of its output"),
        (Operator("sum", "reduction", ("x",), "y", ("n",)), ("m",), "operator sum: dimension k"),
        (Operator("sum", "reduction", ("x",), "y"), ("m", "k"), "operator sum: reduces no dimension"),
        (Operator("add", "elementwise", ("z",), "y"), ("m",), "operator add: tensor z does not exist"),
        (Operator("add", "elementwise", ("y",), "y"), ("m",), "operator add: reads y before"),
    ],
)
def test_a_wrong_operator_is_named_with_its_dimension(op: Operator, out: tuple[str, ...], words: str) -> None:
    with pytest.raises(GraphError, match=words):
        small(op, out)


@pytest.mark.parametrize("size", [0, -1, True, 1 << 41])
def test_a_wrong_size_is_named(size: int) -> None:
    with pytest.raises(GraphError, match="dimension n"):
        small(Operator("mm", "matmul", ("x", "w"), "y", ("k",)), ("m", "n"), n=size)
