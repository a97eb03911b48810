"""Cycles of a systolic array in closed form, as cycle-accurate and analytical simulators count them.

Weight stationary without stalls: every fold of the weights takes R cycles to load, M + R + C - 2 to stream M rows
through R x C cells; this equals SCALE-Sim's count exactly. With memory: what has to be on chip before the first
product is loaded first, then the slowest of array, weight stream and output stream decides.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from fusetui.accelerator.errors import AcceleratorError

Numbers = npt.ArrayLike
Floats = npt.NDArray[np.float64]


def weight_stationary_cycles(m: Numbers, n: Numbers, k: Numbers, rows: int, columns: int) -> Floats:
    """Cycles of (m,k)x(k,n) on a `rows` x `columns` array, no stalls: folds * (2 rows + columns + m - 2) - 1."""
    m, n, k = (_sides(name, value) for name, value in (("m", m), ("n", n), ("k", k)))
    if min(rows, columns) < 1:
        raise AcceleratorError("array", f"{rows}x{columns}: must be at least 1x1")
    folds = np.ceil(k / rows) * np.ceil(n / columns)
    return np.asarray(folds * (2 * rows + columns + m - 2) - 1)


def unrolled_cycles(loops: Mapping[str, int], unrolled: Mapping[str, int]) -> float:
    """Cycles of a loop nest with some loops spread over the array: the product of the remaining trip counts."""
    trips = [np.ceil(trip / unrolled.get(name, 1)) for name, trip in loops.items()]
    return float(np.prod(trips))


def streamed_cycles(
    array_cycles: Numbers,
    input_bytes: Numbers,
    weight_bytes: Numbers,
    output_bytes: Numbers,
    *,
    bytes_per_cycle: float,
    prefetches: bool,
) -> Floats:
    """Cycles of one layer with device memory behind the array.

    prefetches   there is a buffer below the one that holds the input, so it loads while the array works;
                 otherwise the whole input is loaded first
    """
    if bytes_per_cycle <= 0:
        raise AcceleratorError("memory", f"{bytes_per_cycle:g} bytes per cycle: must be more than 0")
    array = np.asarray(array_cycles, float)
    load, weights, output = (np.asarray(b, float) / bytes_per_cycle for b in (input_bytes, weight_bytes, output_bytes))
    streams = np.maximum(weights, output)
    if prefetches:
        return np.asarray(np.maximum(array, load + streams))
    return np.asarray(load + np.maximum(array, streams))


def _sides(name: str, value: Numbers) -> Floats:
    sides = np.asarray(value, float)
    if not (sides >= 1).all():
        raise AcceleratorError("shape", f"{name}: every side must be at least 1")
    return sides
