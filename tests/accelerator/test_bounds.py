"""Traffic bounds and tilings against exhaustive search, and systolic cycles worked by hand."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusetui.accelerator.bounds import best_tiling, matmul_lower_bound_words
from fusetui.accelerator.errors import AcceleratorError
from fusetui.accelerator.systolic import streamed_cycles, unrolled_cycles, weight_stationary_cycles

CORPUS = os.environ.get("FUSETUI_CORPUS")
needs_corpus = pytest.mark.skipif(not CORPUS, reason="FUSETUI_CORPUS is not set")


def reference(name: str) -> dict[str, list[dict[str, object]]]:
    assert CORPUS
    return json.loads((Path(CORPUS) / "reference" / "model" / name).read_text())


def exhaustive(m: int, n: int, k: int, words: int) -> int:
    best = math.inf
    for tm in range(1, m + 1):
        for tn in range(1, n + 1):
            for tk in range(1, k + 1):
                if tm * tk + tk * tn + tm * tn > words:
                    continue
                cm, cn, ck = -(-m // tm), -(-n // tn), -(-k // tk)
                output_stationary = m * k * cn + k * n * cm + m * n
                weight_stationary = k * n + m * k * cn + m * n * (2 * ck - 1)
                input_stationary = m * k + k * n * cm + m * n * (2 * ck - 1)
                best = min(best, output_stationary, weight_stationary, input_stationary)
    return int(best)


def test_bound_of_a_cube_by_hand() -> None:
    # 2 * 64^3 / sqrt(256) - 2 * 256 = 32768 - 512; every operand once would be 3 * 4096.
    assert matmul_lower_bound_words(64, 64, 64, 256) == 32256
    assert matmul_lower_bound_words(64, 64, 64, 1 << 20) == 3 * 4096


@settings(max_examples=60, deadline=None)
@given(*[st.integers(1, 12)] * 3, st.integers(3, 200))
def test_best_tiling_is_that_of_exhaustive_search(m: int, n: int, k: int, words: int) -> None:
    assert best_tiling(m, n, k, words)[0] == exhaustive(m, n, k, words)


@settings(max_examples=60, deadline=None)
@given(*[st.integers(1, 5000)] * 3, st.integers(3, 1 << 20), st.integers(1, 1 << 20))
def test_best_tiling_fits_meets_the_bound_and_never_grows_with_memory(
    m: int, n: int, k: int, words: int, more: int
) -> None:
    traffic, _, (tm, tn, tk) = best_tiling(m, n, k, words)
    assert tm * tk + tk * tn + tm * tn <= words
    assert traffic >= matmul_lower_bound_words(m, n, k, words) * (1 - 1e-12)
    assert best_tiling(m, n, k, words + more)[0] <= traffic


def test_impossible_tilings_are_named() -> None:
    with pytest.raises(AcceleratorError, match="0x4x4"):
        best_tiling(0, 4, 4, 100)
    with pytest.raises(AcceleratorError, match="2 words"):
        best_tiling(4, 4, 4, 2)


def test_weight_stationary_cycles_by_hand() -> None:
    # 2 x 3 folds of a 4x8 array, 10 rows: 6 * (8 + 8 + 10 - 2) - 1.
    assert weight_stationary_cycles(10, 24, 8, 4, 8) == 6 * 24 - 1


def test_streaming_by_hand() -> None:
    loops = {"K": 64, "C": 3, "OX": 10}
    assert unrolled_cycles(loops, {"K": 32, "C": 32}) == 2 * 1 * 10
    # 80 cycles to load the input, then the weights (200) outlast the array (150).
    assert streamed_cycles(150, 640, 1600, 400, bytes_per_cycle=8, prefetches=False) == 280
    assert streamed_cycles(400, 640, 1600, 400, bytes_per_cycle=8, prefetches=True) == 400


@needs_corpus
def test_all_reference_points_are_met() -> None:
    rows = reference("gemm_dram_bounds.json")["rows"]
    assert len(rows) == 42
    for r in rows:
        m, n, k, s = (int(r[name]) for name in ("M", "N", "K", "S_words"))
        traffic = best_tiling(m, n, k, s)[0]
        assert round(float(matmul_lower_bound_words(m, n, k, s))) == r["lower_bound_words"]
        assert r["lower_bound_words"] <= traffic <= 1.05 * r["best_tiled_words"]


@needs_corpus
def test_scale_sim_cycles_are_exact() -> None:
    side = {"google_tpu_v1_ws": 256, "ws32x32_2MB_bw8": 32}
    rows = reference("scalesim_runs.json")["rows"]
    assert len(rows) == 17
    for r in rows:
        array = side[str(r["arch"])]
        cycles = weight_stationary_cycles(*(int(r[name]) for name in ("M", "N", "K")), array, array)
        assert cycles == r["total_cycles"] - r["stall_cycles"]


@needs_corpus
def test_zigzag_latency_is_near() -> None:
    unrolled = {"tpu_like": {"K": 32, "C": 32}, "ascend_like": {"K": 16, "C": 16, "OX": 2, "OY": 2}}
    errors = []
    for r in reference("zigzag_runs.json")["rows"]:
        loops = dict(r["loops"])
        stride = loops.pop("stride")
        high, wide = ((loops[o] - 1) * stride + loops[f] for o, f in (("OY", "FY"), ("OX", "FX")))
        weights = loops["K"] * loops["C"] * loops["FY"] * loops["FX"]
        outputs = loops["B"] * loops["K"] * loops["OY"] * loops["OX"]
        cycles = streamed_cycles(
            unrolled_cycles(loops, unrolled[r["arch"]]),
            loops["B"] * loops["C"] * high * wide,
            weights,
            outputs,
            bytes_per_cycle=8,
            prefetches=r["arch"] == "ascend_like",
        )
        errors.append(float(cycles) / r["latency_cycles"] - 1)
    assert np.abs(errors).max() <= 0.20
    assert np.median(np.abs(errors)) <= 0.10
