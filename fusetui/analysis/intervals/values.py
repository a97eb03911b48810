"""What intervals are worked out of."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

Values = npt.NDArray[Any]
"""int64 or float64, (n,)."""
