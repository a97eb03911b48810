"""Published shapes of real models, by the parameter names the blocks take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final


def _decoder(hidden: int, heads: int, kv_heads: int, inner: int, head: int = 128) -> dict[str, int]:
    return {
        "hidden": hidden,
        "heads": heads,
        "kv_heads": kv_heads,
        "head": head,
        "inner": inner,
        "gated": 1,
        "rope": 1,
        "causal": 1,
        "bias": 0,
        "post_norm": 0,
    }


def _classic(hidden: int, heads: int, post_norm: int) -> dict[str, int]:
    return {
        "hidden": hidden,
        "heads": heads,
        "kv_heads": heads,
        "head": hidden // heads,
        "inner": 4 * hidden,
        "gated": 0,
        "rope": 0,
        "causal": 1 - post_norm,
        "bias": 1,
        "post_norm": post_norm,
    }


MODELS: Final[Mapping[str, Mapping[str, int]]] = {
    "bert-base": _classic(768, 12, 1),
    "bert-large": _classic(1024, 16, 1),
    "gpt2": _classic(768, 12, 0),
    "gpt2-large": _classic(1280, 20, 0),
    "gpt3-175b": _classic(12288, 96, 0),
    "llama-7b": _decoder(4096, 32, 32, 11008),
    "llama-13b": _decoder(5120, 40, 40, 13824),
    "llama-70b": _decoder(8192, 64, 8, 28672),
    "llama-3-8b": _decoder(4096, 32, 8, 14336),
    "mistral-7b": _decoder(4096, 32, 8, 14336),
    "qwen2-7b": _decoder(3584, 28, 4, 18944),
    "mixtral-8x7b": _decoder(4096, 32, 8, 14336) | {"experts": 8, "chosen": 2},
}
