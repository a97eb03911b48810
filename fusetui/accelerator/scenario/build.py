"""A scenario made to run: plans for its models, a runtime, and one round after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from fusetui.accelerator.runtime.config import Config, Slow
from fusetui.accelerator.runtime.outcome import Outcome
from fusetui.accelerator.runtime.simulate import simulate
from fusetui.accelerator.scenario.plans import Planned, core_hardware, plan_model
from fusetui.accelerator.scenario.requests import Arrived, requests
from fusetui.accelerator.scenario.spec import MarkSpec, Scenario


@dataclass(frozen=True, slots=True)
class Round:
    """One pass of a scenario on a clock that never falls.

    from_ns, to_ns  when it begins and when the next one does
    marks           with times on the same clock
    """

    outcome: Outcome
    from_ns: int
    to_ns: int
    marks: tuple[tuple[int, str], ...]


class Run:
    """Plans a scenario's models (some tenths of a second) and simulates its rounds.

    planned  by model name
    """

    def __init__(self, scenario: Scenario, logs: Mapping[str, Arrived] | None = None) -> None:
        """logs: what `requests` takes. Raises AcceleratorError."""
        self.scenario = scenario
        self.hardware = core_hardware(scenario.hardware, scenario.slices)
        self._logs = logs or {}
        self.planned: dict[str, Planned] = {
            model.name: plan_model(model, scenario.hardware, scenario.slices) for model in scenario.models
        }
        self.config = _config(scenario, self.planned)

    def rounds(self) -> Iterator[Round]:
        """Without end: each round has its own draws; queues and plans made are carried over.

        A continuous batch is not carried over: the next round begins when the batch has drained.
        """
        number, from_ns, before = 0, 0, None
        length = round(self.scenario.seconds * 1e9)
        while True:
            load = requests(self.scenario, number, self._logs)
            load = replace(load, arrival_ns=load.arrival_ns + from_ns)
            config = replace(self.config, slow=_shifted(self.config, from_ns))
            outcome = simulate(load, config, after=before)
            to_ns = from_ns + length
            if self.scenario.decode:
                to_ns = max(to_ns, int(outcome.end_ns.max(initial=0)))
            else:
                before = outcome
            yield Round(outcome, from_ns, to_ns, _marks(self.scenario.marks, from_ns))
            number, from_ns = number + 1, to_ns


def _config(scenario: Scenario, planned: Mapping[str, Planned]) -> Config:
    return Config(
        tables=tuple(planned[stream.model].table for stream in scenario.streams),
        cores=scenario.cores, cores_per_device=scenario.slices, batching=scenario.batching, lookup=scenario.lookup,
        placement=replace(scenario.placement, seed=scenario.seed), slow=scenario.slow, contention=scenario.contention,
        decode=planned[scenario.decode].table if scenario.decode else None,
    )  # fmt: skip


def _shifted(config: Config, by_ns: int) -> tuple[Slow, ...]:
    return tuple(replace(s, from_ns=s.from_ns + by_ns, to_ns=s.to_ns + by_ns) for s in config.slow)


def _marks(marks: tuple[MarkSpec, ...], from_ns: int) -> tuple[tuple[int, str], ...]:
    return tuple((from_ns + round(mark.at_s * 1e9), mark.name) for mark in sorted(marks, key=lambda m: m.at_s))
