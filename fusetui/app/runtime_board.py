"""What the what-if and tail screens ask of the twin of the trace: what if, and what caused the tail."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from fusetui.analysis.rows import RowQuery
from fusetui.analysis.snapshot import Snapshot
from fusetui.app.worker import Worker
from fusetui.telemetry.text import safe_text

if TYPE_CHECKING:
    from fusetui.accelerator.runtime.outcome import Outcome
    from fusetui.analysis.twin import Twin
    from fusetui.app.knobs import Changes, Knob, Value
    from fusetui.app.session import Feed

READ_EVERY_S: Final = 10.0
"""However fast a replay runs: as often as this, at most, a twin is made by itself."""
NO_REQUESTS: Final = "no requests in this window: record rows of kind request with enqueue_ns, start_ns and end_ns"
MAX_LINE: Final = 400

Make = Callable[[], "Twin | str"]


@dataclass(frozen=True, slots=True)
class RuntimeTail:
    """What a run of the runtime says, ns; None where there are too few requests.

    latency, queue, gate  p50, p95, p99; fell, padded: shares of requests
    """

    latency: tuple[int | None, int | None, int | None]
    queue: tuple[int | None, int | None, int | None]
    gate: tuple[int | None, int | None, int | None]
    fell: float
    padded: float


@dataclass(frozen=True, slots=True)
class RuntimeRequest:
    """make: builds the twin again, None: the one there is; changes: knobs that stand elsewhere."""

    changes: Changes
    make: Make | None = None


@dataclass(frozen=True, slots=True)
class RuntimeAnswer:
    """twin: or why there is none; today, predicted: None where they could not be simulated, `problem` says why."""

    number: int
    twin: Twin | str
    changes: Changes
    today: RuntimeTail | None = None
    predicted: RuntimeTail | None = None
    problem: str = ""
    took_ms: float = 0.0


class RuntimeWorker(Worker[RuntimeRequest, RuntimeAnswer]):
    """Makes the twin and simulates it, off the event loop."""

    NAME = "fusetui-runtime"

    def __init__(self) -> None:
        super().__init__()
        self._twin: Twin | str = "the requests have not been looked at"
        self._today: RuntimeTail | None = None

    def merged(self, waiting: RuntimeRequest, request: RuntimeRequest) -> RuntimeRequest:
        return request if request.make is not None else RuntimeRequest(request.changes, waiting.make)

    def answered_by(self, request: RuntimeRequest, number: int) -> RuntimeAnswer:
        began_s = time.perf_counter()
        if request.make is not None:
            self._twin = request.make()
            self._today = None if isinstance(self._twin, str) else runtime_tail(self._twin, self._twin.outcome)
        twin = self._twin
        if isinstance(twin, str):
            return RuntimeAnswer(number, twin, request.changes)
        predicted, problem = (self._today, "") if not request.changes else _simulated(twin, request.changes)
        took_ms = (time.perf_counter() - began_s) * 1e3
        return RuntimeAnswer(number, twin, request.changes, self._today, predicted, problem, took_ms)


class RuntimeBoard:
    """Knobs and answers of one session. Nothing is computed before a screen that needs it `look`s.

    changes  the knobs of the runtime that stand elsewhere than today
    """

    def __init__(self, feed: Feed, worker: RuntimeWorker | None = None) -> None:
        self.worker = worker or RuntimeWorker()
        self.changes: dict[str, Value] = {}
        self._feed = feed
        self._looked: tuple[str, int, int] | None = None
        self._looked_s = float("-inf")

    @property
    def answer(self) -> RuntimeAnswer | None:
        """The newest."""
        return self.worker.answer

    @property
    def twin(self) -> Twin | None:
        """The twin there is."""
        answer = self.answer
        return None if answer is None or isinstance(answer.twin, str) else answer.twin

    @property
    def knobs(self) -> tuple[Knob, ...]:
        """The knobs there are now: none without a twin."""
        from fusetui.app.runtime_knobs import runtime_knobs  # with the runtime behind it

        return runtime_knobs(self.twin) if self.twin else ()

    def state(self) -> tuple[object, ...]:
        """Equal as long as there is nothing new to draw."""
        return self.worker.answered, self.worker.busy, tuple(self.changes.items())

    def look(self, snapshot: Snapshot | None, *, exactly: bool = False) -> None:
        """A screen is shown that needs the twin of this window; exactly: of this one, not of one that overlaps."""
        if snapshot is not None and self._moved_on(snapshot, exactly):
            self.read_again(snapshot)

    def read_again(self, snapshot: Snapshot) -> None:
        """Make the twin of what the window holds now."""
        self._looked = (snapshot.filter_text, snapshot.window_start_ns, snapshot.now_ns)
        self._looked_s = time.monotonic()
        self.worker.ask(RuntimeRequest(dict(self.changes), making(self._feed, snapshot)))

    def turn(self, name: str, steps: int) -> None:
        """Move a knob."""
        from fusetui.app.runtime_knobs import runtime_stepped, runtime_value

        twin = self.twin
        knob = next((knob for knob in self.knobs if knob.name == name), None)
        if knob is None or twin is None:
            return
        today = runtime_value(twin, name)
        value = runtime_stepped(knob, self.changes.get(name, today), steps)
        if value == today:
            self.changes.pop(name, None)
        else:
            self.changes[name] = value
        self.worker.ask(RuntimeRequest(dict(self.changes)))

    def reset(self, name: str = "") -> None:
        """Put a knob back to where it stands today, or all of them."""
        if not name and self.changes:
            self.changes.clear()
        elif self.changes.pop(name, None) is None:
            return
        self.worker.ask(RuntimeRequest(dict(self.changes)))

    def text(self, knob: Knob) -> tuple[str, str]:
        """(where a knob stands, where it stands today)."""
        from fusetui.app.runtime_knobs import runtime_shown, runtime_value

        if self.twin is None:
            return "", ""
        today = runtime_value(self.twin, knob.name)
        return runtime_shown(knob, self.changes.get(knob.name, today)), runtime_shown(knob, today)

    def _moved_on(self, snapshot: Snapshot, exactly: bool) -> bool:
        """Whether the window has nothing in common any more with the one the twin is of, or (exactly) is another."""
        seen, now = self._looked, (snapshot.filter_text, snapshot.window_start_ns, snapshot.now_ns)
        if seen is None or seen[0] != now[0]:
            return True
        if exactly:
            return seen != now
        elsewhere = now[1] >= seen[2] or now[2] <= seen[1]
        return elsewhere and time.monotonic() - self._looked_s >= READ_EVERY_S


def making(feed: Feed, snapshot: Snapshot) -> Make:
    """Reads the rows of the window and makes their twin; what goes wrong becomes the reason."""
    header, requests = snapshot.header, snapshot.requests
    window = (snapshot.window_start_ns, snapshot.now_ns)

    def make() -> Twin | str:
        if not requests:
            return NO_REQUESTS
        import polars as pl  # the first frame must not wait for any of it

        from fusetui.accelerator.errors import AcceleratorError
        from fusetui.analysis.twin import MAX_ROWS, twin_of

        query = RowQuery(order="time", kind="any", from_ns=window[0], to_ns=window[1], limit=MAX_ROWS + 1)
        try:
            return twin_of(feed.rows(query), header)
        except (AcceleratorError, ArithmeticError, LookupError, MemoryError, OSError, ValueError) as error:
            return safe_text(f"the twin failed: {type(error).__name__}: {error}", MAX_LINE)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            return safe_text(f"the requests could not be read: {error}", MAX_LINE)

    return make


def _simulated(twin: Twin, changes: Mapping[str, Value]) -> tuple[RuntimeTail | None, str]:
    from fusetui.accelerator.errors import AcceleratorError
    from fusetui.accelerator.runtime.simulate import simulate
    from fusetui.app.runtime_knobs import runtime_changed

    try:
        return runtime_tail(twin, simulate(*runtime_changed(twin, changes))), ""
    except AcceleratorError as error:
        return None, str(error)
    except (ArithmeticError, AssertionError, LookupError, MemoryError, ValueError) as error:
        return None, safe_text(f"the runtime failed: {type(error).__name__}: {error}", MAX_LINE)


def runtime_tail(twin: Twin, outcome: Outcome) -> RuntimeTail:
    """The tail of a run, of the requests that ended in the trace: the same ones on every side."""
    from fusetui.accelerator.runtime.outcome import GATE, GENERIC, MISPLACED, PADDED, QUEUE
    from fusetui.analysis.twin.model import tail_of

    ended = twin.measured_ns >= 0
    mapping, parts = outcome.jobs.mapping[outcome.job[ended]], outcome.parts[ended]
    n = max(1, len(mapping))
    return RuntimeTail(
        latency=tail_of(outcome.latency_ns[ended]),
        queue=tail_of(parts[:, QUEUE] + parts[:, MISPLACED]),
        gate=tail_of(parts[:, GATE]),
        fell=int(np.count_nonzero(mapping == GENERIC)) / n,
        padded=int(np.count_nonzero(mapping == PADDED)) / n,
    )
