"""Price of vector operators: bytes over the bandwidth their class reaches, with rows in waves, occupancy and spills.

t = start + max(bytes / (b0 eta), waves of rows) / derate + spill. A row operator gives a block to each row, so a few
long rows leave cores idle; a row that is read twice and does not stay on chip is paid twice.
Below half occupancy the bandwidth falls with its square: a public kernel at 12.5 % reached 6.9 % of the peak.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
import numpy.typing as npt

from fusetui.accelerator import bottleneck
from fusetui.accelerator.constants import VECTOR_ETA, Constants
from fusetui.accelerator.errors import AcceleratorError
from fusetui.accelerator.grid import Floats
from fusetui.accelerator.hardware import Hardware

Numbers = npt.ArrayLike

_ENOUGH: Final = 0.5  # occupancy that still hides memory latency
_THREADS: Final = 256.0  # of a block without rows
_RESIDENT: Final = 0.6  # of the shared cache, before operands that come round again have left it
# Threads that share one row, and how often a row is read.
_ROWS: Final = MappingProxyType(
    {"norm": (1024.0, 2), "layernorm": (128.0, 2), "softmax": (256.0, 1), "gated": (1024.0, 1), "rope": (512.0, 1)}
)


@dataclass(frozen=True, slots=True)
class VectorPrices:
    """Arrays (Q,). `occupancy` is resident threads over the most possible; codes as in `bottleneck.NAMES`."""

    time_ns: Floats
    dram_bytes: Floats
    l2_bytes: Floats
    waves: npt.NDArray[np.int64]
    occupancy: Floats
    spill_bytes: Floats
    bottleneck: npt.NDArray[np.int64]


def price_vectors(
    hw: Hardware,
    constants: Constants,
    bytes_in: Numbers,
    bytes_out: Numbers,
    kind: str | Sequence[str],
    *,
    rows: Numbers = 0,
    hot_bytes: Numbers = 0,
    registers: Numbers = 32,
    flops: Numbers = 0,
    dtype: str = "fp32",
) -> VectorPrices:
    """Price Q operators; arguments broadcast to (Q,).

    kind        class, a key of `constants.vector_eta`
    rows        independent rows of a row operator; 0 when the work splits anywhere
    hot_bytes   operand bytes that are in the shared cache when the operator starts
    registers   registers per thread, counting values of fused neighbours
    flops       vector work, where it may matter
    Raises AcceleratorError on an unknown class or negative bytes.
    """
    kinds = np.atleast_1d(np.asarray(kind))
    for name in np.unique(kinds):
        if name not in constants.vector_eta:
            raise AcceleratorError("class", f"{name} is not known", f"one of {', '.join(VECTOR_ETA)}")
    numbers = (
        np.atleast_1d(np.asarray(a, dtype=np.float64)) for a in (bytes_in, bytes_out, rows, hot_bytes, registers, flops)
    )
    read, written, rows_, hot, per_thread, work, kinds = np.broadcast_arrays(*numbers, kinds)
    if (read < 0).any() or (written < 0).any():
        raise AcceleratorError("bytes", "must be 0 or more")
    moved = vector_work(hw, read, written, rows_, hot, kinds)
    return _price(hw, constants, moved, kinds, per_thread, work, dtype)


@dataclass(frozen=True, slots=True)
class VectorWork:
    """Arrays (Q,): traffic before constants. `wave_loss` is the time of all waves over that of full ones."""

    bytes: Floats
    dram_bytes: Floats
    hot_share: Floats
    wave_loss: Floats
    waves: Floats
    threads: Floats


def vector_work(
    hw: Hardware, read: Floats, written: Floats, rows: Floats, hot: Floats, kinds: npt.NDArray[np.str_]
) -> VectorWork:
    """Traffic and wave quantisation of vector operators."""
    shape = np.array([_ROWS.get(str(kind), (_THREADS, 1)) for kind in kinds])
    threads, passes = shape[:, 0], shape[:, 1]
    most = hw.max_threads_per_core
    blocks = np.clip(np.floor(most / threads), 1, hw.max_blocks_per_core) if most else np.ones_like(threads)
    row_bytes = read / np.maximum(rows, 1)
    held = hw.sram_bytes_per_core / np.maximum(blocks * row_bytes, 1.0)
    again = np.where((rows > 0) & (passes > 1), np.clip(1 - held**3, 0.0, 1.0), 0.0)
    moved = read * (1 + again) + written
    waves = np.where(rows > 0, np.ceil(rows / (hw.cores * blocks)), 1.0)
    loss = np.where(rows > 0, waves * hw.cores * blocks / np.maximum(rows, 1), 1.0)
    fits = np.clip(2 * _RESIDENT * hw.l2_bytes / np.maximum(moved, 1.0) - 1, 0.0, 1.0)
    share = np.minimum(hot / np.maximum(moved, 1.0), 1.0) * fits
    return VectorWork(moved, moved * (1 - share), share, loss, waves, threads)


def _price(
    hw: Hardware,
    c: Constants,
    w: VectorWork,
    kinds: npt.NDArray[np.str_],
    registers: Floats,
    flops: Floats,
    dtype: str,
) -> VectorPrices:
    occupancy, derate = _occupancy(hw, registers, w.threads)
    eta = np.array([c.vector_eta[str(k)] for k in kinds])
    hot_eta = np.array([c.vector_hot_eta[str(k)] for k in kinds])
    memory = move_seconds(hw, w, eta, hot_eta) / np.where(w.hot_share > 0.5, np.sqrt(derate), derate)
    excess = np.maximum(registers - hw.registers_per_thread, 0.0) if hw.registers_per_core else np.zeros_like(registers)
    # An element needs about one thread's registers in turn; every spilled one is written and read.
    spill_bytes = excess * 4 * 2 * (w.bytes / 32)
    spill = spill_bytes / (hw.l2_bytes_per_s * c.eta_l2 if hw.l2_bytes else hw.dram_bytes_per_s * c.eta_dram)
    compute = flops / (hw.vector_rate(dtype) * c.eta_matrix)
    start = np.full_like(memory, c.vector_start_ns * 1e-9)
    cold = w.hot_share <= 0.5
    needs = np.stack([start, compute, np.where(cold, memory, 0.0), np.where(cold, 0.0, memory), spill])
    return VectorPrices(
        time_ns=(start + np.maximum(memory, compute) + spill) * 1e9,
        dram_bytes=w.dram_bytes,
        l2_bytes=w.bytes + spill_bytes,
        waves=w.waves.astype(np.int64),
        occupancy=occupancy,
        spill_bytes=spill_bytes,
        bottleneck=_CODES[needs.argmax(axis=0)],
    )


def move_seconds(hw: Hardware, w: VectorWork, eta: Floats, hot_eta: Floats) -> Floats:
    """Time of the traffic: cold bytes at one share of the DRAM bandwidth, hot ones at another, rows in whole waves."""
    cold = w.dram_bytes / (hw.dram_bytes_per_s * eta)
    hot = w.bytes / (hw.dram_bytes_per_s * hot_eta)
    return np.asarray(np.maximum(cold + hot * w.hot_share, hot * w.wave_loss))


def _occupancy(hw: Hardware, registers: Floats, threads: Floats) -> tuple[Floats, Floats]:
    """(occupancy, share of the bandwidth left)."""
    if not hw.registers_per_core or not hw.max_threads_per_core:
        return np.ones_like(registers), np.ones_like(registers)
    used = np.minimum(np.maximum(registers, 1.0), hw.registers_per_thread)
    blocks = np.minimum(hw.registers_per_core / (used * threads), hw.max_threads_per_core / threads)
    blocks = np.clip(np.floor(blocks), 1, hw.max_blocks_per_core)
    occupancy = np.minimum(1.0, blocks * threads / hw.max_threads_per_core)
    return occupancy, np.minimum(1.0, occupancy / _ENOUGH) ** 2


_CODES: Final = np.array([bottleneck.LAUNCH, bottleneck.COMPUTE, bottleneck.DRAM, bottleneck.L2, bottleneck.SPILL])
