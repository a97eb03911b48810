"""What every tile of every matrix product asks of the device: work, traffic and registers, before any constant.

One numpy enumeration over (products, tiles); time comes from it in `matmul.py` with the constants of a device.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from fusetui.accelerator.bounds import matmul_lower_bound_words
from fusetui.accelerator.hardware import Hardware, dtype_bytes
from fusetui.accelerator.tiles import ACCUMULATOR_BYTES, Tiles, candidate_tiles, pipeline

Floats = npt.NDArray[np.float64]

_FEED: Final = 12.0  # operand feed of a matrix unit: utilisation 1 / (1 + 12 (tm + tn) / (tm tn))
_RESIDENT: Final = 0.7  # share of the shared cache that one operand may fill and still stay
_HOT: Final = 0.9
_KEPT_DOUBLINGS: Final = 12  # panels of a tile's side that one core keeps: 1, 2, 4, ...
_LEAST_STEPS: Final = 4  # of K, in one part of a split
_CAST_BYTES: Final = 2.0  # activations arrive in 16 bits; narrower products start with a pass that scales and converts


@dataclass(frozen=True, slots=True)
class Products:
    """Matrix products, every array (Q, 1). Bytes and registers are what fused neighbours add."""

    batch: Floats
    m: Floats
    n: Floats
    k: Floats
    reserved_sram: Floats
    extra_registers: Floats
    extra_bytes: Floats
    epilogue_flops: Floats
    hot_bytes: Floats
    full_rows: Floats


@dataclass(frozen=True, slots=True)
class Grid:
    """Arrays (Q, C) or broadcastable to it.

    matrix_s, vector_s   at peak rates, with wave and tile quantisation
    l2_bytes, dram_bytes traffic; split_bytes what a split of K adds to the shared cache
    busy                 tiles at work over cores, at most 1
    core_share           the same, not limited to 1
    cast_rows, cast_bytes  (Q, 1): rows of the left operand that arrive in 16 bits and are converted, and the traffic
    """

    tiles: Tiles
    valid: npt.NDArray[np.bool_]
    waves: Floats
    matrix_s: Floats
    vector_s: Floats
    l2_bytes: Floats
    split_bytes: Floats
    dram_bytes: Floats
    spill_bytes: Floats
    sram_bytes: Floats
    stages: Floats
    core_share: Floats
    blocks_per_core: Floats
    cast_rows: Floats
    cast_bytes: Floats


def build_grid(hw: Hardware, p: Products, dtype: str) -> Grid:
    """Enumerate every candidate tile of `hw` for every product."""
    tiles, element = candidate_tiles(hw, dtype), dtype_bytes(dtype)
    rows, columns = np.ceil(p.m / tiles.m), np.ceil(p.n / tiles.n)
    steps = np.ceil(p.k / tiles.split / tiles.k)
    count = p.batch * rows * columns * tiles.split
    waves = np.ceil(count / hw.cores)
    feed = 1 + _FEED * (tiles.m + tiles.n) / (tiles.m * tiles.n) if hw.kind == "gpu" else 1.0
    matrix_s = waves * steps * tiles.k * 2 * tiles.m * tiles.n * feed / (hw.rate(dtype) / hw.cores)
    share = count / hw.cores
    vector_s = p.epilogue_flops / hw.vector_rate(dtype) * (waves / share)
    stages, sram = pipeline(tiles, dtype, hw.sram_bytes_per_core - p.reserved_sram)
    registers = np.where(tiles.registers > 0, tiles.registers + p.extra_registers, 0.0)
    limit = min(hw.registers_per_thread, hw.registers_per_core) if hw.registers_per_core else np.inf
    spilled = np.maximum(registers - limit, 0.0)
    split_bytes = np.where(tiles.split > 1, 2.0 * ACCUMULATOR_BYTES * tiles.split * p.batch * p.m * p.n, 0.0)
    valid = (stages > 0) & ((tiles.split == 1) | (p.k / tiles.split >= _LEAST_STEPS * tiles.k))
    valid = valid & ((p.full_rows == 0) | ((tiles.n >= p.n) & (tiles.split == 1)))
    cast = p.batch * p.m * (element < _CAST_BYTES)
    return Grid(
        tiles=tiles,
        valid=valid & (stages > 0),
        waves=waves,
        matrix_s=matrix_s,
        vector_s=vector_s,
        l2_bytes=count * steps * tiles.k * (tiles.m + tiles.n) * element + p.batch * p.m * p.n * element,
        split_bytes=split_bytes,
        dram_bytes=_dram_bytes(hw, p, tiles, rows, columns, element),
        spill_bytes=2.0 * 4 * spilled * tiles.threads * count * steps,
        sram_bytes=sram + p.reserved_sram,
        stages=stages,
        core_share=share,
        blocks_per_core=_blocks_per_core(hw, tiles, registers, sram + p.reserved_sram),
        cast_rows=cast,
        cast_bytes=cast * p.k * (_CAST_BYTES + element),
    )


def _dram_bytes(hw: Hardware, p: Products, tiles: Tiles, rows: Floats, columns: Floats, element: float) -> Floats:
    """Traffic to device memory, never below the lower bound for all on-chip memory together."""
    if hw.l2_bytes:
        words = _through_cache(hw, p, tiles, rows, columns, element)
    else:
        words = _from_scratchpads(hw, p, tiles, rows, columns, element)
    fast = (hw.l2_bytes + hw.cores * (hw.sram_bytes_per_core + 4 * hw.registers_per_core)) / element
    least = p.batch * matmul_lower_bound_words(p.m, p.n, p.k, fast)
    dram = np.maximum(p.batch * words, least) * element
    hot = np.clip(_HOT * hw.l2_bytes / dram, 0.0, 1.0) ** 2 * np.minimum(p.hot_bytes, dram)
    return np.asarray(np.maximum(dram - hot + p.extra_bytes, 0.0))


def _through_cache(hw: Hardware, p: Products, tiles: Tiles, rows: Floats, columns: Floats, element: float) -> Floats:
    """Words of one product where cores share a cache: waves of near-square rasters, or every operand once."""
    wave = np.minimum(p.batch * rows * columns, hw.cores)
    high = np.clip(np.round(np.sqrt(wave * tiles.n / tiles.m)), 1, rows)
    wide = np.clip(np.ceil(wave / high), 1, columns)
    high = np.clip(np.ceil(wave / wide), 1, rows)
    edge = np.minimum(high * tiles.m, p.m) + np.minimum(wide * tiles.n, p.n)
    rastered = np.ceil(rows / high) * np.ceil(columns / wide) * edge * p.k + p.m * p.n
    once = p.m * p.k + p.k * p.n + p.m * p.n
    resident = np.minimum(p.m, p.n) * p.k * element <= _RESIDENT * hw.l2_bytes
    return np.asarray(np.where(resident, once, np.maximum(rastered, once)))


def _from_scratchpads(hw: Hardware, p: Products, tiles: Tiles, rows: Floats, columns: Floats, element: float) -> Floats:
    """Words of one product where every core loads its own operands; panels of one that fit are kept between tiles."""
    room = hw.sram_bytes_per_core - p.reserved_sram - tiles.m * tiles.n * ACCUMULATOR_BYTES
    room_a, room_b = (room - 2 * side * tiles.k * element for side in (tiles.n, tiles.m))
    a, b = p.m * p.k, p.k * p.n
    least = a * columns + b * rows
    for kept in (2.0**i for i in range(_KEPT_DOUBLINGS)):
        fits_a = np.minimum(kept * tiles.m, p.m) * p.k * element <= room_a
        fits_b = np.minimum(kept * tiles.n, p.n) * p.k * element <= room_b
        if not (fits_a.any() or fits_b.any()):
            break
        # Kept panels are loaded once by each core that works on them, the other operand once for all of them. More than
        # one panel is kept only while that leaves no core without panels of its own.
        high, wide = np.ceil(rows / kept), np.ceil(columns / kept)
        if kept > 1:
            fits_a, fits_b = fits_a & (p.batch * high >= hw.cores), fits_b & (p.batch * wide >= hw.cores)
        with_a = a * np.minimum(columns, np.ceil(hw.cores / (p.batch * high))) + b * high
        with_b = b * np.minimum(rows, np.ceil(hw.cores / (p.batch * wide))) + a * wide
        least = np.minimum(least, np.minimum(np.where(fits_a, with_a, np.inf), np.where(fits_b, with_b, np.inf)))
    sums = p.m * p.n * (2 * tiles.split - 1)  # parts of a split meet in device memory
    return np.asarray(least + sums)


def _blocks_per_core(hw: Hardware, tiles: Tiles, registers: Floats, sram: Floats) -> Floats:
    """Blocks resident on one core: limited by registers, SRAM, threads and the scheduler."""
    if not hw.registers_per_core or not hw.max_threads_per_core:
        return np.ones_like(sram)
    per_thread = np.minimum(registers, hw.registers_per_thread)
    blocks = np.minimum(hw.registers_per_core / (per_thread * tiles.threads), hw.max_threads_per_core / tiles.threads)
    blocks = np.minimum(blocks, hw.sram_bytes_per_core / np.maximum(sram, 1.0))
    return np.asarray(np.clip(np.floor(blocks), 1, hw.max_blocks_per_core))
