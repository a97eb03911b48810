"""Short measurements on one core of this machine's CPU, as rows to calibrate the `host` device with. A few seconds.

They run in a process of their own, as libraries take the number of their threads from the environment when they are
loaded. The time is that of the thread, not the wall clock: what other programs take from a busy machine does not count.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from fusetui.accelerator.errors import AcceleratorError
from fusetui.accelerator.rows import MeasuredRows

Run = Callable[[], npt.NDArray[np.float32]]

_ROUNDS: Final = 9  # over everything, so that a busy moment of the machine is not that of one shape
_LIMIT_S: Final = 120.0
_ONE_THREAD: Final = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
_SHAPES: Final = (
    *((side, side, side) for side in (32, 48, 64, 96, 128, 192, 256, 320, 384, 448)),
    *((1, side, side) for side in (128, 256, 512, 1024, 2048)),
    *((8, side, side) for side in (256, 512, 1024)),
    *((16, side, side) for side in (128, 256, 512, 1024)),
    *((64, side, side) for side in (128, 256, 512)),
    *((128, side, side) for side in (256, 384, 512)),
    *((512, 64, 512), (64, 512, 1024), (256, 256, 512), (384, 128, 128), (96, 768, 192), (256, 64, 1024)),
)
_SIZES: Final = tuple(int(2**power) for power in np.arange(10, 23.6, 0.5))


def measure_host() -> list[MeasuredRows]:
    """fp32 matrix products and additions of numpy on one core: the best run of each, operands where the last left them.

    Raises AcceleratorError when the measuring process fails.
    """
    command = [sys.executable, "-m", "fusetui.accelerator.measure_host"]
    environment = {**os.environ, **dict.fromkeys(_ONE_THREAD, "1")}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=_LIMIT_S)
    except (OSError, subprocess.SubprocessError) as error:
        raise AcceleratorError("host", f"could not be measured: {type(error).__name__}") from None
    best = np.array(json.loads(done.stdout))
    products, sums = best[: len(_SHAPES)], best[len(_SHAPES) :]
    m, n, k = np.array(_SHAPES, dtype=np.float64).T
    size = np.array(_SIZES, dtype=np.float64) * 4
    shape = {"batch": np.ones_like(m), "m": m, "n": n, "k": k}
    moved = {"bytes_in": 2 * size, "bytes_out": size, "rows": np.zeros_like(size)}
    return [
        MeasuredRows("matmul", "fp32", np.full(len(m), "matmul"), shape, products),
        MeasuredRows("vector", "fp32", np.full(len(size), "add"), moved, sums),
    ]


def _product(random: np.random.Generator, m: int, n: int, k: int) -> Run:
    a, b = random.random((m, k), dtype=np.float32), random.random((k, n), dtype=np.float32)
    out = np.empty((m, n), dtype=np.float32)
    return lambda: np.matmul(a, b, out=out)


def _sum(random: np.random.Generator, size: int) -> Run:
    a, b = random.random(size, dtype=np.float32), random.random(size, dtype=np.float32)
    out = np.empty(size, dtype=np.float32)
    return lambda: np.add(a, b, out=out)


def _best_ns(runs: Sequence[Run]) -> list[int]:
    """Least time (N,) of each. Two runs in a row, so that the second finds its operands where the first left them."""
    best = [sys.maxsize] * len(runs)
    for _ in range(_ROUNDS):
        for at, run in enumerate(runs):
            run()
            began = time.thread_time_ns()
            run()
            best[at] = min(best[at], time.thread_time_ns() - began)
    return best


def _main() -> None:
    random = np.random.default_rng(0)
    runs = [*(_product(random, *shape) for shape in _SHAPES), *(_sum(random, size) for size in _SIZES)]
    sys.stdout.write(json.dumps(_best_ns(runs)))


if __name__ == "__main__":
    _main()
