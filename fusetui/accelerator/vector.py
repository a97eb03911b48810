"""Price of vector operators: bytes over the bandwidth their class reaches, with rows in waves, occupancy and spills.

t = start + max(bytes / (b0 eta), waves of rows) / derate + spill. A row operator gives a block to each row, so a few
long rows leave cores idle; a row that is read twice and does not stay on chip is paid twice.
Below half occupancy the bandwidth falls with its square: a public kernel at 12.5 % reached 6.9 % of the peak.
"""

from __future__ import annotations

import dataclasses
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
_RESIDENT: Final = 0.6  # of the shared cache, before operands that come round again have left it
_REGISTER_ROW: Final = 4096.0  # bytes of a row that softmax kernels keep in registers
_FORGETS: Final = 8.0  # how sharply a row is lost from a core's own memory once it no longer fits
_IDLE: Final = 0.25  # share of the time of idle lanes that is not hidden


@dataclass(frozen=True, slots=True)
class RowKernel:
    """How libraries run a row operator.

    threads   that share a row, at most
    reads     of the row; more than two: rows of up to 4 KiB stay in registers, and threads are a power of two
    lone      time of a block that runs alone, as a share of the time of a full wave
    centre    rows at work, over a core's own memory, at which half of the later reads miss it
    width     bytes a thread loads at once: threads without a whole vector idle; 0 where that does not matter
    """

    threads: float
    reads: float = 1.0
    lone: float = 1.0
    centre: float = 1.0
    width: float = 0.0


_PLAIN: Final = RowKernel(256.0)
_ROWS: Final = MappingProxyType(
    {
        "norm": RowKernel(1024.0, reads=2, lone=0.9),
        "layernorm": RowKernel(128.0, reads=2, lone=0.9, width=16),
        "softmax": RowKernel(1024.0, reads=3, lone=0.9, centre=2.0, width=16),
        "gated": RowKernel(1024.0, lone=0.7),
        "rope": RowKernel(512.0, lone=0.25),
    }
)
_FIGURES: Final = MappingProxyType({kind: dataclasses.astuple(kernel) for kind, kernel in _ROWS.items()})
_PLAIN_FIGURES: Final = dataclasses.astuple(_PLAIN)


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
    for name in dict.fromkeys(kinds.tolist()):
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
    """Arrays (Q,): traffic before constants.

    wave_loss   time of all waves over that of full ones
    idle_loss   time with idle lanes in a row over that without
    blocks      rows that one after the other share a place on a core
    """

    bytes: Floats
    dram_bytes: Floats
    hot_share: Floats
    wave_loss: Floats
    idle_loss: Floats
    blocks: Floats
    waves: Floats
    threads: Floats


def vector_work(
    hw: Hardware, read: Floats, written: Floats, rows: Floats, hot: Floats, kinds: npt.NDArray[np.str_]
) -> VectorWork:
    """Traffic and wave quantisation of vector operators."""
    threads, reads, lone, centre, width = np.array([_FIGURES.get(kind, _PLAIN_FIGURES) for kind in kinds.tolist()]).T
    by_row, row_bytes = rows > 0, read / np.maximum(rows, 1)
    vectors = row_bytes / np.maximum(width, 1.0)
    threads = np.where(
        (reads > 2) & by_row, np.clip(2 ** np.floor(np.log2(np.maximum(vectors, 1))), 32, threads), threads
    )
    in_registers = (reads > 2) & (row_bytes <= _REGISTER_ROW)
    most = hw.max_threads_per_core
    blocks = np.clip(np.floor(most / threads), 1, hw.max_blocks_per_core) if most else np.ones_like(threads)
    held = hw.sram_bytes_per_core / np.maximum(blocks * row_bytes, 1.0)
    lost = np.where(by_row & ~in_registers, (reads - 1) / (1 + (held / centre) ** _FORGETS), 0.0)
    moved = read * (1 + lost) + written
    waves = np.where(by_row, rows / (hw.cores * blocks), 1.0)
    last = waves - np.floor(waves)
    slots = np.floor(waves) + np.where(last > 0, lone + (1 - lone) * last, 0.0)
    idle = np.where(
        (width > 0) & by_row & ~in_registers, np.ceil(vectors / threads) * threads / np.maximum(vectors, 1), 1.0
    )
    fits = np.clip(2 * _RESIDENT * hw.l2_bytes / np.maximum(moved, 1.0) - 1, 0.0, 1.0)
    share = np.minimum(hot / np.maximum(moved, 1.0), 1.0) * fits
    return VectorWork(
        bytes=moved,
        dram_bytes=moved * (1 - share),
        hot_share=share,
        wave_loss=slots / waves,
        idle_loss=1 + _IDLE * (idle - 1),
        blocks=np.where(by_row, waves, 0.0),
        waves=np.ceil(waves),
        threads=threads,
    )


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
    names = kinds.tolist()
    eta, hot_eta = (np.array([known[name] for name in names]) for known in (c.vector_eta, c.vector_hot_eta))
    memory = move_seconds(hw, w, eta, hot_eta, c.vector_block_ns) / np.where(w.hot_share > 0.5, np.sqrt(derate), derate)
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


def move_seconds(hw: Hardware, w: VectorWork, eta: Floats, hot_eta: Floats, block_ns: float) -> Floats:
    """Time of the traffic: cold bytes at one share of the DRAM bandwidth, hot ones at another, rows in whole waves."""
    cold = w.dram_bytes / (hw.dram_bytes_per_s * eta)
    hot = w.bytes / (hw.dram_bytes_per_s * hot_eta)
    moved = np.maximum(cold + hot * w.hot_share, hot * w.wave_loss) * w.idle_loss
    return np.asarray(moved + block_ns * 1e-9 * w.blocks)


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
