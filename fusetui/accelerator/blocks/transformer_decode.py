"""One transformer layer for the next token of every sequence of a batch."""

from __future__ import annotations

from collections.abc import Mapping

from fusetui.accelerator.blocks.models import MODELS
from fusetui.accelerator.blocks.parts import transformer
from fusetui.accelerator.graph import Graph

TITLE = "transformer layer, decode: one token per sequence against a KV cache"
DEFAULTS: Mapping[str, int] = {"batch": 8, "context": 2048, **MODELS["llama-7b"]}


def build(p: Mapping[str, int], dtype: str) -> Graph:
    """Keys and values come from the cache; the new ones are appended."""
    return transformer("transformer-decode", {**p, "sequence": 1}, dtype, cached=True).graph()
