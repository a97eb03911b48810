"""The knobs of the runtime: what the twin of a trace may be asked with, and one step up or down."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, get_args

from fusetui.accelerator.policy import POLICIES
from fusetui.accelerator.runtime.config import Batching, BatchKind, Config, Lookup, Placement, PlacementKind
from fusetui.accelerator.runtime.load import Load
from fusetui.accelerator.scenario.build import Run
from fusetui.analysis.twin import Twin
from fusetui.app import fmt
from fusetui.app.knobs import FACTORS, Changes, Knob, Value

RUNTIME: Final = "runtime."
SPEED, CORES, PLACEMENT = f"{RUNTIME}speed", f"{RUNTIME}cores", f"{RUNTIME}placement"
GATE, SIZE, WAIT = f"{RUNTIME}gate", f"{RUNTIME}size", f"{RUNTIME}wait"
BUCKETS, LIMIT, FUSION = f"{RUNTIME}buckets", f"{RUNTIME}limit", f"{RUNTIME}fusion"
AS_SEEN: Final = "as seen"
_BUCKETS: Final = (AS_SEEN, "every other", "powers of 2", "any size")
_WAITS_NS: Final = tuple(step * 10**power for power in range(4, 10) for step in (1, 2, 5))
_MOST: Final = 1 << 20
_MOST_CORES: Final = 1 << 12
_KINDS: Final = tuple(kind for kind in get_args(PlacementKind) if kind != "unlimited")


def runtime_knobs(twin: Twin) -> tuple[Knob, ...]:
    """The knobs that mean something for this runtime."""
    config = twin.config
    knobs = [Knob(SPEED, "arrivals", "factor"), Knob(CORES, "cores", "count"), Knob(PLACEMENT, "placement", "choice")]
    if config.decode is not None:
        knobs.append(Knob(SIZE, "batch size", "count"))
    else:
        knobs += [Knob(GATE, "batching", "choice"), Knob(SIZE, "batch size", "count"), Knob(WAIT, "batch wait", "time")]
    if _captured(config):
        knobs += [Knob(BUCKETS, "plan sizes", "choice"), Knob(LIMIT, "largest plan", "count")]
    if twin.scenario is not None:
        knobs.append(Knob(FUSION, "fusion", "choice"))
    return tuple(knobs)


def runtime_value(twin: Twin, name: str) -> Value:
    """Where a knob stands today; of several streams the largest."""
    config = twin.config
    gates = _gates(config)
    policies = {model.policy for model in twin.scenario.models} if twin.scenario else set()
    today: dict[str, Value] = {
        SPEED: 1.0,
        CORES: config.cores,
        PLACEMENT: config.placement.kind,
        GATE: max(gates, key=lambda gate: gate.size).kind,
        SIZE: max(gate.size for gate in gates),
        WAIT: max(gate.wait_ns for gate in gates),
        BUCKETS: AS_SEEN,
        LIMIT: max(_captured(config), default=1),
        FUSION: policies.pop() if len(policies) == 1 else AS_SEEN,
    }
    return today[name]


def runtime_stepped(knob: Knob, value: Value, steps: int) -> Value:
    """The value one step up or down; at an end of a scale it stays, words go round."""
    if knob.sort == "choice":
        words = _words(knob.name)
        at = words.index(str(value)) if str(value) in words else (-1 if steps > 0 else 0)
        return words[(at + steps) % len(words)]
    if knob.sort == "count":
        most = _MOST_CORES if knob.name == CORES else _MOST
        return min(most, int(value) * 2) if steps > 0 else max(1, int(value) // 2)
    ladder: tuple[float, ...] = FACTORS if knob.sort == "factor" else _WAITS_NS
    now = float(value)
    rungs = [rung for rung in ladder if (rung > now * 1.001 if steps > 0 else rung < now * 0.999)]
    if not rungs:
        return value
    return rungs[0] if steps > 0 else rungs[-1]


def runtime_shown(knob: Knob, value: Value) -> str:
    """A value as people write it."""
    if knob.sort == "factor":
        return f"×{float(value):g}"
    if knob.sort == "time":
        return fmt.duration(float(value)).strip() if value else "none"
    return str(value).replace("_", " ")


def runtime_changed(twin: Twin, changes: Changes) -> tuple[Load, Config]:
    """The twin's load and runtime under other knobs. Raises AcceleratorError for what does not fit together."""
    config = twin.config
    if FUSION in changes and twin.scenario is not None:
        planned = Run(twin.scenario.with_policy(str(changes[FUSION]))).config
        config = replace(config, tables=planned.tables, decode=planned.decode)
    if {GATE, SIZE, WAIT} & set(changes):
        config = replace(config, batching=_batching(config, changes))
    if {BUCKETS, LIMIT} & set(changes):
        lookups = config.lookup if isinstance(config.lookup, tuple) else (config.lookup,)
        changed = tuple(_lookup(lookup, changes) for lookup in lookups)
        config = replace(config, lookup=changed if isinstance(config.lookup, tuple) else changed[0])
    if CORES in changes or PLACEMENT in changes:
        config = _placed(config, changes)
    return twin.load.scaled(float(changes.get(SPEED, 1.0))), config


def _words(name: str) -> tuple[str, ...]:
    if name == PLACEMENT:
        return _KINDS
    if name == GATE:
        return tuple(kind for kind in get_args(BatchKind) if kind != "continuous")
    return _BUCKETS if name == BUCKETS else tuple(POLICIES)


def _gates(config: Config) -> tuple[Batching, ...]:
    return config.batching if isinstance(config.batching, tuple) else (config.batching,)


def _captured(config: Config) -> set[int]:
    lookups = config.lookup if isinstance(config.lookup, tuple) else (config.lookup,)
    return {size for lookup in lookups for size in lookup.captured}


def _batching(config: Config, changes: Changes) -> Batching | tuple[Batching, ...]:
    """Each stream's gate, where it is not told anything else as it was."""
    gates = []
    for gate in _gates(config):
        kind: BatchKind = changes.get(GATE, gate.kind)  # type: ignore[assignment]
        wait_ns = int(changes.get(WAIT, gate.wait_ns or (_WAITS_NS[6] if kind == "deadline" else 0)))
        gates.append(replace(gate, kind=kind, size=int(changes.get(SIZE, gate.size)), wait_ns=wait_ns))
    return tuple(gates) if isinstance(config.batching, tuple) else gates[0]


def _lookup(lookup: Lookup, changes: Changes) -> Lookup:
    """Other sizes that have a plan; beyond the largest that was there they double up to the one asked for."""
    sizes = lookup.captured
    if not sizes:
        return lookup
    limit = int(changes.get(LIMIT, sizes[-1]))
    how = changes.get(BUCKETS, AS_SEEN)
    if how == "any size":
        return replace(lookup, captured=(), limit=limit)
    if how == "powers of 2":
        sizes = tuple(1 << bit for bit in range(21) if sizes[0] <= 1 << bit <= sizes[-1]) or sizes
    elif how == "every other":
        sizes = sizes[::-1][::2][::-1]
    kept = [size for size in sizes if size <= limit]
    while (kept[-1] if kept else 0) < limit:
        kept.append(min(limit, kept[-1] * 2) if kept else limit)
    return replace(lookup, captured=tuple(kept), limit=None)


def _placed(config: Config, changes: Changes) -> Config:
    cores = int(changes.get(CORES, config.cores))
    kind: PlacementKind = changes.get(PLACEMENT, config.placement.kind)  # type: ignore[assignment]
    same = cores == config.cores and kind == config.placement.kind
    placement = Placement(
        kind, config.placement.weights if same else (), config.placement.choices, config.placement.seed
    )
    slow = tuple(one for one in config.slow if one.core < cores)
    # Cores that are added come with devices of their own: the same cores on each.
    return replace(config, cores=cores, placement=placement, slow=slow, cores_per_device=config.per_device)
