"""What one kernel can compute, and the reasons given for what it cannot."""

from __future__ import annotations

from fusetui.accelerator.blocks import build_block
from fusetui.accelerator.blocks.builder import Builder
from fusetui.accelerator.fusion import enumerate_groups
from fusetui.accelerator.graph import Graph
from fusetui.accelerator.group import ANCHORED, ROW_ANCHORED, VECTOR, Group, Rules


def mask(graph: Graph, *names: str) -> int:
    known = {op.name: i for i, op in enumerate(graph.operators)}
    return sum(1 << known[name] for name in names)


def legal(graph: Graph, *names: str) -> Group:
    group = Rules(graph).group(mask(graph, *names))
    assert isinstance(group, Group), group
    return group


def refused(graph: Graph, *names: str) -> str:
    reason = Rules(graph).group(mask(graph, *names))
    assert isinstance(reason, str)
    return reason


def test_fused_attention_keeps_the_scores_on_chip() -> None:
    graph = build_block("attention")
    group = legal(graph, "scores", "scale", "mask", "softmax", "values")
    assert group.pattern == "attention"
    assert group.reach == ANCHORED
    assert group.inputs == ("q", "k", "v")
    assert group.outputs == ("values",)
    assert group.inner == ("scores", "scale", "mask", "softmax")


def test_attention_needs_its_softmax_and_private_scores() -> None:
    b = Builder("two", {"m": 64, "k": 64, "n": 64, "p": 64}, "fp16")
    x = b.tensor("x", ("m", "k"))
    s = b.matmul("first", x, b.weight("w1", "k", "n"), ("m", "n"))
    p = b.reduction("softmax", s, row="n", flops=5.0, cost_class="softmax", online=True)
    b.matmul("second", p, b.weight("w2", "n", "p"), ("m", "p"))
    b.elementwise("spy", s)
    assert "spy" not in legal(b.graph(), "first", "softmax").inner
    assert "needed outside" in refused(b.graph(), "first", "softmax", "second")


def test_two_matrix_products_are_two_kernels() -> None:
    graph = build_block("mlp", {"gated": 0})
    assert refused(graph, "up_proj", "gelu", "down_proj").startswith("more than one matrix product")
    assert legal(graph, "gelu", "down_proj").before == (1,)
    assert legal(graph, "up_proj", "gelu").after == (1,)


def test_a_row_reduction_beside_a_matrix_product_is_the_most_daring() -> None:
    graph = build_block("transformer-prefill", {"model": "bert-large"})
    group = legal(graph, "down_proj", "down_proj.bias", "mlp_residual", "mlp_norm")
    assert group.reach == ROW_ANCHORED
    assert group.row == ("hidden",)
    assert legal(graph, "down_proj.bias", "mlp_residual", "mlp_norm").reach == VECTOR


def test_a_broadcast_after_a_matrix_product_would_repeat_it() -> None:
    b = Builder("grow", {"m": 8, "k": 8, "n": 8, "r": 512}, "fp16")
    y = b.matmul("product", b.tensor("x", ("m", "k")), b.weight("w", "k", "n"), ("m", "n"))
    b.elementwise("spread", y, b.tensor("z", ("m", "n", "r")))
    assert "would repeat product" in refused(b.graph(), "product", "spread")


def test_rows_of_different_dimensions_do_not_share_a_kernel() -> None:
    b = Builder("mixed", {"m": 8, "n": 8}, "fp16")
    x = b.elementwise("shared", b.tensor("x", ("m", "n")))
    b.reduction("rows", x, row="n", flops=1.0, cost_class="reduce", keep=False)
    b.reduction("columns", x, row="m", flops=1.0, cost_class="reduce", keep=False)
    graph = b.graph()
    assert "kind of row" in refused(graph, "shared", "rows", "columns")
    assert Rules(graph).forced(mask(graph, "shared", "rows", "columns")).pattern == "forced"


def test_pruning_loses_no_legal_group() -> None:
    for name in ("attention", "mlp", "moe-expert", "ssm-scan", "conv-bottleneck"):
        graph = build_block(name)
        rules = Rules(graph)
        pruned = set(enumerate_groups(graph.predecessors, may_grow=rules.may_grow).masks)
        every = {m for m in enumerate_groups(graph.predecessors).masks if isinstance(rules.group(m), Group)}
        assert every <= pruned


def test_each_input_of_a_group_counts_once() -> None:
    b = Builder("share", {"m": 8}, "fp16")
    x = b.tensor("x", ("m",))
    b.elementwise("both", b.elementwise("one", x), b.elementwise("two", x))
    group = legal(b.graph(), "one", "two", "both")
    assert group.inputs == ("x",)
    assert group.outputs == ("both",)
