"""Predicted fusion against measured runs; needs the reference corpus (FUSETUI_CORPUS), which is not shipped."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
from pathlib import Path

import pytest
from eager_blocks import bert_layer, gpt2_layer

from fusetui.accelerator.blocks.builder import Builder
from fusetui.accelerator.constants import default_constants
from fusetui.accelerator.plan import make_plans
from fusetui.accelerator.presets import load_hardware

CORPUS = os.environ.get("FUSETUI_CORPUS")
pytestmark = pytest.mark.skipif(not CORPUS, reason="FUSETUI_CORPUS is not set")


def reference(name: str) -> object:
    return json.loads((Path(CORPUS or "") / "reference" / "model" / name).read_text())


def test_speedup_of_compiled_models() -> None:
    """torch.compile leaves matrix products to the library: policy conservative. Uncalibrated, nothing fitted."""
    cases = reference("fusion_ground_truth.json")[0]["rows"]  # type: ignore[index]
    h100, a100 = load_hardware("H100"), load_hardware("A100")
    small = dataclasses.replace(a100, name="A100-40GB", dram_bytes=40 * 10**9, dram_bytes_per_s=1.555e12)
    errors = []
    for case in cases:
        hw = h100 if case["device"] == "H100" else small
        graph = bert_layer(case["batch"], 512) if "BERT" in case["model"] else gpt2_layer(case["batch"], 1024)
        plans = make_plans(graph, hw, default_constants(hw, "fp32"), "fp32").plans
        speedup = plans["none"].totals.predicted_ns / plans["conservative"].totals.predicted_ns
        errors.append(abs(speedup / case["speedup"] - 1))
        print(f"{case['model']} x{case['batch']} {case['device']}: {speedup:.3f}, measured {case['speedup']:.3f}")
    print(f"mean {sum(errors) / len(errors):.1%}, max {max(errors):.1%}")
    assert sum(errors) / len(errors) <= 0.05
    assert max(errors) <= 0.12


def test_attention_memory_over_sequence_length() -> None:
    """Measured: doubling the sequence doubles the memory of fused attention and quadruples that of the unfused."""
    table = reference("flashattention.json")
    hw = load_hardware("A100")
    rows = [n for n, pytorch in zip(table["N"], table["memory_MB"]["pytorch"], strict=True) if pytorch and n >= 1024]  # type: ignore[index]
    peaks = {}
    for n in rows:
        b = Builder("attention", {"b": 16, "h": 8, "q": n, "k": n, "d": 64}, "fp16")
        s = b.matmul(
            "scores", b.tensor("qs", ("b", "h", "q", "d")), b.tensor("ks", ("b", "h", "k", "d")), ("b", "h", "q", "k")
        )
        s = b.elementwise("mask", b.elementwise("scale", s), b.tensor("padding", ("b", "k")))
        s = b.reduction("softmax", s, row="k", flops=5.0, cost_class="softmax", online=True)
        b.matmul(
            "values", b.elementwise("dropout", s, flops=4.0), b.tensor("vs", ("b", "h", "k", "d")), ("b", "h", "q", "d")
        )
        plans = make_plans(b.graph(), hw, default_constants(hw, "fp16"), "fp16").plans
        peaks[n] = plans["none"].totals.peak_bytes, plans["balanced"].totals.peak_bytes
    for kind, at in (("pytorch", 0), ("flash", 1)):
        measured = dict(zip(table["N"], table["memory_MB"][kind], strict=True))  # type: ignore[index]
        for small, large in itertools.pairwise(rows):
            growth = peaks[large][at] / peaks[small][at]
            assert growth == pytest.approx(measured[large] / measured[small], rel=0.05)
