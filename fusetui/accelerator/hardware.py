"""What an accelerator is to the model: cores, rates, memories and launch costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal

from fusetui.accelerator.errors import HardwareError

Kind = Literal["gpu", "systolic", "cpu"]

_BYTES: Final[Mapping[str, float]] = MappingProxyType(
    {
        "fp64": 8.0,
        "fp32": 4.0,
        "tf32": 4.0,
        "fp16": 2.0,
        "bf16": 2.0,
        "fp8": 1.0,
        "int8": 1.0,
        "nvfp4": 0.5625,  # 4 bits and one 8-bit scale for every 16 values
    }
)
# Where a device lists no rate of its own for a type, the type whose units serve it.
_SERVED_BY: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "bf16": ("fp16",),
        "fp16": ("bf16",),
        "tf32": ("fp32",),
        "fp8": ("int8", "bf16", "fp16"),
        "int8": ("fp8", "bf16", "fp16"),
        "nvfp4": ("fp8", "bf16", "fp16"),
    }
)


def dtype_bytes(dtype: str) -> float:
    """Bytes of one element. Raises HardwareError for a type the model does not know."""
    try:
        return _BYTES[dtype]
    except KeyError:
        raise HardwareError("dtype", f"{dtype!r} is not known", f"one of {', '.join(_BYTES)}") from None


@dataclass(frozen=True, slots=True)
class LaunchCosts:
    """Host and queue costs of starting kernels, ns.

    call_ns       one launch call on the host
    gap_ns        between two kernels already queued
    latency_ns    from the end of a launch call to the start on an idle device
    graph_gap_ns  between two kernels of a replayed graph
    """

    call_ns: float
    gap_ns: float
    latency_ns: float
    graph_gap_ns: float


@dataclass(frozen=True, slots=True)
class Hardware:
    """One device. Rates are of the whole device, dense, per second; sizes in bytes.

    registers_per_core   32-bit registers, 0 where the architecture has no register file to fill
    l2_bytes             the cache all cores share, 0 where there is none
    mma                  smallest aligned (m, n, k) of the matrix unit, by dtype
    typical              shares of the peak rates that kernels are known to reach, where it is not those of the kind
    sources              where each value was read, by key
    """

    name: str
    title: str
    kind: Kind
    cores: int
    clock_hz: float
    matrix_flops: Mapping[str, float]
    vector_flops: Mapping[str, float]
    sram_bytes_per_core: int
    dram_bytes: int
    dram_bytes_per_s: float
    mma: Mapping[str, tuple[int, int, int]]
    launch: LaunchCosts
    registers_per_core: int = 0
    registers_per_thread: int = 255
    max_threads_per_core: int = 0
    max_blocks_per_core: int = 1
    l2_bytes: int = 0
    l2_bytes_per_s: float = 0.0
    typical: Mapping[str, float] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)

    def rate(self, dtype: str) -> float:
        """Peak matrix FLOP/s for `dtype`; HardwareError when the device has no unit for it."""
        return self.matrix_flops[self._serving(self.matrix_flops, dtype, "matrix_flops")]

    def vector_rate(self, dtype: str) -> float:
        """Peak vector FLOP/s; the fp32 rate where the type has none of its own."""
        rates = self.vector_flops
        return rates[dtype] if dtype in rates else rates["fp32"]

    def mma_shape(self, dtype: str) -> tuple[int, int, int]:
        """Smallest aligned (m, n, k) of the matrix unit."""
        return self.mma[self._serving(self.mma, dtype, "mma")]

    def _serving(self, table: Mapping[str, object], dtype: str, key: str) -> str:
        for name in (dtype, *_SERVED_BY.get(dtype, ())):
            if name in table:
                return name
        known = ", ".join(table) or "none"
        raise HardwareError(f"hardware {self.name}, key {key}", f"no value for {dtype!r}", f"it has {known}")
