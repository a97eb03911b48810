"""One transformer layer over a whole prompt."""

from __future__ import annotations

from collections.abc import Mapping

from fusetui.accelerator.blocks.models import MODELS
from fusetui.accelerator.blocks.parts import transformer
from fusetui.accelerator.graph import Graph

TITLE = "transformer layer, prefill (grouped-query or multi-head attention, gated or plain MLP)"
DEFAULTS: Mapping[str, int] = {"batch": 1, "sequence": 1024, **MODELS["llama-7b"]}


def build(p: Mapping[str, int], dtype: str) -> Graph:
    """Every query sees every key of its sequence."""
    return transformer("transformer-prefill", {**p, "context": p["sequence"]}, dtype, cached=False).graph()
