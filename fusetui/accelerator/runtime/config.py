"""How the runtime treats what arrives: batching, plan lookup, placement, cores, shared bandwidth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fusetui.accelerator.errors import AcceleratorError
from fusetui.accelerator.runtime.paths import PlanTable

BatchKind = Literal["none", "size", "deadline", "continuous"]
PlacementKind = Literal[
    "static", "hashed", "round_robin", "random", "least_loaded", "shortest", "shared", "stealing", "unlimited"
]
Miss = Literal["fallback", "adapt", "recompile"]


@dataclass(frozen=True, slots=True)
class Batching:
    """How requests of one stream become work.

    none        each alone, at once
    size        a batch of `size`; the last one closes with its last arrival
    deadline    a batch of `size`, or what has come `wait_ns` after its first
    continuous  requests join and leave a core's batch (at most `size`) between steps; `output` steps each
    merge       a batch runs as one job of all its rows; otherwise the gate only delays and each runs alone
    """

    kind: BatchKind = "none"
    size: int = 1
    wait_ns: int = 0
    merge: bool = True

    def __post_init__(self) -> None:
        if self.size < 1 or self.wait_ns < 0:
            raise AcceleratorError("batching", f"size {self.size}, wait {self.wait_ns} ns", "size 1 up, wait 0 up")


@dataclass(frozen=True, slots=True)
class Lookup:
    """What runs for a size that came.

    captured   sizes there is a plan for, ascending; empty: one plan fits every size
    limit      largest size any plan is used for, above it the generic path runs; None: the largest captured
    pad_limit  pad to the next captured size when that is at most this many times the size
    miss       otherwise: run the generic path, or make a plan for the exact size at `cost_ns`, once; `adapt` is a
               retuned plan (mapping adapted), `recompile` a new one (planned from then on)
    """

    captured: tuple[int, ...] = ()
    limit: int | None = None
    pad_limit: float = 2.0
    miss: Miss = "fallback"
    cost_ns: int = 0

    def __post_init__(self) -> None:
        if list(self.captured) != sorted(set(self.captured)) or any(c < 1 for c in self.captured):
            raise AcceleratorError("lookup", "captured sizes are not ascending from 1", "sort them")
        if self.pad_limit < 1 or self.cost_ns < 0:
            raise AcceleratorError("lookup", f"pad limit {self.pad_limit}, cost {self.cost_ns} ns", "1 up, 0 up")


@dataclass(frozen=True, slots=True)
class Placement:
    """Which core runs a job.

    static        the stream's: stream index modulo cores
    hashed        by a fixed hash of the job, in proportion to `weights` (one a core; empty: even)
    round_robin   in turn
    random        `seed`ed, in proportion to `weights`
    least_loaded  least work outstanding when it arrives
    shortest      fewest jobs among `choices` cores drawn at random (0: among all)
    shared        one queue, any core that is free
    stealing      hashed, and a core with nothing to do takes the oldest job of the longest queue
    unlimited     a core of its own: no queue at all
    """

    kind: PlacementKind = "shared"
    weights: tuple[float, ...] = ()
    choices: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        if any(not w >= 0 for w in self.weights) or (self.weights and not sum(self.weights) > 0) or self.choices < 0:
            raise AcceleratorError("placement", "a weight or number of choices is negative", "use 0 or more")


@dataclass(frozen=True, slots=True)
class Slow:
    """A core whose jobs that start in [from_ns, to_ns) take `factor` times as long (at least 1)."""

    core: int
    factor: float
    from_ns: int = 0
    to_ns: int = 1 << 62

    def __post_init__(self) -> None:
        if not self.factor >= 1:
            raise AcceleratorError("slow core", f"factor {self.factor}", "1 or more")


@dataclass(frozen=True, slots=True)
class Split:
    """A job is spread over `parts` cores and is done with its last part; each part is slow with a probability."""

    parts: int = 1
    slow_share: float = 0.0
    slow_factor: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.parts < 1 or not 0 <= self.slow_share <= 1 or not self.slow_factor >= 1:
            raise AcceleratorError("split", "parts below 1, a share outside 0..1 or a factor below 1", "correct it")


@dataclass(frozen=True, slots=True)
class Config:
    """A runtime.

    tables            plans, one for all streams or one a stream
    batching, lookup  one for all, or one a stream and one a table (continuous batching: one for all, and its lookup is
                      of the decode batch)
    cores             in all; a device is `cores_per_device` of them (0: all), sharing its memory bandwidth
    contention        whether jobs slow each other when together they ask for more than a device's bandwidth
    decode            continuous batching only: plans of a step by its batch size (the tables are then of prefill)
    """

    tables: tuple[PlanTable, ...]
    cores: int = 1
    cores_per_device: int = 0
    batching: Batching | tuple[Batching, ...] = Batching()
    lookup: Lookup | tuple[Lookup, ...] = Lookup()
    placement: Placement = Placement()
    slow: tuple[Slow, ...] = ()
    split: Split = Split()
    contention: bool = False
    decode: PlanTable | None = None

    def __post_init__(self) -> None:
        if not self.tables:
            raise AcceleratorError("runtime", "no plan table", "give one for all streams or one a stream")
        if not 1 <= self.cores <= 65_536 or self.cores_per_device < 0:
            raise AcceleratorError("runtime", f"{self.cores} cores", "1 to 65,536")
        if self.placement.weights and len(self.placement.weights) != self.cores:
            raise AcceleratorError(
                "placement", f"{len(self.placement.weights)} weights", f"one for each of {self.cores}"
            )
        if any(not 0 <= s.core < self.cores for s in self.slow):
            raise AcceleratorError("slow core", "is not one of the cores", f"0 to {self.cores - 1}")
        if isinstance(self.lookup, tuple) and len(self.lookup) != len(self.tables):
            raise AcceleratorError("runtime", f"{len(self.lookup)} lookups for {len(self.tables)} tables", "one each")
        batchings = self.batching if isinstance(self.batching, tuple) else (self.batching,)
        continuous = any(b.kind == "continuous" for b in batchings)
        if continuous and isinstance(self.batching, tuple):
            raise AcceleratorError("runtime", "continuous batching of one stream beside others", "one for all streams")
        if continuous != (self.decode is not None):
            raise AcceleratorError("runtime", "continuous batching and a decode table go together", "give both or none")

    def batching_of(self, stream: int) -> Batching:
        """The gate of a stream."""
        return self.batching[stream] if isinstance(self.batching, tuple) else self.batching

    def lookup_of(self, table: int) -> Lookup:
        """The lookup that goes with a plan table."""
        return self.lookup[table] if isinstance(self.lookup, tuple) else self.lookup

    @property
    def per_device(self) -> int:
        """Cores that share a device."""
        return self.cores_per_device or self.cores
