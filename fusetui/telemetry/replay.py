"""Replay: a trace played as a source, under a clock that people steer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fusetui.telemetry.clock import ReplayClock
from fusetui.telemetry.density import DensityMap
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.eventtime import event_time_ns
from fusetui.telemetry.source import BatchIndex, SourceHealth, State, Trace, Transport, TransportState

MAX_ROWS_PER_POLL = 1_000_000
_REFRESH_EVERY_NS = 250_000_000
_FRAME_S = 0.02
_NOTHING = pa.RecordBatch.from_arrays([], names=[])


@dataclass(frozen=True, slots=True)
class _Held:
    """The batch being played, and the running maximum of its event times."""

    number: int
    batch: pa.RecordBatch
    running_ns: npt.NDArray[np.int64]


class Replay:
    """A trace as a Source with a Transport.

    Rows appear in file order, each once the position has reached the running maximum of event times up to it, so
    bounded disorder delays a row and never loses it. A jump back (seek, step, loop) starts a new generation and
    refills the window; a jump ahead skips whole batches that have left the window already, so that any speed
    costs at most one window of rows.

    window_ns  how much history to refill after a jump
    follow     stay at the end while the trace grows, until someone steers
    """

    def __init__(
        self,
        trace: Trace,
        *,
        window_ns: int = 60_000_000_000,
        follow: bool = False,
        name: str = "replay",
        wall_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self.header = trace.header
        self.generation = 0
        self.transport: Transport | None = self
        self._trace = trace
        self._name = name
        self._wall_ns = wall_ns
        self._window_ns = window_ns
        self._follow = follow
        self._lock = threading.RLock()
        self._steered = threading.Condition(self._lock)
        self._cursor = (0, 0)
        self._polled_ns: int | None = None
        self._held: _Held | None = None
        self._laps = 0
        self._jumps = 0
        self._limit_ns: int | None = None
        self._unreadable: set[int] = set()
        self._last_error = ""
        self._rows_out = 0
        self._next_refresh_ns = 0
        self._clock = ReplayClock(0, 0, wall_ns=wall_ns)
        self._density = DensityMap()
        self._index: BatchIndex
        self._run_last_ns: npt.NDArray[np.int64]
        self._load_index(first=True)

    # --- Source -----------------------------------------------------------------------------------------------

    def poll(self, timeout_s: float) -> Sequence[pa.RecordBatch]:
        """Rows that became visible since the last poll, in slices of whole batches."""
        with self._lock:
            self._grow()
        out = self._advance()
        if out:
            return out
        if self._map_density():
            return self._advance()
        with self._lock:
            if self._clock.playing and not self._clock.at_end:
                self._steered.wait(min(timeout_s, _FRAME_S))
            elif self._jumps == self.generation and self._polled_ns in (None, self._clock.position_ns()):
                self._steered.wait(timeout_s)
        return self._advance()

    def now_ns(self) -> int | None:
        """The position that the rows polled so far reach up to, or None for a trace without rows."""
        return self._polled_ns

    def health(self) -> SourceHealth:
        """Counts and the notes of the trace."""
        with self._lock:
            return SourceHealth(
                name=self._name,
                state=self._state(),
                rows=self._rows_out,
                batches=self._cursor[0],
                rejected_batches=len(self._unreadable),
                lag_ns=0,
                detail="" if self._trace.complete else "still reading",
                last_error=self._last_error,
                missing=tuple(self._trace.notes),
            )

    def close(self) -> None:
        """Release the trace."""
        self._trace.close()

    # --- Transport --------------------------------------------------------------------------------------------

    def state(self) -> TransportState:
        """Where the replay stands now."""
        with self._lock:
            clock = self._clock
            return TransportState(
                playing=clock.playing and not clock.at_end,
                speed=clock.speed,
                position_ns=clock.position_ns(),
                start_ns=clock.start_ns,
                end_ns=clock.end_ns,
                loop=clock.loop,
                at_end=clock.at_end,
                growing=not self._trace.complete,
            )

    def toggle(self) -> None:
        """Play when standing, pause when playing."""
        with self._lock:
            if self._clock.playing and not self._clock.at_end:
                self.pause()
            else:
                self.play()

    def play(self) -> None:
        """Run on; from the end, start again."""
        with self._steer():
            before_ns = self._clock.position_ns()
            self._clock.pause()
            self._clock.play()
            self._jumped(before_ns)

    def pause(self) -> None:
        """Stay at the position."""
        with self._steer():
            self._clock.pause()

    def step(self, by_ns: int) -> None:
        """Pause, then move by `by_ns` (negative: back)."""
        with self._steer():
            self._clock.pause()
            before_ns = self._clock.position_ns()
            self._clock.seek(before_ns + by_ns)
            self._jumped(before_ns)

    def set_speed(self, speed: float) -> None:
        """0.1 … 1000 trace seconds per wall second."""
        with self._steer():
            self._clock.set_speed(speed)

    def seek_ns(self, position_ns: int) -> None:
        """Jump to a trace time, clamped to the trace."""
        with self._steer():
            before_ns = self._clock.position_ns()
            self._clock.seek(position_ns)
            self._jumped(before_ns)

    def seek_fraction(self, fraction: float) -> None:
        """Jump to a share 0 … 1 of the span; NaN is refused with ValueError."""
        if fraction != fraction:
            raise ValueError("fraction is not a number")
        with self._lock:
            span_ns = self._clock.end_ns - self._clock.start_ns
            self.seek_ns(self._clock.start_ns + round(min(max(fraction, 0.0), 1.0) * span_ns))

    def set_loop(self, loop: bool) -> None:
        """Begin again at the end, or stop there."""
        with self._steer():
            position_ns = self._clock.position_ns()
            self._clock.loop = loop
            self._clock.seek(position_ns)
            self._laps = 0

    def set_window(self, window_ns: int) -> None:
        """How much history to keep; a longer one is refilled from the trace."""
        with self._steered:
            longer = window_ns > self._window_ns
            self._window_ns = window_ns
            if longer:
                self._rewind()
            self._steered.notify_all()

    def limit(self, end_ns: int) -> None:
        """Treat `end_ns` as the end of the trace from now on."""
        with self._lock:
            self._limit_ns = end_ns
            self._clock = ReplayClock(self._clock.start_ns, min(self._clock.end_ns, end_ns), wall_ns=self._wall_ns)
            self._clock.seek(self._clock.end_ns)
            self._rewind()

    def density(self, bins: int) -> npt.NDArray[np.int64]:
        """Rows per equal time bin over the whole trace, shape (bins,)."""
        with self._lock:
            return self._density.resample(bins)

    def rows_total(self) -> int:
        """Rows in the trace known now."""
        with self._lock:
            return int(self._index.rows.sum())

    # --- inside -----------------------------------------------------------------------------------------------

    @contextmanager
    def _steer(self) -> Iterator[None]:
        with self._steered:
            self._follow = False
            yield
            self._steered.notify_all()

    def _state(self) -> State:
        following = self._follow and not self._trace.complete
        if self._clock.at_end and not following:
            return "ended"
        return "playing" if self._clock.playing or following else "paused"

    def _jumped(self, before_ns: int) -> None:
        self._laps = 0
        if self._clock.position_ns() < before_ns:
            self._rewind()

    def _rewind(self) -> None:
        """Begin again at the start of the window; the next poll refills it under a new generation."""
        self._jumps += 1
        self._cursor = (0, 0)

    def _load_index(self, first: bool) -> None:
        self._index = self._trace.index()
        self._run_last_ns = np.maximum.accumulate(self._index.last_ns) if len(self._index.rows) else self._index.last_ns
        if not len(self._index.rows):
            return
        start_ns, end_ns = int(self._index.first_ns.min()), int(self._run_last_ns[-1])
        if self._limit_ns is not None:
            end_ns = min(end_ns, self._limit_ns)
        if first or self._clock.end_ns == self._clock.start_ns == 0:
            self._clock = ReplayClock(start_ns, end_ns, wall_ns=self._wall_ns)
        self._clock.start_ns = min(self._clock.start_ns, start_ns)
        self._clock.extend(end_ns)
        self._density.extend(self._index, self._clock.start_ns, self._clock.end_ns)

    def _grow(self) -> None:
        now_ns = self._wall_ns()
        if self._trace.complete or now_ns < self._next_refresh_ns:
            if self._follow:
                self._clock.seek(self._clock.end_ns)
            return
        self._next_refresh_ns = now_ns + _REFRESH_EVERY_NS
        if self._trace.refresh():
            self._load_index(first=False)
        if self._follow:
            self._clock.seek(self._clock.end_ns)

    def _advance(self) -> list[pa.RecordBatch]:
        """Take the rows up to the position, skipping what has left the window already.

        Batches are read without the lock, so that nobody who steers waits for a disk; rows read while someone
        jumped back are thrown away.
        """
        with self._lock:
            if self._clock.laps() != self._laps:
                self._laps = self._clock.laps()
                self._rewind()
            # Only a poll may change the generation: whoever polled before still holds rows of the old one.
            self.generation = jumps = self._jumps
            position_ns = self._clock.position_ns()
            number, offset = self._cursor
        oldest = int(np.searchsorted(self._run_last_ns, position_ns - self._window_ns, side="right"))
        if oldest > number:
            number, offset = oldest, 0
        out: list[pa.RecordBatch] = []
        taken = 0
        while number < len(self._index.rows) and taken < MAX_ROWS_PER_POLL:
            batch, visible = self._visible(number, position_ns)
            if visible > offset:
                out.append(batch.slice(offset, visible - offset))
                taken += visible - offset
                offset = visible
            if int(self._run_last_ns[number]) > position_ns:
                break
            number, offset = number + 1, 0
        with self._lock:
            if jumps != self._jumps:
                return []
            self._cursor = (number, offset)
            self._rows_out += taken
            self._polled_ns = position_ns if len(self._index.rows) else None
        return out

    def _visible(self, number: int, position_ns: int) -> tuple[pa.RecordBatch, int]:
        """Batch `number` and how many of its rows the position has reached: none when it cannot be read."""
        before_ns = int(self._run_last_ns[number - 1]) if number else int(self._index.first_ns[0])
        if max(before_ns, int(self._index.first_ns[number])) > position_ns:
            return _NOTHING, 0
        if self._held is None or self._held.number != number:
            self._held = self._hold(number, before_ns)
        if int(self._run_last_ns[number]) <= position_ns:
            return self._held.batch, self._held.batch.num_rows
        return self._held.batch, int(np.searchsorted(self._held.running_ns, position_ns, side="right"))

    def _hold(self, number: int, before_ns: int) -> _Held:
        """Read a batch; it is played through over many polls."""
        try:
            batch = self._trace.read(number)
        except TelemetryError as error:
            self._unreadable.add(number)
            self._last_error = str(error)
            return _Held(number, _NOTHING, np.zeros(0, np.int64))
        return _Held(number, batch, np.maximum(np.maximum.accumulate(event_time_ns(batch)), before_ns))

    def _map_density(self) -> bool:
        """Refine the density by one batch; False when there is nothing left to refine."""
        number = self._density.next_unread()
        if number is None:
            return False
        try:
            self._density.add(number, event_time_ns(self._trace.read(number)))
        except TelemetryError as error:
            self._unreadable.add(number)
            self._last_error = str(error)
            self._density.skip(number)
        return True
