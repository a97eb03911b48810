"""The MLP of a transformer layer."""

from __future__ import annotations

from collections.abc import Mapping

from fusetui.accelerator.blocks.builder import Builder
from fusetui.accelerator.blocks.parts import mlp
from fusetui.accelerator.graph import Graph

TITLE = "gated (SiLU) or plain (GELU) MLP"
DEFAULTS: Mapping[str, int] = {"tokens": 1024, "hidden": 4096, "inner": 11008, "gated": 1, "bias": 0}


def build(p: Mapping[str, int], dtype: str) -> Graph:
    """Two or three matrix products and what lies between."""
    b = Builder("mlp", {"tokens": p["tokens"], "hidden": p["hidden"], "inner": p["inner"]}, dtype)
    mlp(b, b.tensor("x", ("tokens", "hidden")), gated=bool(p["gated"]), bias=bool(p["bias"]))
    return b.graph()
