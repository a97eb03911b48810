"""Scenario files: names of the library, or paths; strict about every key.

The whole file, with defaults in brackets:

    title, see            what it is, and what to look for in the panes
    seconds [60]          length; a live run repeats it          seed [1]      slo_ms [none]
    [hardware]            name ["H100"], devices [1], slices [1]: cores per device, which share its bandwidth
    [[model]]             name, block, shapes [{}], size, planned = [sizes], captured [true], known [[]],
                          dtype ["bf16"], policy ["balanced"], launch ["graph"], layers [1]
    [[stream]]            name, model [the only one], priority [0: first], spread [0], and one of
                          per_s = 300, or per_s = [300, 480] with from_s = [0, 20]
                          burst = { quiet_per_s, burst_per_s, quiet_s, burst_s }
                          log = "file", speed [1]
    [[stream.mix]]        tokens = [..], shares [even], output [none], from_s [0]; not with a log
    [batching]            kind ["none"], size [1], wait_ms [0], merge [true]; decode = "model" when continuous
    [placement]           kind ["shared"], weights, choices
    [lookup]              limit [largest planned], pad_limit [2], miss ["fallback"], miss_cost_ms [0]
    contention [true]     cores of a device share its bandwidth; not with continuous batching
    tell ["kernels"]      one row for each kernel, or for each of the "jobs" they make up
    [[slow]]              core, factor, from_s [0], to_s [end]
    [[mark]]              at_s, name
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Final, cast, get_args

from fusetui.accelerator.blocks import blocks
from fusetui.accelerator.launch import Mode
from fusetui.accelerator.policy import POLICIES
from fusetui.accelerator.runtime.arrivals import Mix
from fusetui.accelerator.runtime.config import Batching, BatchKind, Lookup, Miss, Placement, PlacementKind, Slow
from fusetui.accelerator.scenario.spec import Bursts, Log, MarkSpec, Model, Rates, Scenario, StreamSpec
from fusetui.accelerator.scenario.table import ScenarioError, Table

_LIBRARY: Final = Path(__file__).parent / "library"
_MOST_SECONDS: Final = 7 * 86_400.0
_RATE: Final = 1e6


def scenario_names() -> tuple[str, ...]:
    """Names of the scenarios that ship."""
    return tuple(sorted(path.stem for path in _LIBRARY.glob("*.toml")))


def load_scenario(name_or_path: str) -> Scenario:
    """One that ships, by name, or a TOML file. Raises ScenarioError: one line with file, key and remedy."""
    if name_or_path in scenario_names():
        path = _LIBRARY / f"{name_or_path}.toml"
    else:
        path = Path(name_or_path)
        if not path.is_file():
            raise ScenarioError(name_or_path, "no such scenario", f"a TOML file, or {', '.join(scenario_names())}")
    return parse(Table.read(path))


def parse(top: Table) -> Scenario:
    """A scenario out of the top table of a file."""
    title, see = top.text("title"), top.text("see")
    seconds = top.number("seconds", 60.0, low=0.001, high=_MOST_SECONDS)
    hardware = top.table("hardware")
    name = hardware.text("name", "H100")
    devices, slices = hardware.whole("devices", 1, low=1, high=4096), hardware.whole("slices", 1, low=1, high=1024)
    hardware.done()
    models = tuple(_model(table) for table in top.tables("model"))
    if not models:
        top.fail("model", "missing", "describe what is served in a [[model]] table")
    streams = tuple(_stream(table, models, seconds) for table in top.tables("stream"))
    if not streams:
        top.fail("stream", "missing", "say what arrives in a [[stream]] table")
    batching, decode = _batching(top.table("batching"), models)
    slo_ms = top.number("slo_ms", low=1e-6) if top.has("slo_ms") else None
    scenario = Scenario(
        where=top.where, title=title, see=see, seconds=seconds, seed=top.whole("seed", 1, low=0, high=1 << 62),
        slo_ns=None if slo_ms is None else round(slo_ms * 1e6), hardware=name, devices=devices, slices=slices,
        models=models, streams=streams, batching=batching,
        placement=_placement(top.table("placement"), devices * slices),
        lookup=_lookup(top.table("lookup"), models, decode), decode=decode, contention=_contention(top, decode),
        slow=tuple(_slow(table, devices * slices, seconds) for table in top.tables("slow")),
        marks=tuple(_mark(table, seconds) for table in top.tables("mark")),
        kernels=top.text("tell", "kernels", ("kernels", "jobs")) == "kernels",
    )  # fmt: skip
    top.done()
    return scenario


def _contention(top: Table, decode: str) -> bool:
    asked = top.flag("contention", not decode)
    if asked and decode:
        top.fail("contention", "does not go with continuous batching", "leave it out")
    return asked


def _model(table: Table) -> Model:
    known_blocks = {block.name: block for block in blocks()}
    block = known_blocks[table.text("block", choices=tuple(known_blocks))]
    shapes = table.table("shapes").items()
    if any(isinstance(v, bool) or not isinstance(v, (int, str)) for v in shapes.values()):
        table.fail("shapes", 'must be names with whole numbers, e.g. { model = "llama-3-8b", batch = 4 }')
    planned = table.wholes("planned", low=1)
    if not planned or list(planned) != sorted(set(planned)):
        table.fail("planned", "must be sizes, smallest first", "e.g. [128, 512, 2048]")
    if len(planned) > 64:
        table.fail("planned", f"{len(planned)} sizes", "at most 64")
    model = Model(
        name=table.text("name"), block=block.name, shapes=tuple(shapes.items()),
        size=table.text("size", choices=tuple(block.defaults)), planned=planned,
        captured=table.flag("captured", True), known=table.wholes("known", [], low=1),
        dtype=table.text("dtype", "bf16"), policy=table.text("policy", "balanced", tuple(POLICIES)),
        launch=cast(Mode, table.text("launch", "graph", get_args(Mode))),
        layers=table.whole("layers", 1, low=1, high=256),
    )  # fmt: skip
    table.done()
    return model


def _stream(table: Table, models: tuple[Model, ...], seconds: float) -> StreamSpec:
    only = models[0].name if len(models) == 1 else None
    arrivals = _arrivals(table)
    mixes = tuple(_mix(mix, seconds) for mix in table.tables("mix"))
    if isinstance(arrivals, Log) == bool(mixes):
        table.fail(
            "mix", "goes with arrivals that have no sizes of their own", "give a log, or arrivals and [[stream.mix]]"
        )
    if mixes and (mixes[0].from_s != 0 or any(a.from_s >= b.from_s for a, b in pairwise(mixes))):
        table.fail("mix", "must start at from_s = 0 and be in order of time")
    stream = StreamSpec(
        name=table.text("name"), model=table.text("model", only, [m.name for m in models]),
        priority=table.whole("priority", 0, low=0, high=1000), arrivals=arrivals, mixes=mixes,
        spread=table.number("spread", 0.0, low=0, high=3),
    )  # fmt: skip
    table.done()
    return stream


def _arrivals(table: Table) -> Rates | Bursts | Log:
    given = [key for key in ("per_s", "burst", "log") if table.has(key)]
    if len(given) != 1:
        table.fail("per_s", f"{len(given)} kinds of arrivals", "give one of per_s, burst, log")
    if given[0] == "log":
        return Log(table.text("log"), table.number("speed", 1.0, low=1e-6, high=1e6))
    if given[0] == "burst":
        burst = table.table("burst")
        found = Bursts(
            burst.number("quiet_per_s", low=0, high=_RATE), burst.number("burst_per_s", low=1e-6, high=_RATE),
            burst.number("quiet_s", low=1e-6), burst.number("burst_s", low=1e-6),
        )  # fmt: skip
        burst.done()
        return found
    if not table.has("from_s"):
        return Rates((0.0,), (table.number("per_s", low=1e-6, high=_RATE),))
    from_s, per_s = table.numbers("from_s", low=0), table.numbers("per_s", low=0, high=_RATE)
    if len(from_s) != len(per_s) or not from_s or from_s[0] != 0 or from_s != sorted(set(from_s)) or per_s[-1] <= 0:
        table.fail("from_s", "must be one time for each rate, from 0, in order; the last rate above 0")
    return Rates(tuple(from_s), tuple(per_s))


def _mix(table: Table, seconds: float) -> Mix:
    tokens = table.wholes("tokens", low=1)
    shares = table.numbers("shares", [1.0] * len(tokens), low=0)
    output = table.wholes("output", [], low=0)
    if not tokens or len(shares) != len(tokens) or not sum(shares) > 0 or (output and len(output) != len(tokens)):
        table.fail("tokens", "must have one share each, and one output each when there are outputs")
    mix = Mix(tokens, tuple(shares), output, table.number("from_s", 0.0, low=0, high=seconds))
    table.done()
    return mix


def _batching(table: Table, models: tuple[Model, ...]) -> tuple[Batching, str]:
    kind = cast(BatchKind, table.text("kind", "none", get_args(BatchKind)))
    batching = Batching(
        kind, table.whole("size", 1, low=1, high=1 << 20), round(table.number("wait_ms", 0.0, low=0, high=1e9) * 1e6),
        table.flag("merge", True),
    )  # fmt: skip
    decode = table.text("decode", "", ["", *(m.name for m in models)])
    if (kind == "continuous") != bool(decode):
        table.fail("decode", "continuous batching and a model to step through go together")
    table.done()
    return batching, decode


def _placement(table: Table, cores: int) -> Placement:
    kind = cast(PlacementKind, table.text("kind", "shared", get_args(PlacementKind)))
    weights = table.numbers("weights", [], low=0)
    if weights and (len(weights) != cores or not sum(weights) > 0):
        table.fail("weights", f"{len(weights)} of them", f"one for each of {cores} cores, not all 0")
    placement = Placement(kind, tuple(weights), table.whole("choices", 0, low=0, high=cores))
    table.done()
    return placement


def _lookup(table: Table, models: tuple[Model, ...], decode: str) -> Lookup:
    asked = [m for m in models if m.captured and (not decode or m.name == decode)]
    captured = tuple(sorted({size for model in asked for size in model.planned}))
    miss = cast(Miss, table.text("miss", "fallback", get_args(Miss)))
    limit = table.whole("limit", low=1) if table.has("limit") else None
    lookup = Lookup(
        captured, limit, table.number("pad_limit", 2.0, low=1, high=1e6), miss,
        round(table.number("miss_cost_ms", 0.0, low=0, high=1e9) * 1e6),
    )  # fmt: skip
    table.done()
    return lookup


def _slow(table: Table, cores: int, seconds: float) -> Slow:
    from_s = table.number("from_s", 0.0, low=0, high=seconds)
    to_s = table.number("to_s", seconds, low=from_s, high=seconds)
    slow = Slow(
        table.whole("core", low=0, high=cores - 1), table.number("factor", low=1, high=1e6), round(from_s * 1e9),
        round(to_s * 1e9),
    )  # fmt: skip
    table.done()
    return slow


def _mark(table: Table, seconds: float) -> MarkSpec:
    mark = MarkSpec(table.number("at_s", low=0, high=seconds), table.text("name"))
    table.done()
    return mark
