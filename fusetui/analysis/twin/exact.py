"""The twin of a simulated trace: the runtime of its scenario, under the requests that came."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from fusetui.accelerator.errors import AcceleratorError
from fusetui.accelerator.policy import POLICIES
from fusetui.accelerator.runtime.config import Config, Slow
from fusetui.accelerator.runtime.load import Load, Stream
from fusetui.accelerator.scenario.build import Run
from fusetui.accelerator.scenario.parse import load_scenario, scenario_names
from fusetui.accelerator.scenario.requests import requests
from fusetui.accelerator.scenario.spec import Scenario
from fusetui.analysis.arrays import Floats
from fusetui.analysis.twin.requests import Requests
from fusetui.telemetry.header import Header

SIMULATED: Final = "simulated"
_MOST_ROUNDS: Final = 16


@dataclass(frozen=True, slots=True)
class Exact:
    """A scenario's runtime and the requests that came, with their work as drawn."""

    scenario: Scenario
    config: Config
    load: Load
    notes: tuple[str, ...]


def scenario_of(header: Header) -> Scenario | None:
    """The scenario that ships and that the header names, with its seed and policy; None: another, or none."""
    name, _, title = header.build.get("scenario", "").partition(": ")
    if header.source != SIMULATED or name not in scenario_names():
        return None
    scenario = load_scenario(name)
    seed, policies = header.build.get("seed", ""), header.build.get("policy", "").split(", ")
    if title != scenario.title or not seed.isascii() or not seed.isdigit():
        return None
    scenario = replace(scenario, seed=int(seed))
    if list(dict.fromkeys(model.policy for model in scenario.models)) == policies:
        return scenario
    return scenario.with_policy(policies[0]) if len(policies) == 1 and policies[0] in POLICIES else None


def exact_of(scenario: Scenario, came: Requests) -> Exact | None:
    """None where the requests are not of the scenario's streams."""
    names = [stream.name for stream in scenario.streams]
    if not set(came.streams) <= set(names):
        return None
    config = Run(scenario).config
    index = np.array([names.index(name) for name in came.streams], np.int64)
    load = Load.of(
        came.enqueue - came.enqueue[0], came.tokens, came.output, stream=index[came.stream],
        streams=[_stream(scenario, i) for i in range(len(names))],
    )  # fmt: skip
    work, slow, known = _drawn(scenario, load, came)
    notes: tuple[str, ...] = ()
    if not known:
        notes = ("the requests are not those the scenario draws: data dependent work and slow cores are left out",)
    return Exact(scenario, replace(config, slow=slow), replace(load, work=work), notes)


def _drawn(scenario: Scenario, load: Load, came: Requests) -> tuple[Floats, tuple[Slow, ...], bool]:
    """(work of each request, slow cores on the load's clock, whether the draws are those that came).

    Requests are numbered through the rounds: a round is found again by its numbers, and counts when sizes are as drawn
    and all arrivals are late by the same time, that of the round's beginning.
    """
    work = np.ones(len(came))
    slow: list[Slow] = []
    first, found = 0, 0
    newest = int(came.number.max())
    for number in range(_MOST_ROUNDS):
        try:
            drawn = requests(scenario, number, {})
        except AcceleratorError:
            break
        mine = np.flatnonzero((came.number >= first) & (came.number < first + len(drawn)))
        at = came.number[mine] - first
        late = load.arrival_ns[mine] - drawn.arrival_ns[at]
        same = np.array_equal(drawn.tokens[at], load.tokens[mine]) and np.array_equal(
            drawn.stream[at], load.stream[mine]
        )
        if len(mine) and same and int(late.min()) == int(late.max()):
            work[mine] = drawn.work[at]
            found += len(mine)
            begin = int(late[0])
            slow += [replace(s, from_ns=s.from_ns + begin, to_ns=s.to_ns + begin) for s in scenario.slow]
        first += len(drawn)
        if first > newest:
            break
    whole = found == len(came)
    return (work, tuple(slow), True) if whole else (np.ones(len(came)), (), False)


def _stream(scenario: Scenario, index: int) -> Stream:
    return Stream(scenario.streams[index].name, scenario.streams[index].priority)
