"""How little memory traffic a matrix product can cause, and what the best two-level tiling needs.

Lower bound: Smith, Lowery, Langou, van de Geijn, "A Tight I/O Lower Bound for Matrix Multiplication" (2017).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fusetui.accelerator.errors import AcceleratorError

Numbers = npt.NDArray[np.float64] | float | int
Floats = npt.NDArray[np.float64]


def matmul_lower_bound_words(m: Numbers, n: Numbers, k: Numbers, fast_words: Numbers) -> Floats:
    """Words moved by any schedule of (m,k)x(k,n) with `fast_words` of fast memory: max(compulsory, 2mnk/sqrt(S) - 2S).

    Arrays broadcast. Compulsory is every operand once.
    """
    m, n, k = np.asarray(m, float), np.asarray(n, float), np.asarray(k, float)
    words = np.asarray(fast_words, float)
    compulsory = m * k + k * n + m * n
    with np.errstate(divide="ignore"):
        smith = 2 * m * n * k / np.sqrt(words) - 2 * words
    return np.asarray(np.maximum(compulsory, smith))


def best_tiling(m: int, n: int, k: int, fast_words: int) -> tuple[int, str, tuple[int, int, int]]:
    """(words, dataflow, (tile m, n, k)) of the least traffic over output-, weight- and input-stationary tilings.

    A tiling fits when tm*tk + tk*tn + tm*tn <= fast_words. Ragged edges count by ceiling; a partial sum that leaves
    the fast memory is written and read again. Exhaustive over tile sides that change a ceiling.
    """
    if min(m, n, k) < 1:
        raise AcceleratorError("shape", f"{m}x{n}x{k}: every side must be at least 1")
    if fast_words < 3:
        raise AcceleratorError("fast memory", f"{fast_words} words: must hold one element of each operand")
    best = (np.inf, "", (0, 0, 0))
    for dataflow, (kept, other, streamed) in _LOOPS.items():
        sides = {"m": m, "n": n, "k": k}
        words, tile = _best_of(sides, kept, other, streamed, fast_words)
        if words < best[0]:
            best = (words, dataflow, (tile["m"], tile["n"], tile["k"]))
    return int(best[0]), best[1], best[2]


# Dataflow: the two sides of the operand that stays, then the side that streams past it.
_LOOPS = {"OS": ("m", "n", "k"), "WS": ("k", "n", "m"), "IS": ("m", "k", "n")}


def _best_of(sides: dict[str, int], a: str, b: str, streamed: str, fast_words: int) -> tuple[float, dict[str, int]]:
    """Least words with an a x b tile kept on chip while `streamed` advances one element at a time.

    The streamed side of the tile is 1: more of it takes room from the kept tile and saves nothing.
    """
    ta = _useful_sides(sides[a])
    tb = np.minimum(np.floor((fast_words - ta) / (ta + 1)), sides[b])
    ta, tb = ta[tb >= 1], tb[tb >= 1]
    if not len(ta):
        return np.inf, {}
    passes_a, passes_b = np.ceil(sides[a] / ta), np.ceil(sides[b] / tb)
    size = {"a": sides[a] * sides[streamed], "b": sides[b] * sides[streamed], "kept": sides[a] * sides[b]}
    weight_a, weight_b = size["a"] * passes_b, size["b"] * passes_a
    output = {"m", "n"}
    # Partial sums: c passes over the contraction write the output c times and read it back c - 1 times.
    if {a, streamed} == output:
        weight_a = size["a"] * (2 * passes_b - 1)
    if {b, streamed} == output:
        weight_b = size["b"] * (2 * passes_a - 1)
    words = size["kept"] + weight_a + weight_b
    at = int(words.argmin())
    smallest_b = int(np.ceil(sides[b] / passes_b[at]))
    return float(words[at]), {a: int(ta[at]), b: smallest_b, streamed: 1}


def _useful_sides(side: int) -> Floats:
    """The smallest tile side for every possible number of tiles, ascending, as floats."""
    counts = np.arange(1, int(np.sqrt(side)) + 2)
    return np.unique(np.concatenate([np.ceil(side / counts), np.arange(1, int(np.sqrt(side)) + 2)])).astype(float)
