"""Layers as an eager framework launches them: biases inside matrix products, copies for batched products, and in the
GPT-2 layer a GELU of eight kernels. Written from the public model descriptions, for comparison with measured runs."""

from __future__ import annotations

from fusetui.accelerator.blocks.builder import Builder
from fusetui.accelerator.graph import Graph

TOKENS = ("batch", "queries", "hidden")


def _start(name: str, batch: int, sequence: int, hidden: int, heads: int) -> Builder:
    sizes = {"batch": batch, "queries": sequence, "keys": sequence, "heads": heads, "head": hidden // heads}
    return Builder(name, sizes | {"hidden": hidden, "inner": 4 * hidden}, "fp32")


def _attention(b: Builder, source: str, mask: str) -> str:
    split, rows = ("batch", "queries", "heads", "head"), ("batch", "heads", "keys", "head")
    q, k, v = (b.linear(f"{x}_proj", source, split) for x in "qkv")
    q = b.layout("q_copy", q, ("batch", "heads", "queries", "head"))
    k, v = b.layout("k_copy", k, rows), b.layout("v_copy", v, rows)
    s = b.matmul("scores", q, k, ("batch", "heads", "queries", "keys"))
    s = b.elementwise("mask", b.elementwise("scale", s), mask)
    s = b.reduction("softmax", s, row="keys", flops=5.0, cost_class="softmax", online=True)
    c = b.layout("merge", b.matmul("values", s, v, ("batch", "heads", "queries", "head")), split)
    return b.linear("o_proj", c, TOKENS)


def bert_layer(batch: int, sequence: int, hidden: int = 1024, heads: int = 16) -> Graph:
    """One encoder layer, norms after, one kernel for GELU."""
    b = _start("bert-eager", batch, sequence, hidden, heads)
    x = b.tensor("x", TOKENS)
    h = b.elementwise("residual1", _attention(b, x, b.tensor("padding", ("batch", "keys"))), x, cost_class="add")
    h = b.norm("norm1", h, "hidden", rms=False)
    u = b.elementwise("gelu", b.linear("up", h, ("batch", "queries", "inner")), flops=12.0)
    y = b.elementwise("residual2", b.linear("down", u, TOKENS), h, cost_class="add")
    b.norm("norm2", y, "hidden", rms=False)
    return b.graph()


def gpt2_layer(batch: int, sequence: int, hidden: int = 1280, heads: int = 20) -> Graph:
    """One decoder layer, norms before, GELU written out: x/2 (1 + tanh(c (x + a x^3)))."""
    b = _start("gpt2-eager", batch, sequence, hidden, heads)
    x = b.tensor("x", TOKENS)
    mask = b.tensor("allowed", ("queries", "keys"), dtype="int8")
    h = _attention(b, b.norm("norm1", x, "hidden", rms=False), mask)
    h = b.elementwise("residual1", h, x, cost_class="add")
    u = b.linear("up", b.norm("norm2", h, "hidden", rms=False), ("batch", "queries", "inner"))
    t = b.elementwise("scaled_cube", b.elementwise("cube", u, flops=4.0))
    t = b.elementwise("inner_scale", b.elementwise("inner_sum", u, t, cost_class="add"))
    t = b.elementwise("plus_one", b.elementwise("tanh", t, flops=8.0))
    u = b.elementwise("product", b.elementwise("half", u), t, cost_class="add")
    b.elementwise("residual2", b.linear("down", u, TOKENS), h, cost_class="add")
    return b.graph()


def _norm_of_nine(b: Builder, source: str, name: str) -> str:
    """LayerNorm as an exporter writes it."""
    mean = b.reduction(f"{name}.mean", source, row="hidden", flops=1.0, cost_class="reduce", keep=False)
    centred = b.elementwise(f"{name}.sub", source, mean)
    square = b.elementwise(f"{name}.pow", centred, flops=4.0)
    variance = b.reduction(f"{name}.variance", square, row="hidden", flops=1.0, cost_class="reduce", keep=False)
    root = b.elementwise(f"{name}.sqrt", b.elementwise(f"{name}.epsilon", variance), flops=4.0)
    scaled = b.elementwise(f"{name}.mul", b.elementwise(f"{name}.div", centred, root), b.weight(f"{name}.w", "hidden"))
    return b.elementwise(f"{name}.add", scaled, b.weight(f"{name}.b", "hidden"))


def onnx_layer(sequence: int = 128, hidden: int = 256, heads: int = 4) -> Graph:
    """A pre-norm layer exported to ONNX: 51 nodes, reshapes and one identity included."""
    sizes = {"batch": 1, "queries": sequence, "keys": sequence, "heads": heads, "head": hidden // heads}
    b = Builder("onnx-layer", sizes | {"hidden": hidden, "inner": 4 * hidden, "joined": hidden}, "fp32")
    x = b.tensor("x", TOKENS)
    n = _norm_of_nine(b, x, "norm1")
    split = ("batch", "queries", "heads", "head")
    parts = {}
    for p in "qkv":
        flat = b.linear(p, n, ("batch", "queries", "joined"), bias=True)
        parts[p] = b.layout(f"{p}.reshape", flat, split, view=True)
    q = b.layout("q.transpose", parts["q"], ("batch", "heads", "queries", "head"))
    k = b.layout("k.transpose", parts["k"], ("batch", "heads", "keys", "head"))
    k = b.layout("k.transpose2", k, ("batch", "heads", "head", "keys"))
    v = b.layout("v.transpose", parts["v"], ("batch", "heads", "keys", "head"))
    s = b.elementwise("scale", b.matmul("scores", q, k, ("batch", "heads", "queries", "keys")))
    s = b.reduction("softmax", s, row="keys", flops=5.0, cost_class="softmax", online=True)
    c = b.matmul("values", s, v, ("batch", "heads", "queries", "head"))
    c = b.layout("merge.reshape", b.layout("merge.transpose", c, split), ("batch", "queries", "joined"), view=True)
    h = b.elementwise("residual1", b.linear("o", c, TOKENS, bias=True), x, cost_class="add")
    u = b.linear("up", _norm_of_nine(b, h, "norm2"), ("batch", "queries", "inner"), bias=True)
    e = b.elementwise("gelu.plus", b.elementwise("gelu.erf", b.elementwise("gelu.div", u), flops=8.0))
    u = b.elementwise("gelu.half", b.elementwise("gelu.mul", u, e, cost_class="add"))
    y = b.elementwise("residual2", b.linear("down", u, TOKENS, bias=True), h, cost_class="add")
    b.layout("identity", y, TOKENS, view=True)
    return b.graph()
