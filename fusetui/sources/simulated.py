"""A simulated accelerator as a source: a scenario of the model, round after round, paced by a clock.

Deterministic: the same scenario and seed give the same rows, whatever the speed and whenever it is polled. Queues,
batches, plans and slow cores are the runtime simulation's; the header says `simulated`, and no number is of a real
device. Memory holds one round at a time; the next one is simulated on a thread of its own while this one is told.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from typing import Final

import pyarrow as pa

from fusetui.accelerator.errors import AcceleratorError
from fusetui.accelerator.scenario.build import Round, Run
from fusetui.accelerator.scenario.parse import load_scenario
from fusetui.accelerator.scenario.spec import Log, Scenario
from fusetui.sources.pace import Pace
from fusetui.sources.simulated_header import SOURCE, header_of
from fusetui.sources.simulated_steps import STEP_NS, Steps
from fusetui.sources.spec import OpenOptions, words
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.source import SourceHealth, Transport

NAMES: Final = ("sim",)
SYNTAX: Final = "sim, sim:scenario=burst,seed=3,speed=2: a simulated accelerator"
DEFAULT_SCENARIO: Final = "serving"

_STEPS_PER_POLL: Final = 20
_HISTORY_S: Final = 60.0


class SimulatedSource:
    """A scenario's telemetry without end.

    speed     simulated time per wall time; a machine too slow for it simulates slower, and loses nothing
    start_ns  epoch time of the first moment (default: now, less the history)
    history_s simulated seconds that have passed when it opens: a window of them comes with the first polls
    """

    def __init__(
        self,
        run: Run,
        *,
        speed: float = 1.0,
        start_ns: int | None = None,
        history_s: float = 0.0,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        if not 0 < speed <= 1000:
            raise ValueError(f"speed {speed:g} is not above 0 and up to 1000")
        self.header = header_of(run, "epoch")
        self.generation = 0
        self.transport: Transport | None = None
        self._pace = Pace(start_ns=start_ns, history_s=history_s, speed=speed, monotonic_ns=monotonic_ns)
        self._ahead = Ahead(run.rounds())
        self._steps = Steps(run, self._ahead, self._pace.start_ns)
        self._title = run.scenario.title
        self._closed = threading.Event()
        self._taken = self._batches = 0

    def poll(self, timeout_s: float) -> Sequence[pa.RecordBatch]:
        wait_s = self._pace.until_s(self._steps.position_ns + STEP_NS)
        if wait_s > 0:
            self._closed.wait(min(wait_s, timeout_s))
        if self._closed.is_set():
            return ()
        self._pace.forgive(self._steps.position_ns)
        steps = min((self._pace.target_ns() - self._steps.position_ns) // STEP_NS, _STEPS_PER_POLL)
        known = self._steps.known_steps
        if steps > known and not self._ahead.wait(0.0 if known else timeout_s):
            steps = known
        batch = self._steps.batch(steps) if steps > 0 else None
        if batch is None:
            return ()
        self._taken += batch.num_rows
        self._batches += 1
        return (batch,)

    def now_ns(self) -> int | None:
        position_ns = self._steps.position_ns
        return self._pace.start_ns + position_ns if position_ns else None

    def health(self) -> SourceHealth:
        return SourceHealth(
            name=SOURCE,
            state="ended" if self._closed.is_set() else "live" if self._batches else "waiting",
            rows=self._taken,
            batches=self._batches,
            lag_ns=0 if self._batches else None,
            detail=f"simulated accelerator: {self._title}",
        )

    def close(self) -> None:
        self._closed.set()
        self._ahead.close()


class Ahead:
    """The rounds of a run, each simulated on a thread while the one before is told."""

    def __init__(self, rounds: Iterator[Round]) -> None:
        self._rounds = rounds
        self._pool = ThreadPoolExecutor(1, "fusetui-simulate")
        self._coming = self._pool.submit(next, rounds)

    def __iter__(self) -> Iterator[Round]:
        return self

    def __next__(self) -> Round:
        turn = self._coming.result()
        self._coming = self._pool.submit(next, self._rounds)
        return turn

    def wait(self, timeout_s: float) -> bool:
        """Whether the next round is there, waiting for it at most so long."""
        return bool(wait((self._coming,), timeout_s).done)

    def close(self) -> None:
        """Simulate no more."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def open_spec(spec: str, options: OpenOptions) -> SimulatedSource:
    """`sim` with optional scenario, seed and speed."""
    given = words(spec, ("scenario", "seed", "speed"))
    try:
        scenario = load_scenario(given.get("scenario", DEFAULT_SCENARIO))
        if any(isinstance(stream.arrivals, Log) for stream in scenario.streams):
            raise ValueError(f"{scenario.where} reads a request log: use `fusetui simulate {scenario.where} --live`")
        return SimulatedSource(
            Run(_seeded(scenario, given)), speed=float(given.get("speed", "1")), history_s=_HISTORY_S
        )
    except (AcceleratorError, ValueError) as error:
        raise TelemetryError(spec, str(error)) from None


def _seeded(scenario: Scenario, given: dict[str, str]) -> Scenario:
    if "seed" not in given:
        return scenario
    seed = int(given["seed"])
    if not 0 <= seed < 1 << 62:
        raise ValueError(f"seed {seed} is not between 0 and 2^62")
    return replace(scenario, seed=seed)
