"""Which tiles a device can run: aligned shapes, split-K and pipeline depth that fit its on-chip memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from fusetui.accelerator.errors import HardwareError
from fusetui.accelerator.hardware import Hardware, Kind, dtype_bytes

Floats = npt.NDArray[np.float64]

MAX_STAGES: Final = 4
ACCUMULATOR_BYTES: Final = 4
_GPU_SIDES: Final = (16, 32, 64, 128, 256)
_GPU_AREA: Final = (1024, 128 * 256)  # less leaves the matrix unit idle, more has no room for accumulators
_GPU_STEP_BYTES: Final = 128  # one cache line of every row per step
_SPLITS: Final = (1, 2, 3, 4, 6, 8, 12, 16)
_STEPS: Final = (128, 512)  # elements of K per step, where operands wait in a scratchpad
_DOUBLINGS: Final = 8
_BASE_REGISTERS: Final = 24  # addresses, counters, predicates


@dataclass(frozen=True, slots=True)
class Tiles:
    """Candidates, every array (C,): tile shape, split of K, threads of a block, registers of a thread."""

    m: Floats
    n: Floats
    k: Floats
    split: Floats
    threads: Floats
    registers: Floats


def candidate_tiles(hw: Hardware, dtype: str) -> Tiles:
    """All aligned tiles of a device. Threads and registers are 0 where it has no register file."""
    tiles = _tiles(hw.kind, hw.mma_shape(dtype), dtype_bytes(dtype), hw.cores > 1)
    if tiles is None:
        shape = "x".join(map(str, hw.mma_shape(dtype)))
        problem = f"no tile is a multiple of the matrix unit's {shape}"
        raise HardwareError(f"hardware {hw.name}", problem, "sides of a tile are powers of two from 16 to 256")
    return tiles


@lru_cache(maxsize=32)
def _tiles(kind: Kind, mma: tuple[int, int, int], element: float, is_multicore: bool) -> Tiles | None:
    """Kept while sizes and rates of a device change."""
    rows = _gpu_rows(mma, element) if kind == "gpu" else _scratchpad_rows(mma, is_multicore)
    if not rows:
        return None
    tm, tn, tk, split = np.array(rows, dtype=np.float64).T
    if kind != "gpu":
        zero = np.zeros_like(tm)
        return Tiles(tm, tn, tk, split, zero, zero)
    threads = np.clip(tm * tn / 64, 64, 256)
    fragments = 2 * (tm + tn) * mma[2] * element / (4 * threads)
    registers = np.ceil(tm * tn / threads + np.minimum(fragments, 64) + _BASE_REGISTERS)
    return Tiles(tm, tn, tk, split, threads, registers)


def _gpu_rows(mma: tuple[int, int, int], element: float) -> list[tuple[int, int, int, int]]:
    mma_m, mma_n, mma_k = mma
    step = max(mma_k, int(_GPU_STEP_BYTES / element))
    shapes = [(m, n) for m in _GPU_SIDES for n in _GPU_SIDES if _GPU_AREA[0] <= m * n <= _GPU_AREA[1]]
    # The unit's long side may face either operand: libraries swap A and B for thin outputs.
    aligned = [(m, n) for m, n in shapes if (m % mma_m == 0 and n % mma_n == 0) or (n % mma_m == 0 and m % mma_n == 0)]
    return [(m, n, step, split) for m, n in aligned for split in _SPLITS]


def _scratchpad_rows(mma: tuple[int, int, int], is_multicore: bool) -> list[tuple[int, int, int, int]]:
    mma_m, mma_n, mma_k = mma
    splits = (1, 2, 4, 8) if is_multicore else (1,)
    steps = sorted({-(-step // mma_k) * mma_k for step in _STEPS})
    return [
        (mma_m << i, mma_n << j, step, split)
        for i in range(_DOUBLINGS)
        for j in range(_DOUBLINGS)
        for step in steps
        for split in splits
    ]


def pipeline(tiles: Tiles, dtype: str, room: Floats) -> tuple[Floats, Floats]:
    """(stages, bytes on chip) of tiles given `room` bytes per core, broadcast (Q, C). Stages 0: does not fit."""
    element = dtype_bytes(dtype)
    stage = (tiles.m + tiles.n) * tiles.k * element
    # With registers the accumulators live there and the output passes through the pipeline's own buffers.
    held = np.where(tiles.registers > 0, 0.0, tiles.m * tiles.n * ACCUMULATOR_BYTES)
    least = np.where(tiles.registers > 0, tiles.m * tiles.n * element, 0.0)
    stages = np.clip(np.floor((room - held) / stage), 0, MAX_STAGES)
    used = np.maximum(stages * stage + held, least)
    return np.where((stages >= 2) & (used <= room), stages, 0.0), used
