"""Price of fused attention: two products and a softmax whose scores never leave the chip.

t = start + fill per wave + (compute^p + memory^p)^(1/p). Work items are query tiles of 128 rows, or, when there are few
query rows (decode), the query heads of one key-value head packed together and the keys split over idle cores.
Traffic of the unfused form: every score is written and read twice (Dao et al., "FlashAttention", 2022).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from fusetui.accelerator import bottleneck
from fusetui.accelerator.constants import Constants
from fusetui.accelerator.errors import AcceleratorError
from fusetui.accelerator.grid import Floats
from fusetui.accelerator.hardware import Hardware, dtype_bytes

Numbers = npt.ArrayLike
Integers = npt.NDArray[np.int64]

_TILE: Final = 128.0  # query rows of a work item
_STEP: Final = 128.0  # keys of one step
_PACKED: Final = 64.0  # rows of the matrix unit that packed query heads share
_LEAST_SPLIT: Final = 128.0  # keys that are worth a core of their own
_SOFTMAX_FLOPS: Final = 16.0  # scale, maximum, exponential, sum of one score
_RESIDENT: Final = 0.6  # of the shared cache, before operands that come round again have left it
_THREADS: Final = 256.0
_BASE_REGISTERS: Final = 160.0  # score and output tile of a thread


@dataclass(frozen=True, slots=True)
class AttentionPrices:
    """Arrays (Q,); as `MatmulPrices`, with `split_kv` parts of the keys."""

    time_ns: Floats
    dram_bytes: Floats
    l2_bytes: Floats
    sram_bytes: Floats
    waves: Integers
    occupancy: Floats
    spill_bytes: Floats
    bottleneck: Integers
    flops: Floats
    split_kv: Integers


@dataclass(frozen=True, slots=True)
class AttentionWork:
    """Arrays (Q,): work and traffic before constants, seconds at peak rates."""

    flops: Floats
    matrix_s: Floats
    softmax_s: Floats
    bytes: Floats
    hot_share: Floats
    l2_bytes: Floats
    core_share: Floats
    waves: Floats
    split: Floats
    steps: Floats
    tokens: Floats


def price_attention(
    hw: Hardware,
    constants: Constants,
    batch: Numbers,
    q_heads: Numbers,
    kv_heads: Numbers,
    q_len: Numbers,
    kv_len: Numbers,
    head_dim: Numbers,
    *,
    dtype: str,
    causal: Numbers = 1,
    hot_bytes: Numbers = 0,
    extra_bytes: Numbers = 0,
    extra_registers: Numbers = 0,
) -> AttentionPrices:
    """Price Q fused attentions; arguments broadcast to (Q,). `causal`: keys up to each query only, aligned at the end.

    hot_bytes         operand bytes that are in the shared cache when it starts
    extra_bytes       device memory traffic of fused neighbours
    extra_registers   registers per thread for values of fused neighbours
    Raises AcceleratorError on impossible shapes.
    """
    shape = (batch, q_heads, kv_heads, q_len, kv_len, head_dim)
    work = attention_work(hw, *shape, dtype, causal, hot_bytes, extra_bytes, constants.attention_packed)
    compute, memory, fixed = attention_seconds(hw, constants, work)
    registers = np.broadcast_to(_BASE_REGISTERS + np.atleast_1d(np.asarray(extra_registers, float)), compute.shape)
    excess = np.maximum(registers - hw.registers_per_thread, 0.0) if hw.registers_per_core else 0.0 * compute
    spill_bytes = excess * 4 * 2 * _THREADS * work.steps
    spill = spill_bytes / (hw.l2_bytes_per_s * constants.eta_l2 if hw.l2_bytes else hw.dram_bytes_per_s)
    total = fixed + together(compute, memory, constants.attention_overlap) + spill
    element, width = dtype_bytes(dtype), np.broadcast_to(np.asarray(head_dim, float), compute.shape)
    needs = np.stack([fixed, compute, memory, spill])
    occupancy = np.minimum(1.0, work.core_share) if not hw.max_threads_per_core else _occupancy(hw, registers)
    return AttentionPrices(
        time_ns=total * 1e9,
        dram_bytes=work.bytes * (1 - work.hot_share),
        l2_bytes=work.l2_bytes + spill_bytes,
        sram_bytes=(_TILE + 4 * _TILE) * width * element,
        waves=work.waves.astype(np.int64),
        occupancy=occupancy,
        spill_bytes=spill_bytes,
        bottleneck=_CODES[needs.argmax(axis=0)],
        flops=work.flops,
        split_kv=work.split.astype(np.int64),
    )


def attention_work(
    hw: Hardware,
    batch: Numbers,
    q_heads: Numbers,
    kv_heads: Numbers,
    q_len: Numbers,
    kv_len: Numbers,
    head_dim: Numbers,
    dtype: str,
    causal: Numbers,
    hot_bytes: Numbers = 0,
    extra_bytes: Numbers = 0,
    packed: bool = True,
) -> AttentionWork:
    """Work items, products and bytes of fused attention.

    packed   query heads that share keys are rows of one tile for any number of queries, not for single ones only
    """
    arguments = (batch, q_heads, kv_heads, q_len, kv_len, head_dim, causal, hot_bytes, extra_bytes)
    b, h, kv, sq, sk, d, masked, hot, extra = np.broadcast_arrays(
        *(np.atleast_1d(np.asarray(a, float)) for a in arguments)
    )
    _check(b, h, kv, sq, sk, d, masked)
    element, group = dtype_bytes(dtype), h / kv
    packs = (sq == 1) | packed
    queries = np.where(packs, sq * group, sq)
    tiles = np.ceil(queries / _TILE)
    rows = np.where(tiles > 1, _TILE, np.ceil(queries / _PACKED) * _PACKED)
    heads = b * np.where(packs, kv, h)
    # Keys every tile of query rows sees, in whole steps; the last tile sees them all.
    hidden = np.where(masked > 0, np.minimum(sq, sk) * (tiles - 1) / np.maximum(2 * tiles, 1), 0.0)
    keys = np.ceil((sk - hidden) / _STEP) * _STEP
    items = heads * tiles
    idle = np.where(packs & (tiles == 1), np.floor(hw.cores / items), 1.0)
    split = np.clip(idle, 1.0, np.ceil(sk / _LEAST_SPLIT))
    share = items * split / hw.cores
    longest = np.ceil(sk / split / _STEP) * _STEP
    mean_load = items * keys / hw.cores
    # Masked tiles differ in length and even out; equal ones come in whole waves.
    load = np.where(masked > 0, np.maximum(mean_load, longest), np.ceil(share) * longest)
    matrix_s = load * rows * 4 * d / (hw.rate(dtype) / hw.cores)
    softmax_s = load * rows * _SOFTMAX_FLOPS / (hw.vector_rate("fp32") / hw.cores)
    partial = np.where(split > 1, 8 * b * h * sq * d * split, 0.0)
    moved = element * d * b * (2 * h * sq + 2 * kv * sk) + extra + partial
    fits = np.clip(2 * _RESIDENT * hw.l2_bytes / np.maximum(moved, 1.0) - 1, 0.0, 1.0)
    pairs = sq * sk - np.where(masked > 0, np.minimum(sq, sk) ** 2 / 2, 0.0)
    return AttentionWork(
        flops=4 * b * h * d * pairs,
        matrix_s=matrix_s,
        softmax_s=softmax_s,
        bytes=moved,
        hot_share=np.minimum(hot / np.maximum(moved, 1.0), 1.0) * fits,
        l2_bytes=element * d * (items * 2 * keys + 2 * b * h * sq) + partial,
        core_share=share,
        waves=np.ceil(share),
        split=split,
        steps=items * np.ceil(keys / _STEP),
        tokens=np.where(masked > 0, b * np.minimum(sq, sk), 0.0),
    )


def attention_seconds(hw: Hardware, c: Constants, w: AttentionWork) -> tuple[Floats, Floats, Floats]:
    """(compute, memory, fixed) seconds."""
    compute = w.matrix_s / c.attention_eta_matrix + w.softmax_s
    busy = np.minimum(c.attention_eta_dram, w.core_share * c.few_cores_rho)
    cold = w.bytes * (1 - w.hot_share) / (hw.dram_bytes_per_s * busy)
    hot = w.bytes * w.hot_share / (hw.l2_bytes_per_s or hw.dram_bytes_per_s) / c.attention_eta_l2
    split = np.where(w.split > 1, c.attention_split_ns, 0.0)
    cached = c.attention_token_ns * w.tokens / hw.cores
    fixed = (c.attention_start_ns + c.attention_fill_ns * w.waves + split + cached) * 1e-9
    return compute, cold + hot, fixed


def unfused_attention_bytes(
    batch: Numbers, q_heads: Numbers, kv_heads: Numbers, q_len: Numbers, kv_len: Numbers, head_dim: Numbers, dtype: str
) -> Floats:
    """Device memory traffic when scores and probabilities are written and read: three kernels."""
    b, h, kv, sq, sk, d = (np.asarray(a, float) for a in (batch, q_heads, kv_heads, q_len, kv_len, head_dim))
    operands = b * d * (2 * h * sq + 2 * kv * sk)
    return np.asarray(dtype_bytes(dtype) * (operands + 4 * b * h * sq * sk))


def together(compute: Floats, memory: Floats, p: float) -> Floats:
    """Time of two resources that overlap with exponent `p`."""
    longest = np.maximum(compute, memory)
    return np.asarray(longest * ((compute / longest) ** p + (memory / longest) ** p) ** (1 / p))


def _occupancy(hw: Hardware, registers: Floats) -> Floats:
    per_thread = np.minimum(registers, hw.registers_per_thread)
    blocks = np.clip(np.floor(hw.registers_per_core / (per_thread * _THREADS)), 1, hw.max_blocks_per_core)
    return np.minimum(1.0, blocks * _THREADS / hw.max_threads_per_core)


def _check(b: Floats, h: Floats, kv: Floats, sq: Floats, sk: Floats, d: Floats, masked: Floats) -> None:
    for name, value in (("batch", b), ("q_heads", h), ("kv_heads", kv), ("q_len", sq), ("kv_len", sk), ("head_dim", d)):
        wrong = ~(np.isfinite(value) & (value >= 1))
        if wrong.any():
            raise AcceleratorError("attention", f"{name} = {value[wrong][0]:g}: must be at least 1")
    if (h % kv != 0).any():
        raise AcceleratorError("attention", "q_heads must be a multiple of kv_heads")
    if ((masked > 0) & (sq > sk)).any():
        raise AcceleratorError("attention", "causal attention needs q_len <= kv_len")


_CODES: Final = np.array([bottleneck.LAUNCH, bottleneck.COMPUTE, bottleneck.DRAM, bottleneck.SPILL])
