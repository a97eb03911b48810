"""One bounded change of plans or runtime, and what is to be known before it is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Literal

from fusetui.accelerator.runtime.config import Config, Lookup
from fusetui.accelerator.runtime.load import Load

Owner = Literal["compiler", "runtime", "scheduler"]
Change = Callable[[Load, Config], tuple[Load, Config]]

ONLY_THESE: Final = "that other arrivals gain as much: these requests came once"
MODEL: Final = "that a real device gains as much: plans are priced by the uncalibrated model"


@dataclass(frozen=True, slots=True)
class Slice:
    """The rows that show it: event times in [from_ns, to_ns] on the trace's clock, and a filter."""

    from_ns: int
    to_ns: int
    filter: str


@dataclass(frozen=True, slots=True)
class Cost:
    """What making the change takes.

    plans         plans to be made or captured; stall_ns: of all of them, None where no compile was seen in the trace
    memory_bytes  most that the new plans keep live (modelled), None unknown
    """

    plans: int = 0
    stall_ns: int | None = None
    memory_bytes: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Action:
    """A change to try.

    knob            what it turns: of several actions with one knob the best is proposed
    stream          whose requests it is for, "" for all
    bottleneck      class of what it is against; owner: the team whose it is
    change          load and runtime with it; None: it cannot be tried here, and `why_not` says why
    why             the figures that ask for it
    does_not_prove  what trying it leaves open
    """

    knob: str
    title: str
    stream: str
    bottleneck: str
    owner: Owner
    why: str
    slice: Slice
    cost: Cost
    rollback: str
    does_not_prove: tuple[str, ...]
    change: Change | None
    why_not: str = ""
    detail: tuple[str, ...] = ()


def lookups(config: Config) -> tuple[Lookup, ...]:
    """One lookup a table."""
    return config.lookup if isinstance(config.lookup, tuple) else (config.lookup,) * len(config.tables)


def with_lookup(config: Config, table: int, make: Callable[[Lookup], Lookup]) -> Config:
    """Another lookup for one table, made of its own; of a continuous batch, for its decode."""
    if config.decode is not None:
        return replace(config, lookup=make(lookups(config)[0]))
    own = list(lookups(config))
    own[table] = make(own[table])
    return replace(config, lookup=tuple(own))


def to_config(make: Callable[[Config], Config]) -> Change:
    """A change of the runtime alone."""

    def change(load: Load, config: Config) -> tuple[Load, Config]:
        return load, make(config)

    return change
