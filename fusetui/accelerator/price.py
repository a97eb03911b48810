"""What a kernel costs: time, traffic and what it holds on chip."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

REGISTERS_PER_VALUE: Final = 8  # of one live value: four elements and their address


@dataclass(frozen=True, slots=True)
class Tile:
    """Tile of a matrix product: shape, parts of K, pipeline depth."""

    m: int
    n: int
    k: int
    split: int
    stages: int


@dataclass(frozen=True, slots=True)
class Price:
    """One kernel's cost. `time_ns` is infinite where no tile fits.

    served_bytes, filled_bytes  read by its operators from on-chip memory, read into it from device memory
    workspace_bytes             device memory it needs beside its tensors
    registers                   of one thread; None where the architecture has no register file
    """

    time_ns: float
    dram_bytes: float
    served_bytes: float
    filled_bytes: float
    spill_bytes: float
    workspace_bytes: float
    sram_bytes: float
    occupancy: float
    waves: int
    bottleneck: str
    tile: Tile | None
    flops: float
    repeated_flops: float
    registers: float | None = None

    @property
    def reuse_factor(self) -> float | None:
        """Bytes served on chip over bytes filled from device memory; None when nothing is filled."""
        return max(1.0, self.served_bytes / self.filled_bytes) if self.filled_bytes > 0 else None


FREE: Final = Price(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0, "launch", None, 0.0, 0.0)
