"""What several blocks share: attention and the two kinds of MLP."""

from __future__ import annotations

from collections.abc import Mapping

from fusetui.accelerator.blocks.builder import Builder
from fusetui.accelerator.graph import GraphError

TOKENS = ("batch", "sequence")


def attention_sizes(p: Mapping[str, int]) -> dict[str, int]:
    """Sizes of grouped-query attention. `context` is how many keys each query sees."""
    if p["heads"] % p["kv_heads"]:
        raise GraphError("parameter heads", f"{p['heads']} is not a multiple of kv_heads = {p['kv_heads']}")
    if p["causal"] and p["sequence"] > 1 and p["sequence"] > p["context"]:
        raise GraphError("parameter context", f"{p['context']} keys are too few for {p['sequence']} causal queries")
    return {
        "batch": p["batch"],
        "sequence": p["sequence"],
        "context": p["context"],
        "kv_heads": p["kv_heads"],
        "group": p["heads"] // p["kv_heads"],
        "head": p["head"],
    }


def attention_core(b: Builder, q: str, k: str, v: str, *, causal: bool, padded: bool = False) -> str:
    """scores, scale, mask, softmax, values: the part a fused attention kernel replaces."""
    rows = ("batch", "kv_heads", "group", "sequence")
    scores = b.matmul("scores", q, k, (*rows, "context"))
    scores = b.elementwise("scale", scores)
    if causal:
        scores = b.elementwise("mask", scores, causal=True)
    elif padded:
        scores = b.elementwise("mask", scores, b.tensor("mask.values", ("batch", "context")))
    weights = b.reduction("softmax", scores, row="context", flops=5.0, cost_class="softmax", online=True)
    return b.matmul("values", weights, v, (*rows, "head"))


def self_attention(b: Builder, source: str, p: Mapping[str, int], *, cached: bool) -> str:
    """Projections, rotary embedding where the model has it, attention, output projection."""
    bias = bool(p["bias"])
    q_dims, kv_dims = (*TOKENS, "kv_heads", "group", "head"), (*TOKENS, "kv_heads", "head")
    q = b.linear("q_proj", source, q_dims, bias=bias)
    k = b.linear("k_proj", source, kv_dims, bias=bias)
    v = b.linear("v_proj", source, kv_dims, bias=bias)
    if p["rope"]:
        table = b.tensor("rope.table", ("sequence", "head"))
        q = b.elementwise("q_rope", q, table, flops=3.0, cost_class="rope")
        k = b.elementwise("k_rope", k, table, flops=3.0, cost_class="rope")
    rows = ("batch", "kv_heads", "context", "head")
    if cached:
        k = b.layout("k_append", k, kv_dims)
        v = b.layout("v_append", v, kv_dims)
        k, v = b.tensor("k_cache", rows), b.tensor("v_cache", rows)
    else:
        k, v = b.layout("k_heads", k, rows), b.layout("v_heads", v, rows)
    mixed = attention_core(b, q, k, v, causal=not cached and bool(p["causal"]), padded=not cached)
    return b.linear("o_proj", mixed, (*TOKENS, "hidden"), bias=bias)


def mlp(b: Builder, source: str, *, gated: bool, bias: bool, prefix: str = "") -> str:
    """Gated (SiLU) or plain (GELU) MLP."""
    inner = (*(d for d in b.dims(source) if d != "hidden"), "inner")
    if gated:
        gate = b.linear(f"{prefix}gate_proj", source, inner, bias=bias)
        up = b.linear(f"{prefix}up_proj", source, inner, bias=bias)
        gate = b.elementwise(f"{prefix}silu", gate, flops=4.0)
        hidden = b.elementwise(f"{prefix}gate", gate, up, cost_class="gated")
    else:
        hidden = b.linear(f"{prefix}up_proj", source, inner, bias=bias)
        hidden = b.elementwise(f"{prefix}gelu", hidden, flops=12.0)
    return b.linear(f"{prefix}down_proj", hidden, b.dims(source), bias=bias)


def transformer(name: str, p: Mapping[str, int], dtype: str, *, cached: bool) -> Builder:
    """One layer, norms before (decoders) or after (BERT) each half."""
    b = Builder(name, attention_sizes(p) | {"hidden": p["hidden"], "inner": p["inner"]}, dtype)
    x = b.tensor("x", (*TOKENS, "hidden"))
    rms, post = bool(p["gated"]), bool(p["post_norm"])
    source = x if post else b.norm("attention_norm", x, "hidden", rms=rms)
    h = b.elementwise("attention_residual", self_attention(b, source, p, cached=cached), x, cost_class="add")
    if post:
        h = b.norm("attention_norm", h, "hidden", rms=rms)
    source = h if post else b.norm("mlp_norm", h, "hidden", rms=rms)
    y = mlp(b, source, gated=bool(p["gated"]), bias=bool(p["bias"]))
    y = b.elementwise("mlp_residual", y, h, cost_class="add")
    if post:
        b.norm("mlp_norm", y, "hidden", rms=rms)
    return b
