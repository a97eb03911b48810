"""A simulation's rounds as contract rows, a fixed step of simulated time after the other.

What comes out, and in which order, depends on the scenario and its seed alone, not on who asks when.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa

from fusetui.accelerator.scenario.build import Round, Run
from fusetui.sources.simulated_gauges import Gauges
from fusetui.sources.simulated_round import ABSENT, Work, executions_of, jobs_of, no_work, requests_of
from fusetui.sources.simulated_rows import Part, counter_part, mark_part, to_batch, work_part
from fusetui.sources.simulated_words import RunWords
from fusetui.telemetry.schema import EXECUTION, REQUEST

STEP_NS: Final = 250_000_000
_GAUGE_STEPS: Final = 2
_OPEN_STEPS: Final = 4
_STEPS_PER_BATCH: Final = 4


class Steps:
    """Rows of a run from its beginning on. `position_ns`: everything up to there has come out."""

    def __init__(self, run: Run, rounds: Iterator[Round], start_ns: int = 0) -> None:
        """rounds: those of the run; start_ns: added to every time."""
        self.position_ns = 0
        self._rounds = rounds
        self._words = RunWords(run)
        self._start_ns = start_ns
        self._slices = run.scenario.slices
        self._kernels = run.scenario.kernels
        self._gauges = Gauges(run.scenario.devices, self._slices, run.hardware.dram_bytes_per_s)
        self._known_until_ns = 0
        self._next_request = 0
        self._runs, self._requests = _Ending(), _Ending()
        self._marks: list[tuple[int, str]] = []
        self._steps = 0

    @property
    def known_steps(self) -> int:
        """Steps that can be told without another round."""
        return (self._known_until_ns - self.position_ns) // STEP_NS

    def batch(self, steps: int) -> pa.RecordBatch | None:
        """The rows of the next steps; None when there are none."""
        parts = [part for _ in range(steps) for part in self._step()]
        return to_batch(parts, self._words, self._start_ns) if parts else None

    def _step(self) -> list[Part]:
        from_ns, to_ns = self.position_ns, self.position_ns + STEP_NS
        while self._known_until_ns < to_ns and (turn := next(self._rounds, None)) is not None:
            self._take_in(turn)
        self._steps += 1
        parts = [mark_part(at, self._words.mark_name(name)) for at, name in self._marks if from_ns <= at < to_ns]
        self._marks = [mark for mark in self._marks if mark[0] >= to_ns]
        parts.append(work_part(EXECUTION, self._runs.until(to_ns), self._slices))
        parts.append(work_part(REQUEST, self._requests.until(to_ns), self._slices))
        if self._steps % _GAUGE_STEPS == 0:
            parts += self._read_gauges(to_ns - _GAUGE_STEPS * STEP_NS, to_ns)
        if self._steps % _OPEN_STEPS == 0:
            parts += self._open(to_ns)
        self.position_ns = to_ns
        return [part for part in parts if len(part["name"])]

    def _take_in(self, turn: Round) -> None:
        requests = requests_of(turn, self._words, self._next_request)
        tell = executions_of if self._kernels else jobs_of
        self._runs.add(tell(turn, self._words, self._next_request))
        self._next_request += len(requests)
        self._requests.add(requests.by_end())
        self._marks += turn.marks
        self._known_until_ns = turn.to_ns

    def _read_gauges(self, from_ns: int, to_ns: int) -> list[Part]:
        readings = self._gauges.read(self._runs.held, self._requests.held, from_ns, to_ns)
        self._runs.forget()
        self._requests.forget()
        return [counter_part(to_ns, reading, self._words) for reading in readings]

    def _open(self, now_ns: int) -> list[Part]:
        """What has come and is not done: requests, and the kernels that run or wait at the head of a job."""
        requests, runs = self._requests.held, self._runs.held
        begun = (runs.start <= now_ns) & (runs.end > now_ns)
        waits = (runs.enqueue <= now_ns) & (runs.start > now_ns) & (runs.node <= 0)
        there = (requests.enqueue <= now_ns) & (requests.end > now_ns)
        chosen = runs.take((begun | waits) & (runs.request != ABSENT))
        return [
            work_part(REQUEST, requests.take(there), self._slices, open_at_ns=now_ns),
            work_part(EXECUTION, chosen, self._slices, open_at_ns=now_ns),
        ]


class _Ending:
    """Work in the order of its ends, handed out up to a time; what was handed out is held until `forget`."""

    def __init__(self) -> None:
        self.held = no_work()
        self._out = 0

    def add(self, work: Work) -> None:
        """More, in the order of its ends, none of which was due yet."""
        kept, rest = self.held.take(slice(0, self._out)), self.held.take(slice(self._out, None))
        self.held = kept.plus(rest.plus(work).by_end())

    def until(self, to_ns: int) -> Work:
        """What ended up to `to_ns` and was not handed out yet."""
        first, self._out = self._out, int(np.searchsorted(self.held.end, to_ns, "right"))
        return self.held.take(slice(first, self._out))

    def forget(self) -> None:
        """Drop what was handed out."""
        self.held, self._out = self.held.take(slice(self._out, None)), 0


def one_round(run: Run) -> Iterator[pa.RecordBatch]:
    """A scenario once, from its beginning until all that arrived is done; times since the beginning."""
    turn = next(run.rounds())
    end_ns = max(turn.to_ns, int(turn.outcome.end_ns.max(initial=0)))
    steps = Steps(run, iter((replace(turn, to_ns=end_ns + STEP_NS),)))
    while steps.position_ns < end_ns:
        batch = steps.batch(_STEPS_PER_BATCH)
        if batch is not None:
            yield batch
