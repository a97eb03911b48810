"""Bias, dropout scale, residual and normalisation: the memory-bound tail between two matrix products."""

from __future__ import annotations

from collections.abc import Mapping

from fusetui.accelerator.blocks.builder import Builder
from fusetui.accelerator.graph import Graph

TITLE = "bias, scale, residual, LayerNorm and activation, no matrix product"
DEFAULTS: Mapping[str, int] = {"tokens": 4096, "hidden": 1024}


def build(p: Mapping[str, int], dtype: str) -> Graph:
    """Five vector operators over the same rows."""
    b = Builder("norm-chain", p, dtype)
    x = b.tensor("x", ("tokens", "hidden"))
    h = b.elementwise("bias", x, b.weight("bias.weight", "hidden"))
    h = b.elementwise("scale", h)
    h = b.elementwise("residual", h, b.tensor("skip", ("tokens", "hidden")), cost_class="add")
    h = b.norm("norm", h, "hidden", rms=False)
    b.elementwise("gelu", h, flops=12.0)
    return b.graph()
