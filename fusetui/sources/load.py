"""Made-up load as a source, as much as is asked for: for trying how much a view can take, and for tests of queues.

Deterministic: the same seed gives the same rows, whatever the speed and whenever it is polled. Kernels really queue
(first come first served on each core), so queue waits, depth and tails follow from the arrivals, and everything that
arrives comes out. Every minute, from second 20 to 30, core 3 of device 0 runs 2.2 times slower and prefill requests
come in a burst. The header says `synthetic load`: its plans, kernels and
times are invented; for an accelerator as the model has it see `fusetui.sources.simulated`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa

from fusetui.sources.load_device import CHUNK_NS, Device
from fusetui.sources.load_rows import PLAN, Columns, Rows, to_batch
from fusetui.sources.load_work import ROWS_PER_REQUEST, SLOW_CORE
from fusetui.sources.pace import Pace
from fusetui.sources.spec import OpenOptions, parameters
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header
from fusetui.telemetry.source import SourceHealth, Transport

NAMES: Final = ("load",)
SYNTAX: Final = "load, load:rate=200000,devices=2: made-up load"

_ROWS_PER_POLL: Final = 250_000
_MAX_RATE: Final = 2_000_000.0
_HISTORY_S: Final = 60.0


class LoadSource:
    """Made-up telemetry, paced by a clock.

    rate      rows per simulated second when all is well, about
    speed     simulated time per wall time; a machine too slow for rate x speed simulates slower, and loses nothing
    start_ns  epoch time of the first moment (default: now, less the history)
    history_s simulated seconds that have passed when it opens: a window of them comes with the first polls
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        rate: float = 5_000.0,
        speed: float = 1.0,
        devices: int = 2,
        cores: int = 8,
        start_ns: int | None = None,
        history_s: float = 0.0,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        if not (0 < rate <= _MAX_RATE and 0 < speed <= 1000 and 1 <= devices <= 64 and SLOW_CORE < cores <= 256):
            raise ValueError("rate 1 to 2 million, speed up to 1000, 1 to 64 devices, 4 to 256 cores each")
        self.header = Header(
            source="synthetic load",
            hardware={"devices": f"{devices} made up", "cores": f"{cores} per device"},
            build={"seed": str(seed)},
            plans={PLAN: "shapes of the first two buckets of each stream"},
        )
        self.generation = 0
        self.transport: Transport | None = None
        self._rows = Rows(Device(seed, rate / ROWS_PER_REQUEST, devices * cores), devices, cores)
        self._pace = Pace(start_ns=start_ns, history_s=history_s, speed=speed, monotonic_ns=monotonic_ns)
        self._closed = threading.Event()
        self._taken = self._batches = 0

    def poll(self, timeout_s: float) -> Sequence[pa.RecordBatch]:
        wait_s = self._pace.until_s(self._rows.position_ns + CHUNK_NS)
        if wait_s > 0:
            self._closed.wait(min(wait_s, timeout_s))
        if self._closed.is_set():
            return ()
        parts: list[Columns] = []
        rows = 0
        self._pace.forgive(self._rows.position_ns)
        target_ns = self._pace.target_ns()
        while self._rows.position_ns + CHUNK_NS <= target_ns and rows < _ROWS_PER_POLL:
            step = self._rows.step()
            parts += step
            rows += sum(len(part["kind"]) for part in step)
        if not parts:
            return ()
        self._taken += rows
        self._batches += 1
        return (to_batch(parts, self._pace.start_ns),)

    def now_ns(self) -> int | None:
        position_ns = self._rows.position_ns
        return self._pace.start_ns + position_ns if position_ns else None

    def health(self) -> SourceHealth:
        return SourceHealth(
            name="synthetic load",
            state="ended" if self._closed.is_set() else "live" if self._batches else "waiting",
            rows=self._taken,
            batches=self._batches,
            lag_ns=0 if self._batches else None,
            detail="made-up load",
        )

    def close(self) -> None:
        self._closed.set()


def open_spec(spec: str, options: OpenOptions) -> LoadSource:
    """`load` with optional seed, rate, speed, devices and cores."""
    given = parameters(spec, ("seed", "rate", "speed", "devices", "cores"))
    try:
        return LoadSource(
            seed=int(given.get("seed", 0)),
            rate=given.get("rate", 5_000.0),
            speed=given.get("speed", 1.0),
            devices=int(given.get("devices", 2)),
            cores=int(given.get("cores", 8)),
            history_s=_HISTORY_S,
        )
    except (ValueError, OverflowError) as error:
        raise TelemetryError(spec, str(error)) from None
