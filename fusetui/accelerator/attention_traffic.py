"""Device memory words of attention, counted from its algorithms: scores stored, or tiled to fit the on-chip memory.

Tiled: Dao et al., "FlashAttention" (2022), algorithms 1 and 4: Theta(N^2 d^2 / M); stored: Theta(N d + N^2).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fusetui.accelerator.errors import AcceleratorError

Numbers = npt.ArrayLike
Floats = npt.NDArray[np.float64]


def stored_words(length: Numbers, head_dim: Numbers, *, backward: bool = False) -> Floats:
    """Words of one head when scores and probabilities go to device memory, each kernel reading its operands once."""
    n, d = _sizes(length, head_dim)
    # Q K -> S; S -> P; P V -> O.
    words = 4 * n * n + 4 * n * d
    if backward:
        # P dO -> dV; dO V -> dP; P dP -> dS; dS K -> dQ; dS Q -> dK.
        words = words + 7 * n * n + 8 * n * d
    return np.asarray(words)


def tiled_words(length: Numbers, head_dim: Numbers, fast_words: int, *, backward: bool = False) -> Floats:
    """Words of one head when tiles of M / 4d keys stay on chip and every query passes each of them."""
    n, d = _sizes(length, head_dim)
    if fast_words < 4 * d.max():
        raise AcceleratorError("fast memory", f"{fast_words} words: must hold four rows of {d.max():g}")
    passes = np.ceil(n / np.minimum(np.ceil(fast_words / (4 * d)), n))
    # K and V once; per pass Q, O and two statistics in, O and the statistics out.
    words = 2 * n * d + passes * (3 * n * d + 4 * n)
    if backward:
        # K, V, dK, dV once; per pass Q, O, dO, dQ and two statistics in, dQ out.
        words = words + 4 * n * d + passes * (5 * n * d + 2 * n)
    return np.asarray(words)


def _sizes(length: Numbers, head_dim: Numbers) -> tuple[Floats, Floats]:
    n, d = np.asarray(length, float), np.asarray(head_dim, float)
    if not ((n >= 1).all() and (d >= 1).all()):
        raise AcceleratorError("attention", "length and head_dim must be at least 1")
    return n, d
