"""Prices of matrix products: hand-worked tiles, bounds, and what more hardware may never do."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusetui.accelerator import bottleneck
from fusetui.accelerator.bounds import matmul_lower_bound_words
from fusetui.accelerator.constants import default_constants
from fusetui.accelerator.errors import AcceleratorError, HardwareError
from fusetui.accelerator.grid import build_grid
from fusetui.accelerator.hardware import Hardware, LaunchCosts
from fusetui.accelerator.matmul import matmul_terms, pareto, price_matmuls, products
from fusetui.accelerator.presets import hardware_names, load_hardware

SHAPES = st.tuples(*[st.integers(1, 20000)] * 3)


def toy(**changes: object) -> Hardware:
    """Ten cores, one 32x32x32 unit each at 65.536 TFLOP/s together; no shared cache."""
    base = Hardware(
        name="toy",
        title="toy",
        kind="systolic",
        cores=10,
        clock_hz=1e9,
        matrix_flops={"fp16": 65.536e12},
        vector_flops={"fp32": 1e12},
        sram_bytes_per_core=1 << 20,
        dram_bytes=1 << 34,
        dram_bytes_per_s=1e12,
        mma={"fp16": (32, 32, 32)},
        launch=LaunchCosts(0.0, 0.0, 0.0, 0.0),
    )
    return dataclasses.replace(base, **changes)


def test_compute_time_counts_whole_waves_of_whole_tiles() -> None:
    hw = toy(dram_bytes_per_s=1e18)
    perfect = dataclasses.replace(
        default_constants(hw, "fp16"),
        start_ns=0.0,
        fill_ns=0.0,
        eta_matrix=1.0,
        eta_dram=1.0,
        overlap=64.0,
        split_ns=1e9,
    )
    # 10 x 1 tiles of 128x256 fill the cores once: 128*256*1024*2 FLOP at 6.5536 TFLOP/s of one core = 10.24 us.
    exact = price_matmuls(hw, perfect, 1, 1280, 256, 1024, dtype="fp16")
    assert exact.time_ns[0] == pytest.approx(10240, rel=1e-6)
    # One row more starts an eleventh row of tiles somewhere: never cheaper than the padded work spread evenly.
    ragged = price_matmuls(hw, perfect, 1, 1281, 256, 1024, dtype="fp16")
    assert ragged.time_ns[0] >= 10240 * 41 / 40
    assert exact.flops[0] == 2 * 1280 * 256 * 1024


def test_decode_is_limited_by_memory_and_reads_the_weights_once() -> None:
    hw = load_hardware("H100")
    p = price_matmuls(hw, default_constants(hw, "bf16"), 1, 1, 8192, 8192, dtype="bf16")
    weights = 8192 * 8192 * 2
    assert bottleneck.NAMES[p.bottleneck[0]] == "dram"
    assert weights <= p.dram_bytes[0] <= 1.001 * weights
    assert p.time_ns[0] > weights / hw.dram_bytes_per_s * 1e9


def test_large_square_is_limited_by_the_matrix_units() -> None:
    hw = load_hardware("A100")
    p = price_matmuls(hw, default_constants(hw, "fp16"), 1, 8192, 8192, 8192, dtype="fp16")
    assert bottleneck.NAMES[p.bottleneck[0]] == "compute"
    assert 2 * 8192**3 / hw.rate("fp16") * 1e9 < p.time_ns[0] < 1.5 * 2 * 8192**3 / hw.rate("fp16") * 1e9


def test_few_tiles_split_the_contraction() -> None:
    hw = load_hardware("A100")
    p = price_matmuls(hw, default_constants(hw, "fp16"), 1, 64, 64, 65536, dtype="fp16")
    assert p.split_k[0] > 1


def test_one_call_prices_many_as_many_calls_price_one() -> None:
    hw = load_hardware("L4")
    c = default_constants(hw, "fp16")
    m = np.arange(1, 2000, 7)
    together = price_matmuls(hw, c, 1, m, 4096, 1024, dtype="fp16")
    apart = [price_matmuls(hw, c, 1, int(x), 4096, 1024, dtype="fp16").time_ns[0] for x in m[::40]]
    assert together.time_ns[::40].tolist() == apart


def test_registers_of_fused_neighbours_spill_or_shrink_the_tile() -> None:
    hw = load_hardware("A100")
    c = default_constants(hw, "fp16")
    plain = price_matmuls(hw, c, 1, 4096, 4096, 4096, dtype="fp16")
    loaded = price_matmuls(hw, c, 1, 4096, 4096, 4096, dtype="fp16", extra_registers=[60, 400])
    assert plain.spill_bytes[0] == 0
    assert loaded.time_ns[1] > loaded.time_ns[0] >= plain.time_ns[0]
    assert loaded.spill_bytes[1] > 0


def test_no_room_means_no_tile() -> None:
    hw = load_hardware("A100")
    p = price_matmuls(hw, default_constants(hw, "fp16"), 1, 512, 512, 512, dtype="fp16", reserved_sram=[0, 1 << 30])
    assert np.isfinite(p.time_ns[0])
    assert np.isinf(p.time_ns[1])
    rows = price_matmuls(hw, default_constants(hw, "fp16"), 1, 512, [256, 4096], 512, dtype="fp16", full_rows=1)
    assert rows.tile_n[0] >= 256
    assert np.isinf(rows.time_ns[1])


@pytest.mark.parametrize("bad", [(0, 8, 8), (8, -1, 8), (8, 8, float("nan")), (float("inf"), 8, 8)])
def test_nonsense_shapes_are_named(bad: tuple[float, float, float]) -> None:
    hw = load_hardware("A100")
    with pytest.raises(AcceleratorError, match=r"shape: [mnk] = "):
        price_matmuls(hw, default_constants(hw, "fp16"), 1, *bad, dtype="fp16")


def test_a_type_without_a_unit_is_named() -> None:
    hw = toy()
    with pytest.raises(HardwareError, match="hardware toy, key mma: no value for 'fp64'"):
        price_matmuls(hw, default_constants(hw, "fp64"), 1, 8, 8, 8, dtype="fp64")


@settings(max_examples=40, deadline=None)
@given(shape=SHAPES, name=st.sampled_from([n for n in hardware_names() if n != "host"]))
def test_traffic_is_never_below_the_bound(shape: tuple[int, int, int], name: str) -> None:
    hw = load_hardware(name)
    p = price_matmuls(hw, default_constants(hw, "bf16"), 1, *shape, dtype="bf16")
    fast = (hw.l2_bytes + hw.cores * (hw.sram_bytes_per_core + 4 * hw.registers_per_core)) / 2
    assert p.dram_bytes[0] >= 2 * matmul_lower_bound_words(*shape, fast) * (1 - 1e-12)
    assert 0 < p.occupancy[0] <= 1
    assert p.sram_bytes[0] <= hw.sram_bytes_per_core


@settings(max_examples=40, deadline=None)
@given(shape=SHAPES, name=st.sampled_from(["A100", "Wormhole", "TPU-v5e", "MI300X"]), factor=st.floats(1, 8))
def test_more_hardware_never_takes_longer(shape: tuple[int, int, int], name: str, factor: float) -> None:
    hw = load_hardware(name)
    c = default_constants(hw, "bf16")
    before = price_matmuls(hw, c, 1, *shape, dtype="bf16").time_ns[0]
    for better in (
        {"dram_bytes_per_s": hw.dram_bytes_per_s * factor},
        {"sram_bytes_per_core": int(hw.sram_bytes_per_core * factor)},
        {"l2_bytes_per_s": hw.l2_bytes_per_s * factor},
        {"matrix_flops": {k: v * factor for k, v in hw.matrix_flops.items()}},
    ):
        after = price_matmuls(dataclasses.replace(hw, **better), c, 1, *shape, dtype="bf16").time_ns[0]
        assert after <= before * (1 + 1e-9), better


@settings(max_examples=25, deadline=None)
@given(shape=SHAPES, name=st.sampled_from(["A100", "Wormhole", "TPU-v5e"]), factor=st.floats(1, 8))
def test_more_sram_never_raises_the_least_traffic(shape: tuple[int, int, int], name: str, factor: float) -> None:
    hw = load_hardware(name)
    c = default_constants(hw, "bf16")
    bigger = dataclasses.replace(hw, sram_bytes_per_core=int(hw.sram_bytes_per_core * factor))
    least, then = (pareto(h, c, 1, *shape, dtype="bf16").dram_bytes.min() for h in (hw, bigger))
    assert then <= least * (1 + 1e-9)


@settings(max_examples=40, deadline=None)
@given(shape=SHAPES, name=st.sampled_from(["A100", "MI300X", "Wormhole", "TPU-v5e", "Gaudi3"]))
def test_the_tile_moves_least_of_those_as_fast_as_can_be_told(shape: tuple[int, int, int], name: str) -> None:
    hw = load_hardware(name)
    c = default_constants(hw, "bf16")
    chosen = price_matmuls(hw, c, 1, *shape, dtype="bf16")
    q = products(1, *shape)
    grid = build_grid(hw, q, "bf16")
    time = matmul_terms(hw, c, grid).total[0] * 1e9
    traffic, near = np.broadcast_to(grid.dram_bytes, (1, time.size))[0], time <= time.min() * 1.01
    assert chosen.time_ns[0] == time.min()
    assert chosen.dram_bytes[0] == traffic[near].min()
    t = grid.tiles
    described = (t.m == chosen.tile_m[0]) & (t.n == chosen.tile_n[0]) & (t.k == chosen.tile_k[0])
    described &= t.split == chosen.split_k[0]
    assert time[described] == time[near & (traffic == traffic[near].min())].min()


def test_an_operand_that_fits_beside_the_tile_is_read_once() -> None:
    # 1 MiB: the 512 x 768 operand takes 0.75 MiB of it, at 2 bytes; 256 x 256 accumulators would need all the rest.
    one = toy(cores=1, mma={"fp16": (1, 32, 32)}, dram_bytes_per_s=1e9)
    c = default_constants(one, "fp16")
    once = 2 * (512 * 768 + 768 * 2304 + 512 * 2304)
    assert price_matmuls(one, c, 1, 512, 2304, 768, dtype="fp16").dram_bytes[0] == once
    # Half of it: 256 rows of the left operand at a time, and the right one read for both.
    half = dataclasses.replace(one, sram_bytes_per_core=1 << 19)
    twice = once + 2 * 768 * 2304
    assert once < price_matmuls(half, c, 1, 512, 2304, 768, dtype="fp16").dram_bytes[0] <= twice


def test_pareto_holds_the_fastest_and_nothing_beaten() -> None:
    hw = load_hardware("H100")
    c = default_constants(hw, "bf16")
    front = pareto(hw, c, 1, 4096, 4096, 4096, dtype="bf16")
    assert front.time_ns[0] == price_matmuls(hw, c, 1, 4096, 4096, 4096, dtype="bf16").time_ns[0]
    keys = np.stack([front.time_ns, front.sram_bytes, front.dram_bytes])
    for at in range(len(front.time_ns)):
        others = np.delete(keys, at, axis=1)
        assert not (others <= keys[:, [at]]).all(axis=0).any()


def test_narrow_products_pay_for_converting_their_activations() -> None:
    h100 = load_hardware("H100")
    c = default_constants(h100, "fp8")
    free = dataclasses.replace(c, cast_start_ns=0.0, cast_row_ns=0.0, cast_eta=1e12)
    m, n, k = 66000, 512, 8192
    paid, unpaid = (price_matmuls(h100, x, 1, m, n, k, dtype="fp8").time_ns[0] for x in (c, free))
    # Far beyond the cache: 2 bytes read and 1 written per value, and 500 rows on each of 132 cores.
    moved = 3 * m * k / (3.352e12 * c.cast_eta) * 1e9
    assert paid - unpaid == pytest.approx(c.cast_start_ns + 500 * c.cast_row_ns + moved, rel=1e-6)
    wide = [price_matmuls(h100, x, 1, m, n, k, dtype="bf16").time_ns[0] for x in (c, free)]
    assert wide[0] == wide[1]
