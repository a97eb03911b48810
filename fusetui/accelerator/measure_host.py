"""Short measurements on this machine's CPU, as rows to calibrate the `host` device with. About a second."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from fusetui.accelerator.rows import MeasuredRows

Array = npt.NDArray[np.float32]

_REPEATS: Final = 5
_SHAPES: Final = (
    *((side, side, side) for side in (32, 64, 96, 128, 192, 256, 384, 512, 640)),
    *((1, side, side) for side in (128, 256, 512, 1024, 2048)),
    *((16, side, side) for side in (128, 256, 512, 1024)),
    *((128, side, side) for side in (256, 512, 768)),
    *((512, 64, 512), (64, 512, 1024), (256, 256, 1024)),
)
_SIZES: Final = tuple(int(2**power) for power in np.arange(10, 24.5, 0.75))


def measure_host() -> list[MeasuredRows]:
    """fp32 matrix products and additions of numpy: the best of five runs each, operands in the caches as they are."""
    random = np.random.default_rng(0)
    products = np.array([_product_ns(random, *shape) for shape in _SHAPES])
    m, n, k = np.array(_SHAPES, dtype=np.float64).T
    sums = np.array([_sum_ns(random, size) for size in _SIZES])
    size = np.array(_SIZES, dtype=np.float64) * 4
    return [
        MeasuredRows(
            "matmul",
            "fp32",
            np.array(["matmul"] * len(m)),
            {"batch": np.ones_like(m), "m": m, "n": n, "k": k},
            products,
        ),
        MeasuredRows(
            "vector",
            "fp32",
            np.array(["add"] * len(size)),
            {"bytes_in": 2 * size, "bytes_out": size, "rows": np.zeros_like(size)},
            sums,
        ),
    ]


def _product_ns(random: np.random.Generator, m: int, n: int, k: int) -> float:
    a, b = random.random((m, k), dtype=np.float32), random.random((k, n), dtype=np.float32)
    out = np.empty((m, n), dtype=np.float32)
    return _best_ns(lambda: np.matmul(a, b, out=out))


def _sum_ns(random: np.random.Generator, size: int) -> float:
    a, b = random.random(size, dtype=np.float32), random.random(size, dtype=np.float32)
    out = np.empty(size, dtype=np.float32)
    return _best_ns(lambda: np.add(a, b, out=out))


def _best_ns(run: Callable[[], Array]) -> float:
    best = float("inf")
    for _ in range(_REPEATS):
        began = time.perf_counter_ns()
        run()
        best = min(best, time.perf_counter_ns() - began)
    return best
