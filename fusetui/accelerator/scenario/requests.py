"""What arrives in one round of a scenario."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from fusetui.accelerator.runtime.arrivals import bursty, generator, shapes, varying
from fusetui.accelerator.runtime.load import Load, Stream
from fusetui.accelerator.runtime.types import Floats, Ints
from fusetui.accelerator.scenario.spec import Bursts, Log, Rates, Scenario, StreamSpec
from fusetui.accelerator.scenario.table import ScenarioError

MOST_REQUESTS: Final = 1 << 20
"""On one stream in a round: a round is held in memory."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """Requests of a real log: when they came, ns from the first, and their sizes; arrays (n,), in order."""

    arrival_ns: Ints
    tokens: Ints
    output: Ints


def round_seed(seed: int, number: int, stream: int) -> int:
    """A seed of its own for every stream of every round."""
    return int(np.random.SeedSequence([seed, number, stream]).generate_state(1, np.uint64)[0] >> np.uint64(1))


def requests(scenario: Scenario, number: int, logs: Mapping[str, Arrived]) -> Load:
    """Everything that arrives in round `number`, from 0 to the scenario's length.

    logs  by path as written in the scenario; a log that is shorter than the round ends early, in later rounds it
          is the same again
    """
    parts = [_of_stream(scenario, i, number, logs) for i in range(len(scenario.streams))]
    arrival = np.concatenate([part[0] for part in parts])
    stream = np.repeat(np.arange(len(parts)), [len(part[0]) for part in parts])
    order = np.argsort(arrival, kind="stable")
    tokens, output, work = (np.concatenate([part[i] for part in parts])[order] for i in (1, 2, 3))
    named = tuple(Stream(s.name, s.priority) for s in scenario.streams)
    return Load(arrival[order], tokens, output, stream[order], work, named)


def _of_stream(
    scenario: Scenario, index: int, number: int, logs: Mapping[str, Arrived]
) -> tuple[Ints, Ints, Ints, Floats]:
    stream, seed = scenario.streams[index], round_seed(scenario.seed, number, index)
    if isinstance(stream.arrivals, Log):
        if stream.arrivals.path not in logs:
            raise ScenarioError(scenario.where, f"log {stream.arrivals.path} was not read", "use `fusetui simulate`")
        log = logs[stream.arrivals.path]
        at = np.rint(log.arrival_ns / stream.arrivals.speed).astype(np.int64)
        inside = at < scenario.seconds * 1e9
        at, tokens, output = at[inside], log.tokens[inside], log.output[inside]
    else:
        at = _drawn(stream, seed, scenario.seconds, scenario.where)
        tokens, output = shapes(at, stream.mixes, seed)
    work = np.ones(len(at))
    if stream.spread:
        work = np.exp(generator(seed, 6).normal(-(stream.spread**2) / 2, stream.spread, len(at)))
    return at, tokens, output, work


def _drawn(stream: StreamSpec, seed: int, seconds: float, where: str) -> Ints:
    """Arrivals until `seconds`; the same however many are drawn beyond."""
    arrivals = stream.arrivals
    n = 64
    while n <= MOST_REQUESTS:
        if isinstance(arrivals, Bursts):
            at = bursty(arrivals.quiet_per_s, arrivals.burst_per_s, arrivals.quiet_s, arrivals.burst_s, n, seed)
        else:
            assert isinstance(arrivals, Rates)
            at = varying(arrivals.from_s, arrivals.per_s, n, seed)
        if at[-1] >= seconds * 1e9:
            return at[: int(np.searchsorted(at, math.ceil(seconds * 1e9)))]
        n *= 2
    raise ScenarioError(
        where, f"over {MOST_REQUESTS:,} requests on stream {stream.name}", "lower its rate or `seconds`"
    )
