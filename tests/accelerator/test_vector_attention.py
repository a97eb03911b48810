"""Prices of vector operators and fused attention, worked by hand where one term rules."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusetui.accelerator import bottleneck
from fusetui.accelerator.attention import attention_work, price_attention, unfused_attention_bytes
from fusetui.accelerator.constants import default_constants
from fusetui.accelerator.errors import AcceleratorError
from fusetui.accelerator.presets import load_hardware
from fusetui.accelerator.vector import price_vectors

A100 = load_hardware("A100")
H100 = load_hardware("H100")
FP16 = default_constants(A100, "fp16")


def test_a_large_addition_runs_at_its_share_of_the_bandwidth() -> None:
    p = price_vectors(A100, FP16, 2e9, 1e9, "add")
    assert p.time_ns[0] == pytest.approx(FP16.vector_start_ns + 3e9 / (2.039e12 * FP16.vector_eta["add"]) * 1e9)
    assert (p.dram_bytes[0], bottleneck.NAMES[p.bottleneck[0]]) == (3e9, "dram")


def test_a_tiny_operator_is_all_start() -> None:
    p = price_vectors(A100, FP16, 100, 100, "elementwise")
    assert bottleneck.NAMES[p.bottleneck[0]] == "launch"
    assert p.time_ns[0] == pytest.approx(FP16.vector_start_ns, rel=0.01)


def test_rows_come_in_waves() -> None:
    # Two 1024-thread rows per core: 216 rows fill the A100 once, 217 start a second wave.
    hot = [price_vectors(A100, FP16, r * 8192, r * 8192, "norm", rows=r, hot_bytes=1e12) for r in (8, 216, 217)]
    few, full, next_wave = (float(p.time_ns[0] - FP16.vector_start_ns) for p in hot)
    wave = full - FP16.vector_block_ns
    assert wave == pytest.approx(2 * 216 * 8192 / (2.039e12 * FP16.vector_hot_eta["norm"]) * 1e9)
    # A block that runs alone takes nine tenths of the time of one in a full wave.
    assert few == pytest.approx(wave * (0.9 + 0.1 * 8 / 216) + FP16.vector_block_ns * 8 / 216)
    assert next_wave == pytest.approx(wave * (1 + 0.9 + 0.1 / 216) + FP16.vector_block_ns * 217 / 216)
    assert [int(p.waves[0]) for p in hot] == [1, 1, 2]


def test_rows_too_long_for_the_chip_are_read_twice() -> None:
    short, long = (price_vectors(A100, FP16, 1e9, 1e9, "layernorm", rows=1e9 / b) for b in (1024 * 4, 16384 * 4))
    assert short.dram_bytes[0] == pytest.approx(2e9, rel=1e-3)
    assert 2.9e9 < long.dram_bytes[0] <= 3e9


def test_softmax_keeps_short_rows_in_registers_and_reads_long_ones_three_times() -> None:
    short, fits, long = (
        price_vectors(A100, FP16, 1e9, 1e9, "softmax", rows=1e9 / b).dram_bytes[0] for b in (4096, 8192, 131072)
    )
    assert short == 2e9
    assert fits == pytest.approx(2e9, rel=1e-3)
    assert 3.9e9 < long <= 4e9


def test_rows_that_do_not_fill_their_threads_take_longer() -> None:
    # 128 threads of 16 bytes take a row of 2048 bytes at once, one of 3072 in two rounds, half of the second idle.
    even, odd = (price_vectors(A100, FP16, 1e9, 1e9, "layernorm", rows=1e9 / b) for b in (2048, 3072))
    blocks = 1e9 / 108 / 16 * FP16.vector_block_ns
    even_ns, odd_ns = (float(p.time_ns[0]) - FP16.vector_start_ns - blocks / b for p, b in ((even, 2048), (odd, 3072)))
    assert odd_ns / even_ns == pytest.approx(1 + 0.25 * (2 * 128 / 192 - 1), rel=1e-3)


def test_hot_operands_come_from_the_cache() -> None:
    cold, hot = (price_vectors(H100, FP16, 5e6, 5e6, "add", hot_bytes=h) for h in (0, 1e7))
    assert hot.time_ns[0] < cold.time_ns[0]
    assert (cold.dram_bytes[0], hot.dram_bytes[0]) == (1e7, 0)


def test_registers_cost_occupancy_and_then_spill() -> None:
    p = price_vectors(A100, FP16, 1e9, 1e9, "elementwise", registers=[32, 128, 255, 300])
    assert p.occupancy.tolist() == [1.0, 0.25, 0.125, 0.125]
    assert (np.diff(p.time_ns) > 0).all()
    assert p.spill_bytes[:3].tolist() == [0, 0, 0]
    assert p.spill_bytes[3] > 0
    # A public kernel at 255 registers and an eighth of the threads reached 6.9 % of the bandwidth.
    share = p.time_ns[0] / p.time_ns[2] * FP16.vector_eta["elementwise"]
    assert 0.04 < share < 0.08


def test_unknown_classes_and_negative_bytes() -> None:
    with pytest.raises(AcceleratorError, match="class: spin is not known; one of copy, add"):
        price_vectors(A100, FP16, 1, 1, ["add", "spin"])
    with pytest.raises(AcceleratorError, match="bytes"):
        price_vectors(A100, FP16, -1, 1, "add")


def test_prefill_is_compute_and_decode_is_memory() -> None:
    c = default_constants(H100, "bf16")
    prefill = price_attention(H100, c, 4, 32, 8, 8192, 8192, 128, dtype="bf16")
    flops = 4 * 4 * 32 * 128 * 8192**2 / 2
    assert prefill.flops[0] == flops
    assert bottleneck.NAMES[prefill.bottleneck[0]] == "compute"
    assert prefill.time_ns[0] > flops / 989e12 * 1e9
    decode = price_attention(H100, c, 64, 32, 8, 1, 8192, 128, dtype="bf16")
    cache = 2 * 64 * 8 * 8192 * 128 * 2
    assert bottleneck.NAMES[decode.bottleneck[0]] == "dram"
    assert cache <= decode.dram_bytes[0] <= 1.01 * cache


def test_few_long_sequences_split_their_keys() -> None:
    c = default_constants(H100, "bf16")
    p = price_attention(H100, c, [1, 64], 32, 8, 1, 32768, 128, dtype="bf16")
    assert p.split_kv.tolist() == [16, 1]


def test_packed_heads_fill_the_tile_that_a_few_queries_leave_empty() -> None:
    packed = dataclasses.replace(default_constants(H100, "bf16"), attention_packed=True)
    apart = dataclasses.replace(packed, attention_packed=False)
    shape = (64, 64, 1, 16, 16, 128)
    one, other = (attention_work(H100, *shape, "bf16", 1, packed=p) for p in (True, False))
    # 64 heads of 16 queries: eight tiles of 128 rows, or 64 tiles of which an eighth is used.
    assert (one.steps[0], other.steps[0]) == (64 * 8, 64 * 64)
    fast, slow = (price_attention(H100, c, *shape, dtype="bf16").time_ns[0] for c in (packed, apart))
    assert fast < slow / 2
    decode = [price_attention(H100, c, 8, 32, 8, 1, 4096, 128, dtype="bf16").time_ns[0] for c in (packed, apart)]
    assert decode[0] == decode[1]


def test_causal_attention_writes_its_new_keys() -> None:
    c = default_constants(H100, "bf16")
    none = dataclasses.replace(c, attention_token_ns=0.0)
    for causal, tokens in ((1, 16 * 512), (0, 0)):
        with_cache, without = (
            price_attention(H100, k, 16, 8, 8, 512, 512, 64, dtype="bf16", causal=causal).time_ns[0] for k in (c, none)
        )
        assert with_cache - without == pytest.approx(c.attention_token_ns * tokens / 132)


def test_fused_attention_moves_linear_and_unfused_quadratic_bytes() -> None:
    c = default_constants(A100, "fp16")
    n = np.array([1024, 2048, 4096, 8192])
    fused = price_attention(A100, c, 16, 8, 8, n, n, 64, dtype="fp16", causal=0).dram_bytes
    unfused = unfused_attention_bytes(16, 8, 8, n, n, 64, "fp16")
    assert np.allclose(np.diff(np.log2(fused)), 1.0)
    assert (np.diff(np.log2(unfused)) > 1.9).all()
    assert fused[0] == 16 * 8 * 64 * 1024 * 4 * 2
    assert unfused[0] == fused[0] + 16 * 8 * 1024**2 * 4 * 2


@pytest.mark.parametrize(
    ("shape", "problem"),
    [
        ((1, 8, 3, 16, 16, 64), "multiple"),
        ((1, 8, 8, 32, 16, 64), "q_len <= kv_len"),
        ((0, 8, 8, 1, 1, 64), "batch = 0"),
    ],
)
def test_impossible_attention_is_named(shape: tuple[int, ...], problem: str) -> None:
    b, h, kv, sq, sk, d = shape
    with pytest.raises(AcceleratorError, match=problem):
        price_attention(A100, FP16, b, h, kv, sq, sk, d, dtype="fp16")


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 64), st.sampled_from([1, 2, 8]), st.integers(0, 12), st.integers(1, 8192), st.floats(1.0, 8.0))
def test_more_bandwidth_never_takes_longer(batch: int, group: int, query: int, keys: int, factor: float) -> None:
    better = dataclasses.replace(H100, dram_bytes_per_s=H100.dram_bytes_per_s * factor)
    c = default_constants(H100, "bf16")
    q_len = min(1 << query, keys)
    slow, fast = (
        price_attention(hw, c, batch, 8 * group, 8, q_len, keys, 128, dtype="bf16").time_ns[0] for hw in (H100, better)
    )
    assert fast <= slow
    rows = batch * q_len
    slow, fast = (price_vectors(hw, c, rows * 512, rows * 512, "norm", rows=rows).time_ns[0] for hw in (H100, better))
    assert fast <= slow
