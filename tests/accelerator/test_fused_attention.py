"""Attention in one kernel: taken in decode, limited by the chip, and the ratios that were published."""

from __future__ import annotations

import dataclasses

import pytest

from fusetui.accelerator.attention_traffic import stored_words, tiled_words
from fusetui.accelerator.blocks import build_block
from fusetui.accelerator.constants import default_constants
from fusetui.accelerator.plan import Plan, make_plans, price_graph
from fusetui.accelerator.presets import load_hardware

CORE = {"scores", "softmax", "values"}


def plans(device: str, name: str, shapes: dict[str, int | str], mode: str = "eager") -> dict[str, Plan]:
    hw = load_hardware(device)
    graph = build_block(name, shapes, "bf16")
    return dict(make_plans(graph, hw, default_constants(hw, "bf16"), "bf16", mode=mode).plans)  # type: ignore[arg-type]


@pytest.mark.parametrize("device", ["H100", "A100", "L4", "B200", "TPU-v5e"])
@pytest.mark.parametrize("context", [128, 1024, 8192, 32768])
def test_decode_attends_in_one_kernel_at_any_context(device: str, context: int) -> None:
    for batch in (1, 32):
        made = plans(device, "transformer-decode", {"model": "llama-3-8b", "batch": batch, "context": context}, "graph")
        holding = [g for g in made["balanced"].groups if CORE & set(g.ops)]
        assert len(holding) == 1
        assert holding[0].predicted_ns < holding[0].unfused_ns
        cache = 2 * batch * 8 * context * 128 * 2
        assert cache <= holding[0].dram_bytes < 1.1 * cache


def test_measured_attention_is_not_second_guessed() -> None:
    hw = load_hardware("H100")
    graph = build_block("transformer-decode", {"model": "llama-3-8b", "batch": 1, "context": 1024}, "bf16")
    default = default_constants(hw, "bf16")
    measured = dataclasses.replace(default, fitted=("attention",), attention_start_ns=40_000.0)

    def least(constants: object) -> float:
        priced = price_graph(graph, hw, constants, "bf16")  # type: ignore[arg-type]
        return min(p.time_ns for g, p in zip(priced.groups, priced.prices, strict=True) if g.pattern == "attention")

    assert least(default) < 10_000
    assert least(measured) > 40_000


def test_tiles_shrink_until_they_fit() -> None:
    hw = load_hardware("L4")
    graph = build_block("attention", {"sequence": 2048, "context": 2048, "head": 128}, "bf16")
    priced = price_graph(graph, hw, default_constants(hw, "bf16"), "bf16")
    fused = [p for g, p in zip(priced.groups, priced.prices, strict=True) if g.pattern == "attention"]
    assert fused
    assert all(p.sram_bytes <= hw.sram_bytes_per_core for p in fused)
    assert all(p.tile is not None and p.tile.m * p.tile.n < 128 * 128 for p in fused)


def test_published_traffic_counts_dropout() -> None:
    # 1024 tokens, 16 heads of 64, 192 KB on chip, forward and backward: printed as 40.3 GB over 4.4 GB, 9.2x.
    tiled = float(tiled_words(1024, 64, 192 * 1024 // 2, backward=True))
    stored = float(stored_words(1024, 64, backward=True))
    dropout = 5.0 * 1024 * 1024  # scores in and out both ways, and a byte of mask out and in
    assert stored / tiled == pytest.approx(6.2, rel=0.01)
    assert (stored + dropout) / tiled == pytest.approx(9.2, rel=0.05)
    assert (stored + dropout) * 2 * 1024 / 1e9 == pytest.approx(40.3, rel=0.12)


def test_reuse_on_chip_is_what_the_scores_would_have_moved() -> None:
    made = plans("A100", "attention", {"sequence": 4096, "context": 4096, "batch": 1, "causal": 0})
    fused, apart = made["balanced"].groups[0], made["none"].totals
    ratio = apart.dram_bytes / fused.dram_bytes
    assert fused.reuse_factor is not None
    assert ratio > 10
    # Kept on chip: every pass over the scores, and keys and values that tiles of queries load again.
    assert 0.5 * ratio < fused.reuse_factor < 4 * ratio


def test_memory_doubles_fused_and_quadruples_apart() -> None:
    # Published for forward and backward, 2048 to 4096 tokens: 3.86x stored, 2.00x tiled.
    shapes: dict[str, int | str] = {"batch": 16, "heads": 8, "kv_heads": 8, "head": 64, "causal": 0}
    small, large = (plans("A100", "attention", shapes | {"sequence": n, "context": n}) for n in (2048, 4096))
    growth = {name: large[name].totals.peak_bytes / small[name].totals.peak_bytes for name in ("none", "balanced")}
    assert growth["none"] == pytest.approx(3.86, rel=0.03)
    assert growth["balanced"] == pytest.approx(2.0, rel=0.01)
