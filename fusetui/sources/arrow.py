"""Contract batches from other programs: standard input, a pipe, a Unix socket or TCP, from many producers at once.

Back-pressure is not reading: with the policy "block" a producer that is faster than the view waits in its `write`;
with "drop" whole batches are counted in `health().dropped_batches` and thrown away.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import BinaryIO, Final

import pyarrow as pa

from fusetui.sources.arrow_conn import TOKEN_TIMEOUT_S
from fusetui.sources.arrow_crowd import Crowd, living
from fusetui.sources.arrow_input import Input, ListenInput, PathInput, check_path
from fusetui.sources.arrow_listen import Address, Listener, parse_address
from fusetui.sources.arrow_merge import marked, merge
from fusetui.sources.arrow_queue import BatchQueue
from fusetui.sources.spec import OpenOptions
from fusetui.telemetry.eventtime import event_time_ns
from fusetui.telemetry.header import Header
from fusetui.telemetry.source import SourceHealth, State, Transport

NAMES: Final = ("-", "stdin", "unix", "tcp")
SYNTAX: Final = "-, unix:/path, tcp:host:port, or the path of a pipe: Arrow batches from other programs"

_ROWS_PER_POLL: Final = 250_000
_LINGER_S: Final = 0.05
_SKEW_NS: Final = 60_000_000_000


class ArrowSource:
    """Listens or reads at an address until closed; producers come and go.

    Raises TelemetryError when the address cannot be used. `address` is the real one (a TCP port 0 is replaced).

    The present is this machine's clock while the newest events are within a minute of it; for older events, as
    when a recording is piped in, and for times since the start of a trace it is the newest event.
    """

    def __init__(
        self,
        address: Address | None,
        options: OpenOptions | None = None,
        *,
        feed: Callable[[Crowd, BatchQueue], Input] | None = None,
        stdin: BinaryIO | None = None,
        token_timeout_s: float = TOKEN_TIMEOUT_S,
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        """feed  another way in than an address"""
        options = options or OpenOptions()
        self.generation = 0
        self.transport: Transport | None = None
        self._crowd = Crowd()
        self.header: Header = self._crowd.header
        self._queue = BatchQueue(options.memory_bytes, options.overflow)
        self._wall_ns = wall_ns
        self._newest_ns: int | None = None
        self._near_wall = False
        self._closed = False
        if feed is None:
            assert address is not None
            feed = _feed(address, options, stdin, token_timeout_s)
        self._input = feed(self._crowd, self._queue)

    @property
    def address(self) -> object:
        return self._input.address

    def poll(self, timeout_s: float) -> Sequence[pa.RecordBatch]:
        taken = self._queue.take(timeout_s, _LINGER_S, _ROWS_PER_POLL)
        self.header = self._crowd.header
        batches = merge(taken, name_hosts=self._crowd.several)
        if batches:
            self._observe(batches)
        return [*batches, *marked(self._crowd.marks())]

    def now_ns(self) -> int | None:
        if self._newest_ns is None or self.header.clock == "trace" or not self._near_wall:
            return self._newest_ns
        if isinstance(self._input, PathInput) and self._ended():
            return self._newest_ns
        return self._wall_ns()

    def health(self) -> SourceHealth:
        producers = self._crowd.health()
        rejected, bad_rows, bytes_in = self._crowd.sums()
        newest_ns, now_ns = self._newest_ns, self.now_ns()
        connected = living(producers)
        state = self._state(connected, [p.state for p in producers])
        lost = sum(p.state in ("lost", "hung") for p in producers)
        away = f", {lost} lost" if lost else ""
        refused = f", {self._crowd.refused} refused" if self._crowd.refused else ""
        return SourceHealth(
            name=str(self._input.address),
            state=state,
            rows=self._queue.rows,
            batches=self._queue.batches,
            dropped_batches=self._queue.dropped_batches,
            dropped_rows=self._queue.dropped_rows,
            rejected_batches=rejected,
            bad_rows=bad_rows,
            bytes_in=bytes_in,
            lag_ns=None if newest_ns is None or now_ns is None else max(0, now_ns - newest_ns),
            detail=f"{connected} connected{away}{refused}{self._skew()}",
            last_error=self._input.trouble or self._crowd.last_error(),
            producers=producers,
        )

    def finish(self) -> None:
        """Take no more producers in and tell those there that this side ends; what they sent can still be polled."""
        self._input.finish()

    def close(self) -> None:
        self._closed = True
        self._queue.close()
        self._input.close()

    def _observe(self, batches: Sequence[pa.RecordBatch]) -> None:
        wall_ns = self._wall_ns()
        times = [event_time_ns(batch) for batch in batches]
        newest_ns = max(int(time_ns.max()) for time_ns in times)
        if newest_ns > wall_ns + _SKEW_NS:
            # One impossible time must not carry the present away; if all are ahead, it is the clock that differs.
            possible = [t[t <= wall_ns + _SKEW_NS] for t in times]
            newest_ns = max((int(t.max()) for t in possible if t.size), default=newest_ns)
        self._near_wall |= abs(wall_ns - newest_ns) <= _SKEW_NS
        self._newest_ns = newest_ns if self._newest_ns is None else max(self._newest_ns, newest_ns)

    def _ended(self) -> bool:
        return self._closed or (self._input.done and len(self._queue) == 0)

    def _state(self, connected: int, states: list[State]) -> State:
        if self._ended():
            return "failed" if "failed" in states and "ended" not in states and not self._closed else "ended"
        if connected and self._newest_ns is not None:
            return "live"
        return "reconnecting" if self._input.trouble or "lost" in states or "hung" in states else "waiting"

    def _skew(self) -> str:
        if self._newest_ns is None or self._near_wall or self.header.clock == "trace":
            return ""
        behind_s = (self._wall_ns() - self._newest_ns) / 1e9
        return f", events are {abs(behind_s):.0f} s {'behind' if behind_s > 0 else 'ahead of'} this machine's clock"


def _feed(
    address: Address, options: OpenOptions, stdin: BinaryIO | None, token_timeout_s: float
) -> Callable[[Crowd, BatchQueue], Input]:
    if address.kind in ("stdin", "path"):
        if address.kind == "path":
            check_path(address)
        return lambda crowd, queue: PathInput(address, crowd, queue, stdin)
    listener = Listener(address, token=options.token, allow_remote=options.allow_remote)
    return lambda crowd, queue: ListenInput(
        listener, crowd, queue, token=options.token, token_timeout_s=token_timeout_s
    )


def open_spec(spec: str, options: OpenOptions) -> ArrowSource:
    """`-`, `unix:/path`, `tcp:host:port` or a path."""
    return ArrowSource(parse_address(spec), options, stdin=options.stdin)
