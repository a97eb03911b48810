"""What limits a kernel, as small integers for arrays."""

from __future__ import annotations

from typing import Final

LAUNCH: Final = 0  # fixed start and fill time
COMPUTE: Final = 1  # matrix or vector units
DRAM: Final = 2  # bytes to and from device memory
L2: Final = 3  # bytes to and from the shared cache
SPILL: Final = 4  # traffic of values that found no register

NAMES: Final = ("launch", "compute", "dram", "l2", "spill")
