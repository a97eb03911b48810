"""A recommendation model: embedding look-ups, feature interaction, top MLP."""

from __future__ import annotations

from collections.abc import Mapping

from fusetui.accelerator.blocks.builder import Builder
from fusetui.accelerator.graph import Graph, Operator

TITLE = "DLRM: bottom MLP, pooled embedding look-ups, pairwise interaction, top MLP"
DEFAULTS: Mapping[str, int] = {
    "batch": 2048, "tables": 26, "rows": 1000000, "pooling": 20, "width": 128, "dense": 13, "inner": 512,
}  # fmt: skip


def build(p: Mapping[str, int], dtype: str) -> Graph:
    """Tables share one size; interactions are a batched product of the features with themselves."""
    b = Builder("dlrm", {**p, "other": p["tables"], "score": 1}, dtype)
    x = b.tensor("dense.features", ("batch", "dense"))
    h = b.elementwise("bottom1.relu", b.linear("bottom1", x, ("batch", "inner"), bias=True))
    dense = b.elementwise("bottom2.relu", b.linear("bottom2", h, ("batch", "width"), bias=True))
    table = b.weight("embeddings", "tables", "rows", "width")
    indices = b.tensor("indices", ("batch", "tables", "pooling"), dtype="fp32")
    looked = b.add(Operator("lookup", "gather", (table, indices), "lookup", flops_per_point=0.0, cost_class="gather"),
                   ("batch", "tables", "pooling", "width"))  # fmt: skip
    pooled = b.reduction("pool", looked, row="pooling", flops=1.0, cost_class="reduce", keep=False)
    mixed = b.elementwise("join", pooled, dense)
    turned = b.layout("other_side", pooled, ("batch", "other", "width"))
    pairs = b.matmul("interaction", mixed, turned, ("batch", "tables", "other"))
    h = b.linear("top1", pairs, ("batch", "inner"), bias=True)
    h = b.elementwise("top1.relu", h)
    h = b.linear("top2", h, ("batch", "score"), bias=True)
    b.elementwise("sigmoid", h, flops=4.0)
    return b.graph()
