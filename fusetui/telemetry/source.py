"""What every way of getting telemetry looks like from inside: live, replayed or simulated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fusetui.telemetry.header import Header

State = Literal["waiting", "live", "playing", "paused", "ended", "reconnecting", "lost", "hung", "failed"]


@dataclass(frozen=True, slots=True)
class ProducerHealth:
    """One stream of batches inside a source: a connection, a file, a device."""

    name: str
    state: State
    rows: int
    detail: str = ""


@dataclass(frozen=True, slots=True)
class SourceHealth:
    """What a source knows about itself; every loss is a count here, never silence.

    rows, batches      taken in since it was opened
    dropped_batches    whole batches not taken in because the reader was behind (and their rows)
    rejected_batches   failed validation; `last_error` says which column of which batch
    bad_rows           rows dropped for impossible times (end before start)
    lag_ns             distance of the newest event behind the source's clock (None: not known)
    missing            what this source cannot tell here, and how to get it: ("gpu counters: no NVML", …)
    """

    name: str
    state: State
    rows: int = 0
    batches: int = 0
    dropped_batches: int = 0
    dropped_rows: int = 0
    rejected_batches: int = 0
    bad_rows: int = 0
    bytes_in: int = 0
    lag_ns: int | None = None
    detail: str = ""
    last_error: str = ""
    missing: tuple[str, ...] = ()
    producers: tuple[ProducerHealth, ...] = ()


@dataclass(frozen=True, slots=True)
class TransportState:
    """Where a replay stands. Times are trace ns; `speed` is trace time per wall time."""

    playing: bool
    speed: float
    position_ns: int
    start_ns: int
    end_ns: int
    loop: bool
    at_end: bool
    growing: bool


class Transport(Protocol):
    """The replay controls. Any thread may call; effects show at the next poll."""

    def state(self) -> TransportState: ...
    def toggle(self) -> None: ...
    def play(self) -> None: ...
    def pause(self) -> None: ...
    def step(self, by_ns: int) -> None: ...
    def set_speed(self, speed: float) -> None: ...
    def seek_ns(self, position_ns: int) -> None: ...
    def seek_fraction(self, fraction: float) -> None: ...
    def set_loop(self, loop: bool) -> None: ...
    def set_window(self, window_ns: int) -> None:
        """How much history to refill after a jump; a longer one starts a new generation."""
        ...

    def rows_total(self) -> int:
        """Rows in the whole trace known now."""
        ...

    def density(self, bins: int) -> npt.NDArray[np.int64]:
        """Rows per equal time bin from start_ns to end_ns, shape (bins,)."""
        ...


class Source(Protocol):
    """Anything that yields batches. One thread polls it; `health` and `transport` may be used from any thread.

    generation  grows when time jumped (seek, step back, loop): the rows that follow are a fresh window,
                already refilled, and everything before must be forgotten
    """

    header: Header
    generation: int
    transport: Transport | None

    def poll(self, timeout_s: float) -> Sequence[pa.RecordBatch]:
        """Canonical, validated batches that came since the last call; waits at most `timeout_s` for the first."""
        ...

    def now_ns(self) -> int | None:
        """The source's present on the trace clock: wall clock when live, position in a replay; None before any data."""
        ...

    def health(self) -> SourceHealth: ...

    def close(self) -> None: ...


@runtime_checkable
class Finishing(Protocol):
    """A source whose producers can be told that this side ends, so that nothing they sent is lost."""

    def finish(self) -> None:
        """Take no more producers in; what is on its way can still be polled, until nothing comes any more."""
        ...


@dataclass(frozen=True, slots=True)
class BatchIndex:
    """Where each batch of a trace lies in time. All arrays have shape (batches,), int64, times in ns.

    first_ns, last_ns  smallest and largest event time in the batch (event time: end, else start, else enqueue)
    rows               rows in the batch
    """

    first_ns: npt.NDArray[np.int64]
    last_ns: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]


class Trace(Protocol):
    """A capture with random access by batch; never written to.

    notes     what is missing, broken or cut in it, one line each
    complete  False while it may still grow (an import in progress, a recording being written)
    """

    header: Header

    @property
    def notes(self) -> Sequence[str]: ...

    @property
    def complete(self) -> bool: ...

    def index(self) -> BatchIndex:
        """The batches known now; grows until `complete`."""
        ...

    def read(self, number: int) -> pa.RecordBatch:
        """Batch `number`, canonical and validated. Raises TelemetryError; the other batches stay readable."""
        ...

    def refresh(self) -> bool:
        """Look for new batches at the end; True when there are some."""
        ...

    def close(self) -> None: ...
