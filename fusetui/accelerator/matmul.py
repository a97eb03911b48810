"""Price of matrix products on a device: the best tile of every one, and why it takes as long as it does.

t = start + (compute^p + cache^p + memory^p)^(1/p) + split, minimised over tiles. `time_ns` is time on the device:
what the host pays for launching is in `Hardware.launch`. The tile is the one with the least traffic to device memory
of those within 1 % of the least time, a difference that no model of this kind can tell from nothing.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from fusetui.accelerator import bottleneck
from fusetui.accelerator.constants import Constants
from fusetui.accelerator.errors import AcceleratorError
from fusetui.accelerator.grid import Floats, Grid, Products, build_grid
from fusetui.accelerator.hardware import Hardware
from fusetui.accelerator.tiles import candidate_tiles

Numbers = npt.ArrayLike
Integers = npt.NDArray[np.int64]

_RESIDENT: Final = 0.6  # of the shared cache, before operands that come round again have left it
_SAME_TIME: Final = 0.01  # of a kernel's time
_CHUNK: Final = 1 << 17  # cells of one enumeration: its arrays stay near the caches and under 64 MiB together


@dataclass(frozen=True, slots=True)
class MatmulPrices:
    """Arrays (Q,), one entry per product. `time_ns` is infinite where no tile fits.

    time_ns     of the fastest tile; the one that is described takes at most 1 % more and moves no more
    waves       rounds of tiles over the cores, with the part-filled last one counted whole
    occupancy   GPU: resident threads over the most possible; others: tiles over core slots of all waves
    bottleneck  codes, see `bottleneck.NAMES`
    """

    time_ns: Floats
    tile_m: Integers
    tile_n: Integers
    tile_k: Integers
    split_k: Integers
    stages: Integers
    dram_bytes: Floats
    l2_bytes: Floats
    sram_bytes: Floats
    waves: Integers
    occupancy: Floats
    spill_bytes: Floats
    bottleneck: Integers
    flops: Floats


@dataclass(frozen=True, slots=True)
class Terms:
    """Seconds, (Q, C): what each resource needs, and the whole."""

    compute: Floats
    l2: Floats
    dram: Floats
    spill: Floats
    fixed: Floats
    total: Floats


def price_matmuls(
    hw: Hardware,
    constants: Constants,
    batch: Numbers,
    m: Numbers,
    n: Numbers,
    k: Numbers,
    *,
    dtype: str,
    reserved_sram: Numbers = 0,
    extra_registers: Numbers = 0,
    extra_bytes: Numbers = 0,
    epilogue_flops: Numbers = 0,
    hot_bytes: Numbers = 0,
    full_rows: Numbers = 0,
) -> MatmulPrices:
    """Best tile of each of Q products `batch` x (m,k)x(k,n); all arguments broadcast to (Q,).

    reserved_sram    bytes per core that fused neighbours keep
    extra_registers  registers per thread for values of fused neighbours
    extra_bytes      device memory traffic of fused neighbours; negative when the product itself is not written
    epilogue_flops   vector work of fused neighbours
    hot_bytes        operand bytes that a producer has just left in the shared cache
    full_rows        non-zero: one tile must hold whole rows of the output
    Raises AcceleratorError on shapes below 1, HardwareError when the device has no rate for `dtype`.
    """
    q = products(batch, m, n, k, reserved_sram, extra_registers, extra_bytes, epilogue_flops, hot_bytes, full_rows)
    step = max(1, _CHUNK // candidate_tiles(hw, dtype).m.size)
    if len(q.m) <= step:
        return _price(hw, constants, q, dtype)
    parts = [_price(hw, constants, _part(q, slice(at, at + step)), dtype) for at in range(0, len(q.m), step)]
    return MatmulPrices(**{f: np.concatenate([getattr(p, f) for p in parts]) for f in MatmulPrices.__slots__})


def pareto(hw: Hardware, constants: Constants, batch: int, m: int, n: int, k: int, *, dtype: str) -> MatmulPrices:
    """Tiles of one product that no other beats in time, SRAM and DRAM traffic at once, fastest first."""
    q = products(batch, m, n, k)
    grid = build_grid(hw, q, dtype)
    terms = matmul_terms(hw, constants, grid)
    keys = np.stack(
        [terms.total[0], *(np.broadcast_to(a, terms.total.shape)[0] for a in (grid.sram_bytes, grid.dram_bytes))]
    )
    order = np.lexsort(keys[::-1])
    kept: list[int] = []
    for at in order[np.isfinite(keys[0, order])]:
        beaten = (keys[:, kept] <= keys[:, [at]]).all(axis=0)
        if not beaten.any():
            kept.append(int(at))
    rows = np.zeros(len(kept), dtype=np.int64)
    return _chosen(q, grid, terms, hw, rows, np.array(kept, dtype=np.int64))


def matmul_terms(hw: Hardware, c: Constants, g: Grid) -> Terms:
    """Seconds of every tile of a grid; infinite where it is not valid."""
    busy = np.minimum(1.0, g.core_share)
    compute = (g.matrix_s + g.vector_s) / c.eta_matrix + c.fill_ns * 1e-9 * g.waves
    l2_rate = hw.l2_bytes_per_s * c.eta_l2
    l2 = g.l2_bytes / (l2_rate * busy) if l2_rate else np.zeros_like(compute)
    spill_rate = l2_rate or hw.dram_bytes_per_s * c.eta_dram
    spill = g.spill_bytes / spill_rate
    dram = g.dram_bytes / (hw.dram_bytes_per_s * np.minimum(c.eta_dram, g.core_share * c.few_cores_rho))
    longest = np.maximum(np.maximum(compute, l2), dram)
    p = c.overlap
    hidden = longest * ((compute / longest) ** p + (l2 / longest) ** p + (dram / longest) ** p) ** (1 / p)
    split = np.where(g.tiles.split > 1, c.split_ns * 1e-9 + (g.split_bytes / l2_rate if l2_rate else 0.0), 0.0)
    fixed = c.start_ns * 1e-9 + split
    busy_s = fixed + hidden + spill + cast_seconds(hw, c, g)
    total = np.where(g.valid, np.maximum(busy_s, c.pace_ns * 1e-9), np.inf)
    return Terms(compute, l2, dram, spill, fixed, total)


def cast_seconds(hw: Hardware, c: Constants, g: Grid) -> Floats:
    """Time (Q, 1) of the pass that scales 16-bit activations to a narrower type, 0 for types of 16 bits and more."""
    fits = np.clip(2 * _RESIDENT * hw.l2_bytes / np.maximum(g.cast_bytes, 1.0) - 1, 0.0, 1.0)
    cold = g.cast_bytes * (1 - fits) / hw.dram_bytes_per_s
    hot = g.cast_bytes * fits / (hw.l2_bytes_per_s or hw.dram_bytes_per_s)
    rows = c.cast_row_ns * 1e-9 * np.ceil(g.cast_rows / hw.cores)
    return np.where(g.cast_rows > 0, c.cast_start_ns * 1e-9 + rows + (cold + hot) / c.cast_eta, 0.0)


def products(batch: Numbers, m: Numbers, n: Numbers, k: Numbers, *added: Numbers) -> Products:
    """Checked and broadcast to (Q, 1). `added`: the fields of `Products` after k, in order; 0 when left out."""
    arguments = (batch, m, n, k, *added, *(0,) * (len(Products.__slots__) - 4 - len(added)))
    columns = np.broadcast_arrays(*(np.atleast_1d(np.asarray(a, dtype=np.float64)) for a in arguments))
    for name, column in zip(("batch", "m", "n", "k"), columns, strict=False):
        wrong = ~(np.isfinite(column) & (column >= 1) & (column <= 2**40))
        if wrong.any():
            raise AcceleratorError("shape", f"{name} = {column[wrong][0]:g}: must be a whole number of at least 1")
    return Products(*(column.reshape(-1, 1) for column in columns))


def _part(q: Products, at: slice) -> Products:
    return Products(*(getattr(q, name)[at] for name in Products.__slots__))


def _price(hw: Hardware, constants: Constants, q: Products, dtype: str) -> MatmulPrices:
    grid = build_grid(hw, q, dtype)
    terms = matmul_terms(hw, constants, grid)
    prices = _chosen(q, grid, terms, hw, np.arange(len(q.m)), _choice(grid, terms.total))
    return dataclasses.replace(prices, time_ns=terms.total.min(axis=1) * 1e9)


def _choice(g: Grid, total: Floats) -> Integers:
    """(Q,) indices: of tiles as fast as can be told, the least traffic; of equals the fastest, then the smallest."""
    near = total <= total.min(axis=1, keepdims=True) * (1 + _SAME_TIME)
    for cost in (g.dram_bytes, total, g.sram_bytes):
        left = np.where(near, cost, np.inf)
        near = left <= left.min(axis=1, keepdims=True)
    return np.asarray(near.argmax(axis=1))


def _chosen(q: Products, g: Grid, t: Terms, hw: Hardware, row: Integers, at: Integers) -> MatmulPrices:
    shape = t.total.shape

    def pick(a: Floats) -> Floats:
        return np.asarray(np.broadcast_to(a, shape)[row, at])

    needs = np.stack([pick(t.fixed), pick(t.compute), pick(t.dram), pick(t.l2), pick(t.spill)])
    if hw.max_threads_per_core:
        occupancy = np.minimum(1.0, pick(g.blocks_per_core) * g.tiles.threads[at] / hw.max_threads_per_core)
    else:
        occupancy = pick(g.core_share) / pick(g.waves)
    whole = {name: getattr(g.tiles, key)[at] for name, key in _TILE.items()}
    return MatmulPrices(
        time_ns=pick(t.total) * 1e9,
        **{name: value.astype(np.int64) for name, value in whole.items()},
        stages=pick(g.stages).astype(np.int64),
        dram_bytes=pick(g.dram_bytes),
        l2_bytes=pick(g.l2_bytes) + pick(g.split_bytes),
        sram_bytes=pick(g.sram_bytes),
        waves=pick(g.waves).astype(np.int64),
        occupancy=occupancy,
        spill_bytes=pick(g.spill_bytes),
        bottleneck=_CODES[needs.argmax(axis=0)],
        flops=(2 * q.batch * q.m * q.n * q.k + q.epilogue_flops)[row, 0],
    )


_TILE: Final = {"tile_m": "m", "tile_n": "n", "tile_k": "k", "split_k": "split"}
_CODES: Final = np.array([bottleneck.LAUNCH, bottleneck.COMPUTE, bottleneck.DRAM, bottleneck.L2, bottleneck.SPILL])
