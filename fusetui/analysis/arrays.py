"""Array types used by every measure."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.integer[Any]]
"""Small ids or counts; the width of the integers does not matter."""
Order = Any
"""An index that puts rows in order: positions (n,), or slice(None) when they are in order already."""


def repeated(value: float, n: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """One value seen n times (stride 0); `np.broadcast_to` does the same at many times the cost."""
    return np.ndarray((n,), dtype, np.array(value, dtype), strides=(0,))
