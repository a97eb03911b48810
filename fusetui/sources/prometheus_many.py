"""Several servers' metrics in one view: each is asked in a thread of its own, and is a host of its own."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa

from fusetui.sources.arrow_queue import BatchQueue
from fusetui.sources.prometheus_fetch import Target
from fusetui.sources.prometheus_source import PrometheusSource
from fusetui.sources.spec import OpenOptions
from fusetui.telemetry.header import Header
from fusetui.telemetry.source import ProducerHealth, SourceHealth, State, Transport

_SPREAD_S: Final = 1.0
_WORST_FIRST: Final[tuple[State, ...]] = ("failed", "hung", "reconnecting", "waiting")


class ManyServers:
    """One source of many; one that is gone or hangs holds up no other."""

    def __init__(self, targets: Sequence[Target], options: OpenOptions, *, every_s: float, window_s: float) -> None:
        self.header = Header(source="prometheus")
        self.generation = 0
        self.transport: Transport | None = None
        self._closed = False
        self._queue = BatchQueue(options.memory_bytes, options.overflow)
        # One page at a time, and not all in the same moment: together they would keep the view from the interpreter.
        turn, apart_s = threading.Lock(), min(every_s, _SPREAD_S) / len(targets)
        self._servers = [
            PrometheusSource(
                target,
                options,
                every_s=every_s,
                window_s=window_s,
                queue=self._queue,
                turn=turn,
                first_s=n * apart_s,
            )
            for n, target in enumerate(targets)
        ]

    def poll(self, timeout_s: float) -> Sequence[pa.RecordBatch]:
        batches = [item.batch for item in self._queue.take(timeout_s, 0.0, 100_000)]
        engines = ", ".join(sorted({server.engine for server in self._servers if server.engine}))
        if engines != self.header.build.get("engine", ""):
            self.header = replace(self.header, build={"engine": engines})
        return batches

    def now_ns(self) -> int | None:
        return next((now for server in self._servers if (now := server.now_ns()) is not None), None)

    def health(self) -> SourceHealth:
        """Live while one of them is; the others are told by name, and what each cannot tell by its address."""
        told = [server.health() for server in self._servers]
        live = [one for one in told if one.state == "live"]
        state: State = "live" if live else next((s for s in _WORST_FIRST if s in {one.state for one in told}), "ended")
        queue = self._queue
        return SourceHealth(
            name=f"{len(told)} servers",
            state="ended" if self._closed else state,
            rows=queue.rows,
            batches=queue.batches,
            dropped_batches=queue.dropped_batches,
            dropped_rows=queue.dropped_rows,
            bad_rows=sum(one.bad_rows for one in told),
            bytes_in=sum(one.bytes_in for one in told),
            lag_ns=min((one.lag_ns for one in live if one.lag_ns is not None), default=None),
            detail=f"{len(live)} of {len(told)} live",
            last_error=next((one.last_error for one in told if one.state != "live" and one.last_error), ""),
            missing=_together(told),
            producers=tuple(ProducerHealth(one.name, one.state, one.rows, one.detail) for one in told),
        )

    def close(self) -> None:
        self._closed = True
        for server in self._servers:
            server.close()
        self._queue.close()


def _together(told: Sequence[SourceHealth]) -> tuple[str, ...]:
    """What all cannot tell once, what some cannot by address."""
    common = [line for line in told[0].missing if all(line in one.missing for one in told)]
    own = [f"{one.name}: {line}" for one in told for line in one.missing if line not in common]
    return (*common, *own)
