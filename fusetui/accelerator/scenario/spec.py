"""What a scenario says, checked but not yet planned or drawn. Times in seconds as written."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fusetui.accelerator.launch import Mode
from fusetui.accelerator.runtime.arrivals import Mix
from fusetui.accelerator.runtime.config import Batching, Lookup, Placement, Slow


@dataclass(frozen=True, slots=True)
class Model:
    """A block that is served, planned for the device of the scenario.

    size      the block's parameter that a request (or a batch) brings: its rows
    planned   sizes there is a plan for; captured: whether only these (padded to) have one, or any size between too
    known     more sizes the model is asked about, so that what lies beyond the plans is not extrapolated
    layers    how often the block is repeated
    """

    name: str
    block: str
    shapes: tuple[tuple[str, int | str], ...]
    size: str
    planned: tuple[int, ...]
    captured: bool
    known: tuple[int, ...]
    dtype: str
    policy: str
    launch: Mode
    layers: int


@dataclass(frozen=True, slots=True)
class Rates:
    """Poisson arrivals: `per_s[i]` a second from `from_s[i]` on."""

    from_s: tuple[float, ...]
    per_s: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Bursts:
    """Arrivals of a process that is now quiet, now bursting; means of the stays in seconds."""

    quiet_per_s: float
    burst_per_s: float
    quiet_s: float
    burst_s: float


@dataclass(frozen=True, slots=True)
class Log:
    """Arrivals and sizes of a real request log, `speed` times faster."""

    path: str
    speed: float


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """Requests of one queue. `mixes` is empty for a log; `spread` is the sigma of data dependent work (lognormal)."""

    name: str
    model: str
    priority: int
    arrivals: Rates | Bursts | Log
    mixes: tuple[Mix, ...]
    spread: float


@dataclass(frozen=True, slots=True)
class MarkSpec:
    """An event worth a line across the charts."""

    at_s: float
    name: str


@dataclass(frozen=True, slots=True)
class Scenario:
    """One scenario. A live run repeats it every `seconds` with other draws.

    where     file it was read from; see: what to look for
    hardware  preset or file; devices of `slices` cores each: a core is one slice of a device, bandwidth is shared
    kernels   whether executions are told kernel by kernel, else job by job
    decode    name of the model a continuous batch steps through, "" without continuous batching
    """

    where: str
    title: str
    see: str
    seconds: float
    seed: int
    slo_ns: int | None
    hardware: str
    devices: int
    slices: int
    models: tuple[Model, ...]
    streams: tuple[StreamSpec, ...]
    batching: Batching
    placement: Placement
    lookup: Lookup
    decode: str
    contention: bool
    slow: tuple[Slow, ...]
    marks: tuple[MarkSpec, ...]
    kernels: bool

    @property
    def cores(self) -> int:
        """Cores in all."""
        return self.devices * self.slices

    def model(self, name: str) -> Model:
        """The model of that name."""
        return next(model for model in self.models if model.name == name)

    def with_policy(self, policy: str) -> Scenario:
        """The same with every model planned under another policy."""
        return replace(self, models=tuple(replace(model, policy=policy) for model in self.models))
