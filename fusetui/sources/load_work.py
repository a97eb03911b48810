"""What the made-up device is asked to do: streams, kernels, shapes, and an incident every minute.

All numbers are invented round figures that give readable panes; none describes a real device.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from fusetui.telemetry.schema import ADAPTED, FALLBACK, MAPPINGS, PLANNED

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

KERNELS: Final = ("attention", "gemm", "norm")
KERNEL_WORK: Final = np.array([3.0, 4.0, 0.5])
KERNEL_DRAM: Final = np.array([200.0, 140.0, 360.0])  # bytes per ns of planned service on one core
KERNEL_REUSE: Final = np.array([1.5, 6.0, 1.0])  # SRAM bytes per DRAM byte
KERNEL_FLOPS: Final = np.array([18e3, 42e3, 1.2e3])  # per ns
LAUNCH_NS: Final = 4_000


@dataclass(frozen=True, slots=True)
class Load:
    """One stream. share: of requests; kernels: indices in KERNELS, one launch each; work: per kernel, relative."""

    name: str
    share: float
    kernels: tuple[int, ...]
    work: float
    batch: int
    shapes: tuple[str, ...]


LOADS: Final = (
    Load("prefill", 0.15, (0, 1, 1, 2) * 3, 2.0, 1, ("m=512", "m=1024", "m=1536", "m=3000")),
    Load("decode", 0.65, (0, 1, 2) * 2, 0.6, 16, ("m=16", "m=32", "m=24", "m=7")),
    Load("embed", 0.20, (1, 1, 2), 1.0, 8, ("m=64", "m=128", "m=96", "m=37")),
)
SHAPE_SHARE: Final = np.array([0.50, 0.30, 0.15, 0.05])
SHAPE_MAPPING: Final = np.array([MAPPINGS.index(m) for m in (PLANNED, PLANNED, ADAPTED, FALLBACK)], np.int8)
# Larger shapes take longer; an adapted one pays for padding, a fallback for the generic kernel.
SHAPE_WORK: Final = np.array([0.8, 1.2, 1.0 * 1.12, 1.0 * 1.8])
SHAPES: Final = tuple(f"{shape} {load.name} bf16" for load in LOADS for shape in load.shapes)

KERNELS_OF: Final = np.array([len(load.kernels) for load in LOADS])
ROWS_PER_REQUEST: Final = float(sum(load.share * (len(load.kernels) + 1) for load in LOADS))
WORK_PER_REQUEST: Final = float(
    sum(load.share * load.work * KERNEL_WORK[list(load.kernels)].sum() for load in LOADS)
    * (SHAPE_SHARE * SHAPE_WORK).sum()
)
SEQUENCE: Final = np.concatenate([np.array(load.kernels) for load in LOADS])
SEQUENCE_AT: Final = np.cumsum(KERNELS_OF) - KERNELS_OF
LOAD_WORK: Final = np.array([load.work for load in LOADS])
LOAD_BATCH: Final = np.array([load.batch for load in LOADS])

INCIDENT_EVERY_NS: Final = 60_000_000_000
INCIDENT_FROM_NS: Final = 20_000_000_000
INCIDENT_FOR_NS: Final = 10_000_000_000
SLOW_CORE: Final = 3
SLOWDOWN: Final = 2.2
BURST: Final = 1.6


def in_incident(at_ns: int) -> bool:
    """Whether, at this time since the start, core 3 of device 0 is slow and prefill requests come in a burst."""
    return INCIDENT_FROM_NS <= at_ns % INCIDENT_EVERY_NS < INCIDENT_FROM_NS + INCIDENT_FOR_NS


@dataclass(slots=True)
class Requests:
    """Arrived requests; all arrays (n,). load: index in LOADS; shape: index in its shapes; core: over all devices."""

    arrival_ns: Ints
    load: Ints
    shape: Ints
    core: Ints


def arrivals(rng: np.random.Generator, per_s: float, from_ns: int, span_ns: int, cores: int) -> Requests:
    """Poisson arrivals in [from_ns, from_ns + span_ns), in order; `per_s` requests a second when all is well."""
    rates = per_s * span_ns / 1e9 * np.array([load.share for load in LOADS])
    if in_incident(from_ns):
        rates[0] *= BURST
    counts = rng.poisson(rates)
    n = int(counts.sum())
    at_ns = from_ns + np.floor(rng.random(n) * span_ns).astype(np.int64)
    order = np.argsort(at_ns, kind="stable")
    load = np.repeat(np.arange(len(LOADS)), counts)[order]
    shape = np.searchsorted(np.cumsum(SHAPE_SHARE)[:-1], rng.random(n), side="right")
    return Requests(at_ns[order], load, shape, rng.integers(0, cores, n))
