"""A source of device counters: a probe asked once a period, in a thread of its own so that a hung driver hangs alone.

Looking costs little and changes nothing: counters are read at 1 Hz unless told otherwise, no profiling mode is
switched on, no setting is written, and nothing is asked more often to make up for late answers.
"""

from __future__ import annotations

import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final, Protocol

import pyarrow as pa

from fusetui.sources.device_rows import Sample, sample_batch
from fusetui.sources.spec import parameters
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header
from fusetui.telemetry.source import SourceHealth, State, Transport
from fusetui.telemetry.text import safe_text

PERIOD_S: Final = 1.0
_PATIENCE_S: Final = 5.0
_OPEN_WAIT_S: Final = 1.5
_KEPT: Final = 256


class Probe(Protocol):
    """What a vendor's interface is asked with. Everything but `stop` is called from one thread.

    name      what the source is called
    cautions  what its counters do not prove, one line each
    streams   `read` itself waits for the producer's next report
    """

    @property
    def name(self) -> str: ...
    @property
    def cautions(self) -> Sequence[str]: ...
    @property
    def streams(self) -> bool: ...

    def open(self) -> Header:
        """Raises TelemetryError when there is nothing to ask."""
        ...

    def read(self) -> Sample | None:
        """The counters now; None when there will be no more. Raises TelemetryError when it is no use to go on."""
        ...

    def missing(self) -> Sequence[str]:
        """What these devices do not tell, one line each; from any thread."""
        ...

    def stop(self) -> None:
        """Wake a waiting `read`; from any thread."""
        ...

    def close(self) -> None: ...


class DeviceSource:
    """Counters of the devices a probe finds.

    period_s    from one look to the next
    patience_s  without an answer for this long it is "hung"
    Errors: TelemetryError when the probe says soon that there is nothing to ask; a probe that says nothing is "hung".
    """

    def __init__(
        self,
        probe: Probe,
        period_s: float = PERIOD_S,
        *,
        patience_s: float | None = None,
        wall_ns: Callable[[], int] = time.time_ns,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.header = Header(source=probe.name)
        self.generation = 0
        self.transport: Transport | None = None
        self._probe = probe
        self._period_s = period_s
        self._patience_s = max(_PATIENCE_S, 3 * period_s) if patience_s is None else patience_s
        self._wall_ns, self._monotonic_s = wall_ns, monotonic_s
        self._changed = threading.Condition()
        self._closed = threading.Event()
        self._batches: deque[pa.RecordBatch] = deque()
        self._rows = self._taken = self._dropped = self._dropped_rows = 0
        self._newest_ns: int | None = None
        self._answered_s = monotonic_s()
        self._problem = ""
        self._failed: TelemetryError | None = None
        self._opened = self._ended = False
        threading.Thread(target=self._run, name=f"ask {probe.name}", daemon=True).start()
        with self._changed:
            self._changed.wait_for(lambda: self._opened or self._ended, _OPEN_WAIT_S)
        if self._failed is not None and not self._opened:
            raise self._failed

    def poll(self, timeout_s: float) -> Sequence[pa.RecordBatch]:
        with self._changed:
            self._changed.wait_for(lambda: self._batches or self._ended or self._closed.is_set(), timeout_s)
            taken = tuple(self._batches)
            self._batches.clear()
        if not taken and (self._ended or self._closed.is_set()):
            self._closed.wait(timeout_s)
        return taken

    def now_ns(self) -> int | None:
        if self._newest_ns is None or self._ended:
            return self._newest_ns
        return self._wall_ns()

    def health(self) -> SourceHealth:
        newest_ns = self._newest_ns
        silent_s = self._monotonic_s() - self._answered_s
        state = self._state(silent_s)
        return SourceHealth(
            name=self._probe.name,
            state=state,
            rows=self._rows,
            batches=self._taken,
            dropped_batches=self._dropped,
            dropped_rows=self._dropped_rows,
            lag_ns=None if newest_ns is None else max(0, self._wall_ns() - newest_ns),
            detail=f"no answer for {silent_s:.0f} s" if state == "hung" else _together(self.header.hardware.values()),
            last_error=safe_text(str(self._failed) if self._failed else self._problem, 400),
            missing=(*self._probe.cautions, *self._probe.missing()),
        )

    def close(self) -> None:
        self._closed.set()
        self._probe.stop()
        with self._changed:
            self._changed.notify_all()

    def _state(self, silent_s: float) -> State:
        if self._failed is not None and not self._closed.is_set():
            return "failed"
        if self._ended or self._closed.is_set():
            return "ended"
        if silent_s > self._patience_s:
            return "hung"
        return "waiting" if self._newest_ns is None else "live"

    def _run(self) -> None:
        failed: TelemetryError | None = TelemetryError(self._probe.name, "stopped by a fault of its own", "report it")
        try:
            self._ask()
            failed = None
        except TelemetryError as error:
            failed = error
        finally:
            self._failed = failed
            self._probe.close()
            with self._changed:
                self._ended = True
                self._changed.notify_all()

    def _ask(self) -> None:
        self.header = replace(self._probe.open(), host=safe_text(socket.gethostname(), 200))
        with self._changed:
            self._opened = True
            self._changed.notify_all()
        while not self._closed.is_set():
            begun_s = self._monotonic_s()
            sample = self._probe.read()
            if sample is None:
                return
            self._take(sample)
            if not self._probe.streams:
                self._closed.wait(pause_s(self._period_s, self._monotonic_s() - begun_s))

    def _take(self, sample: Sample) -> None:
        self._problem = sample.problem
        if not sample.readings and not sample.marks:
            return
        at_ns = self._wall_ns()
        batch = sample_batch(sample, at_ns)
        with self._changed:
            if len(self._batches) >= _KEPT:
                oldest = self._batches.popleft()
                self._dropped += 1
                self._dropped_rows += oldest.num_rows
            self._batches.append(batch)
            self._rows += batch.num_rows
            self._taken += 1
            self._newest_ns, self._answered_s = at_ns, self._monotonic_s()
            self._changed.notify_all()


def pause_s(period_s: float, spent_s: float) -> float:
    """Until the next look: a slow answer moves the schedule, so that the device is never asked without a pause."""
    return max(period_s - spent_s, period_s / 2)


def _together(names: Iterable[str]) -> str:
    """`2 x H200, T4`."""
    counted = Counter(names)
    return ", ".join(f"{times} x {name}" if times > 1 else name for name, times in counted.items())


def period_of(spec: str) -> float:
    """Seconds from `name:period=2`; 1 without. Raises TelemetryError."""
    period_s = parameters(spec, ("period",)).get("period", PERIOD_S)
    if not 0.1 <= period_s <= 3600:
        raise TelemetryError(spec, f"period {period_s:g} s", "0.1 to 3600 seconds")
    return period_s
