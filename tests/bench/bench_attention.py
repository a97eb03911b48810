"""Fused and unfused attention of the model beside the FlashAttention paper: traffic, time and memory by length.

    FUSETUI_CORPUS=<folder> python tests/bench/bench_attention.py

The paper's table 18 (forward time) and 21 (memory, forward and backward): A100, fp16, batch 16, 8 heads of 64. Its
figure 2 (traffic, forward and backward): 16 heads of 64, batch 64, 1024 tokens. Ours: the forward pass of a plan,
uncalibrated, and traffic counted from the algorithms.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from fusetui.accelerator.attention_traffic import stored_words, tiled_words
from fusetui.accelerator.blocks import build_block
from fusetui.accelerator.constants import default_constants
from fusetui.accelerator.plan import Plan, make_plans
from fusetui.accelerator.presets import load_hardware

SRAM_WORDS = 192 * 1024 // 2  # of an A100 core, fp16


def plans(length: int, *, batch: int, heads: int) -> dict[str, Plan]:
    """Plans of attention over `length` tokens on the A100."""
    hw = load_hardware("A100")
    shapes: dict[str, int | str] = {"batch": batch, "heads": heads, "kv_heads": heads, "head": 64, "causal": 0}
    graph = build_block("attention", shapes | {"sequence": length, "context": length}, "fp16")
    return dict(make_plans(graph, hw, default_constants(hw, "fp16"), "fp16", mode="graph").plans)


def traffic(printed: dict[str, Any]) -> None:
    """Figure 2: ratios of device memory traffic."""
    n, d, heads = 1024, 64, 16 * 64
    tiled = float(tiled_words(n, d, SRAM_WORDS, backward=True))
    stored = float(stored_words(n, d, backward=True))
    scale = 2 * heads / 1e9
    # A pass over the scores reads and writes them; dropout also writes a byte per score, and reads it on the way back.
    dropout, mask = 5.0 * n * n, 4.0 * n * n
    print(f"traffic, {n} tokens, forward and backward (paper: {printed['standard']['hbm_GB']} GB stored,", end=" ")
    ratio = printed["standard"]["hbm_GB"] / printed["flash"]["hbm_GB"]
    print(f"{printed['flash']['hbm_GB']} GB tiled, {ratio:.1f}x)")
    print(f"  tiled, counted from the algorithms          {tiled * scale:6.2f} GB")
    for name, words in (
        ("stored, counted from the algorithms", stored),
        ("stored, with dropout", stored + dropout),
        ("stored, with dropout and a mask", stored + dropout + mask),
    ):
        print(f"  {name:<43} {words * scale:6.2f} GB  {words / tiled:5.1f}x")
    made = plans(n, batch=64, heads=16)
    fused, apart = made["balanced"], made["none"]
    share = apart.totals.dram_bytes / fused.totals.dram_bytes
    reuse = fused.groups[0].reuse_factor
    print(
        f"  plan, forward: {apart.totals.dram_bytes / 1e9:.2f} GB apart, {fused.totals.dram_bytes / 1e9:.2f} fused,",
        end=" ",
    )
    print(f"{share:.1f}x (the shared cache serves keys again); on-chip reuse {reuse:.0f}x")


def by_length(reference: dict[str, Any]) -> None:
    """Tables 18 and 21."""
    print("\nby length: forward ms (paper | ours) and memory MB (paper | ours)")
    print(f"{'N':>6}{'PyTorch':>9}{'none':>8}{'Flash':>9}{'fused':>8}{'ratio':>7}{'ours':>6}", end="")
    print(f"{'PyTorch':>10}{'none':>8}{'Flash':>8}{'fused':>8}")
    times, memory = reference["fwd_ms"], reference["memory_MB"]
    for i, n in enumerate(reference["N"]):
        made = plans(n, batch=16, heads=8)
        none, fused = made["none"].totals, made["balanced"].totals
        their, flash = times["pytorch"][i], times["flash"][i]
        ratio = f"{their / flash:.1f}" if their else "-"
        print(
            f"{n:>6}{their or '-':>9}{none.predicted_ns / 1e6:>8.2f}{flash:>9}{fused.predicted_ns / 1e6:>8.2f}", end=""
        )
        print(f"{ratio:>7}{none.predicted_ns / fused.predicted_ns:>6.1f}", end="")
        print(f"{memory['pytorch'][i] or '-':>10}{none.peak_bytes / 1e6:>8.0f}{memory['flash'][i]:>8}", end="")
        print(f"{fused.peak_bytes / 1e6:>8.0f}")


def growth(reference: dict[str, Any]) -> None:
    """What memory grows by when the length doubles."""
    memory = reference["memory_MB"]
    print("\nmemory on doubling the length, 2048 to 4096:", end=" ")
    at = reference["N"].index(2048)
    small, large = plans(2048, batch=16, heads=8), plans(4096, batch=16, heads=8)
    for paper, policy in (("pytorch", "none"), ("flash", "balanced")):
        ours = large[policy].totals.peak_bytes / small[policy].totals.peak_bytes
        print(f"{paper} {memory[paper][at + 1] / memory[paper][at]:.2f}x, ours ({policy}) {ours:.2f}x", end="; ")
    print()


def main() -> None:
    folder = os.environ.get("FUSETUI_CORPUS")
    if not folder:
        sys.exit("FUSETUI_CORPUS: not set; it must name the folder with the published numbers")
    reference = json.loads((Path(folder) / "reference/model/flashattention.json").read_text())
    traffic(reference["fig2"])
    by_length(reference)
    growth(reference)


if __name__ == "__main__":
    main()
