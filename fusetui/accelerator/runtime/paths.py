"""How long work takes by its size: what a plan runs, and what runs when no plan fits.

Between the sizes a path is known at, times are linear; above the largest they go on with the last slope, below the
smallest they are the smallest's. Padding and capture limits are the lookup's business, not the path's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from fusetui.accelerator.errors import AcceleratorError
from fusetui.accelerator.runtime.types import Floats, Ints


@dataclass(frozen=True, slots=True)
class Path:
    """Kernels at each known size. b sizes; k kernels over all of them, those of size i at first[i]:first[i + 1].

    rows        (b,) ascending
    first       (b + 1,)
    names       of the k kernels
    kernel_ns   (k,) duration
    launch_ns   (k,) time the device stood waiting for this launch
    dram_bytes  (k,); flops (k,)
    demand      (k,) traffic while it runs, as a multiple of the device's bandwidth
    output_ns   what each generated token adds
    """

    rows: Ints
    first: Ints
    names: tuple[str, ...]
    kernel_ns: Floats
    launch_ns: Floats
    dram_bytes: Floats
    flops: Floats
    demand: Floats
    output_ns: float = 0.0

    def __post_init__(self) -> None:
        k = len(self.names)
        arrays = (self.kernel_ns, self.launch_ns, self.dram_bytes, self.flops, self.demand)
        if not len(self.rows) or np.any(np.diff(self.rows) <= 0) or len(self.first) != len(self.rows) + 1:
            raise AcceleratorError("plan path", "its sizes are not ascending, or none", "give one or more, ascending")
        if self.first[0] != 0 or self.first[-1] != k or np.any(np.diff(self.first) < 1):
            raise AcceleratorError("plan path", "a size has no kernel", "one or more for each size")
        if not 0 <= self.output_ns < float("inf"):
            raise AcceleratorError("plan path", f"{self.output_ns} ns for each token", "0 or more")
        if any(len(a) != k or not (np.isfinite(a) & (a >= 0)).all() for a in arrays):
            raise AcceleratorError("plan path", "a kernel's time, bytes or demand is negative or missing", "correct it")

    @classmethod
    def of(
        cls,
        rows: ArrayLike,
        kernel_ns: ArrayLike,
        *,
        launch_ns: ArrayLike = 0.0,
        demand: ArrayLike = 0.0,
        output_ns: float = 0.0,
        name: str = "kernel",
    ) -> Self:
        """One kernel at each of some sizes, from plain numbers (one value for all sizes, or one each)."""
        at = np.atleast_1d(np.asarray(rows, np.int64))

        def each(value: ArrayLike) -> Floats:
            return np.broadcast_to(np.asarray(value, np.float64), at.shape).copy()

        none = np.zeros(len(at))
        return cls(
            at, np.arange(len(at) + 1), (name,) * len(at), each(kernel_ns), each(launch_ns), none, none,
            each(demand), output_ns,
        )  # fmt: skip

    @classmethod
    def affine(cls, base_ns: float, per_row_ns: float = 0.0, *, demand: float = 0.0, output_ns: float = 0.0) -> Self:
        """base + rows x per row (+ output x per token)."""
        top = 1 << 20
        return cls.of([0, top], [base_ns, base_ns + top * per_row_ns], demand=demand, output_ns=output_ns)

    def scaled(self, factor: float) -> Path:
        """The same kernels taking `factor` times as long; launches stay."""
        return replace(self, kernel_ns=self.kernel_ns * factor, output_ns=self.output_ns * factor)

    def time_ns(self, rows: Ints, output: Ints | int = 0) -> tuple[Floats, Floats]:
        """(kernels, exposed launches) of jobs with these rows and generated tokens."""
        kernels = np.add.reduceat(self.kernel_ns, self.first[:-1])
        launches = np.add.reduceat(self.launch_ns, self.first[:-1])
        return self._at(rows, kernels) + np.asarray(output) * self.output_ns, self._at(rows, launches)

    def demand_at(self, rows: Ints) -> Floats:
        """Mean demand on the device's bandwidth while a job of these rows runs."""
        if not self.demand.any():
            return np.zeros(len(rows))
        busy = np.add.reduceat(self.kernel_ns, self.first[:-1])
        asked = np.add.reduceat(self.kernel_ns * self.demand, self.first[:-1])
        return self._at(rows, np.divide(asked, busy, out=np.zeros_like(busy), where=busy > 0))

    def knot(self, rows: Ints) -> Ints:
        """Index of the smallest known size that holds these rows; the largest for more."""
        return np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)

    def _at(self, rows: Ints, values: Floats) -> Floats:
        if np.all(values == values[0]):
            return np.full(len(rows), values[0])
        left = np.clip(np.searchsorted(self.rows, rows, side="right") - 1, 0, len(values) - 2)
        slope = np.diff(values) / np.diff(self.rows)
        beyond = np.maximum(rows - self.rows[left], 0)
        at: Floats = np.maximum(values[left] + beyond * slope[left], 0.0)
        return at


@dataclass(frozen=True, slots=True)
class PlanTable:
    """What the compiler decided for one block.

    plan      what a planned, padded or adapted job runs
    fallback  the generic path
    best      the best plan known, when `plan` is not it: the difference is shown as its own share of latency
    """

    name: str
    plan: Path
    fallback: Path
    best: Path | None = None
