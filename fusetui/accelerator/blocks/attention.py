"""Attention alone, queries, keys and values given."""

from __future__ import annotations

from collections.abc import Mapping

from fusetui.accelerator.blocks.builder import Builder
from fusetui.accelerator.blocks.parts import attention_core, attention_sizes
from fusetui.accelerator.graph import Graph

TITLE = "scores, softmax and values of multi-head or grouped-query attention"
DEFAULTS: Mapping[str, int] = {
    "batch": 1, "sequence": 1024, "context": 1024, "heads": 32, "kv_heads": 32, "head": 128, "causal": 1,
}  # fmt: skip


def build(p: Mapping[str, int], dtype: str) -> Graph:
    """`causal` hides later keys; it needs as many keys as queries or more."""
    b = Builder("attention", attention_sizes(p), dtype)
    rows = ("batch", "kv_heads", "context", "head")
    q = b.tensor("q", ("batch", "sequence", "kv_heads", "group", "head"))
    attention_core(b, q, b.tensor("k", rows), b.tensor("v", rows), causal=bool(p["causal"]))
    return b.graph()
