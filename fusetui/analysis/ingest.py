"""The ingest thread: source -> filter -> window -> snapshot in a mailbox that the screen looks into.

One daemon thread does all the work. Nothing is ever queued towards the screen: `snapshot` is the newest, and older
ones are forgotten.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
import pyarrow as pa

from fusetui.analysis import rows as row_tables
from fusetui.analysis.allocator import keep_freed_blocks
from fusetui.analysis.coalesce import coalesced
from fusetui.analysis.filter import Filter, parse_filter
from fusetui.analysis.frame import Context, snapshot_of
from fusetui.analysis.rows import RowQuery
from fusetui.analysis.slots import Grid, ladder_below
from fusetui.analysis.snapshot import Snapshot
from fusetui.analysis.window import Window
from fusetui.telemetry.source import Source, SourceHealth, Transport, TransportState
from fusetui.telemetry.text import safe_text

if TYPE_CHECKING:
    import polars as pl

LIVE_WINDOW_NS: Final = 60_000_000_000
FIT_ROWS: Final = 500_000
"""A replay up to this size has its whole trace in the window."""
EXACT_FIT_ROWS: Final = 50_000
"""A longer one gets a window of about so many rows: exact numbers, and a new place on the screen at once."""
COALESCE_ROWS: Final = 10_000
MAX_SHARE: Final = 0.05
"""Most of a core that snapshots may take in the long run: costly ones come less often, except after a jump."""
_LONGEST_POLL_S: Final = 0.2
_RATE_S: Final = 2.0


class Recorder(Protocol):
    """Where batches are also written to; it reports its own failures."""

    def write(self, batch: pa.RecordBatch) -> None: ...


class Ingest:
    """Takes in a source and keeps the newest Snapshot.

    window_ns     length of the window; None: 60 s live, the whole trace in a replay (of a trace of more than 500k
                  rows as much as holds about 50k)
    memory_bytes  bound for raw rows and histograms together
    tick_s        seconds between snapshots
    exact         work out the totals for every snapshot, however many rows come
    source        what it was made with
    snapshot      the newest, None before the first; read it from any thread
    failed        why the thread ended, None while all is well
    """

    def __init__(
        self,
        source: Source,
        *,
        window_ns: int | None = None,
        memory_bytes: int = 512 << 20,
        tick_s: float = 0.5,
        exact: bool = False,
    ) -> None:
        self.snapshot: Snapshot | None = None
        self.failed: str | None = None
        self.source = source
        self._fit = window_ns is None and source.transport is not None
        self._asked_ns = window_ns
        self._tick_s = tick_s
        self._exact = exact
        self._filter: Filter | None = None
        self._recorder: Recorder | None = None
        self._grid = self._choose_grid()
        self._window = Window(self._grid, memory_bytes)
        self._generation = source.generation
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = 0
        self._changed = threading.Condition()
        self._rebuild = False
        self._refit = True
        self._fitted: tuple[int, int, bool] | None = None
        self._stop = threading.Event()
        self._due_s = 0.0
        self._version = 0
        self._fresh = True
        self._taken: list[tuple[float, int]] = []
        self._thread = threading.Thread(target=self._run, name="ingest", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End; waits up to 2 s for the thread. The source is the caller's to close."""
        self._stop.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(2.0)

    def wait_for(self, version: int, timeout_s: float) -> Snapshot | None:
        """The newest snapshot once its version is at least `version`; None when that takes too long."""
        with self._changed:
            reached = self._changed.wait_for(
                lambda: self.snapshot is not None and self.snapshot.version >= version, timeout_s
            )
            return self.snapshot if reached else None

    @property
    def window_ns(self) -> int:
        """Length of the window, a whole number of slots."""
        return self._grid.width * self._grid.count

    def set_window(self, window_ns: int) -> None:
        """Another window length, from the raw rows that are still there; at least 1 ms."""
        self._asked_ns, self._fit = max(window_ns, 1_000_000), False
        self._grid = Grid.of_window(self._asked_ns)
        self._rebuild = self._refit = True

    def set_filter(self, text: str) -> None:
        """Only rows that pass from now on, and again over the raw rows that are there. Raises FilterError."""
        self._filter = parse_filter(text)
        self._rebuild = True

    def set_tick(self, tick_s: float) -> None:
        """Seconds between snapshots."""
        self._tick_s = min(max(tick_s, 0.02), 60.0)

    def tee(self, recorder: Recorder | None) -> None:
        """Every batch that comes in also goes to recorder.write, in the ingest thread; None ends that."""
        self._recorder = recorder

    def rows(self, query: RowQuery) -> pl.DataFrame:
        """The rows behind the numbers, filtered as they are; see `analysis.rows`. Not for the UI thread."""
        return row_tables.rows(self._window.raw(), query, self._filter)

    def raw(self) -> list[pa.RecordBatch]:
        """The raw batches kept, oldest first, unfiltered: the flight recorder."""
        return self._window.raw()

    def _run(self) -> None:
        keep_freed_blocks()
        try:
            self._loop()
        except BaseException as error:  # noqa: BLE001 - native libraries panic with BaseException; the view must go on
            self._fail(error)

    def _loop(self) -> None:
        while not self._stop.is_set():
            wait_s = min(max(self._due_s - time.monotonic(), 0.0), _LONGEST_POLL_S)
            batches = self.source.poll(wait_s)
            if self._stop.is_set():
                return
            if self.source.generation != self._generation:
                self._jump()
            self._take(batches)
            if self._moved_standing(batches):
                self._due_s = 0.0
            if self._rebuild:
                self._refill()
            now = time.monotonic()
            if now >= self._due_s or self._pending_rows >= COALESCE_ROWS:
                self._flush()
            if now >= self._due_s:
                began = time.thread_time()
                self._publish()
                self._due_s = now + max(self._tick_s, (time.thread_time() - began) / MAX_SHARE)

    def _moved_standing(self, batches: Sequence[pa.RecordBatch]) -> bool:
        """Somebody stepped or jumped ahead while the replay stood: show it at once, not at the next tick.

        The rows of the new place may come a poll after the place itself.
        """
        transport, last = self.source.transport, self.snapshot
        if transport is None or last is None or not (batches or self.source.now_ns() != last.now_ns):
            return False
        state = transport.state()
        return not state.playing and not state.growing

    def _jump(self) -> None:
        """Time jumped: what was there is of another time."""
        self._generation = self.source.generation
        self._pending, self._pending_rows = [], 0
        self._window.reset(self._grid)
        self._fresh = True
        self._due_s = 0.0

    def _take(self, batches: Sequence[pa.RecordBatch]) -> None:
        for batch in batches:
            if self._recorder is not None:
                self._recorder.write(batch)
            self._pending.append(batch)
            self._pending_rows += len(batch)

    def _flush(self) -> None:
        pending, self._pending, self._pending_rows = self._pending, [], 0
        now_ns = self.source.now_ns()
        for batch in coalesced(pending, COALESCE_ROWS):
            self._window.keep_raw(batch)
            self._add(batch, now_ns)
            self._taken.append((time.monotonic(), len(batch)))
            self._fresh = True

    def _add(self, batch: pa.RecordBatch, now_ns: int | None) -> None:
        self._window.add(batch if self._filter is None else self._filter.apply(batch), now_ns)

    def _refill(self) -> None:
        """The window anew from the raw rows, after another window length or filter."""
        self._rebuild = False
        self._flush()
        self._window.begin(self._grid)
        now_ns = self.source.now_ns()
        if now_ns is None:
            now_ns = self._window.raw_last_ns
        for batch in self._window.raw(None if now_ns is None else now_ns - self.window_ns):
            self._add(batch, now_ns)
            if self._stop.is_set():
                return
        self._fresh = True
        self._due_s = 0.0

    def _publish(self) -> None:
        """A new snapshot; the old one with a new time when nothing else is new."""
        transport = self.source.transport
        if transport is not None and self._fit:
            self._follow_growth(transport)
        if transport is not None and self._refit:
            self._tell_replay(transport)
        health, state = self.source.health(), transport.state() if transport is not None else None
        now_ns = self.source.now_ns()
        if now_ns is None:
            now_ns = self._window.newest_ns or 0
        self._version += 1
        last = self.snapshot
        if last is not None and self._only_older(last, now_ns):
            snapshot = replace(
                last,
                version=self._version,
                taken_s=time.monotonic(),
                now_ns=now_ns,
                health=health,
                transport=state,
                ingest_per_s=self._ingest_rate(),
            )
        else:
            # While time runs and rows come the totals need not be anew at every tick; what stands is exact.
            hasty = not self._exact and self._fresh and (state is None or state.playing)
            self._fresh = False
            snapshot = snapshot_of(self._window, now_ns, self._context(health, state), hasty=hasty)
        self._post(snapshot)

    def _only_older(self, last: Snapshot, now_ns: int) -> bool:
        """Nothing came since the last snapshot, and no number in it changes with time alone."""
        same_slot = last.now_ns <= now_ns < last.slot_start_ns[-1] + last.slot_ns
        settled = not self._fresh and not self._window.numbers_lag
        return settled and same_slot and (now_ns == last.now_ns or not len(self._window.open_work))

    def _context(self, health: SourceHealth, state: TransportState | None) -> Context:
        return Context(
            version=self._version,
            taken_s=time.monotonic(),
            header=self.source.header,
            health=health,
            transport=state,
            generation=self._generation,
            filter_text=self._filter.text if self._filter else "",
            ingest_per_s=self._ingest_rate(),
        )

    def _post(self, snapshot: Snapshot) -> None:
        with self._changed:
            self.snapshot = snapshot
            self._changed.notify_all()

    def _ingest_rate(self) -> float:
        """Rows per second of wall time over the last seconds."""
        now = time.monotonic()
        self._taken = [(at, n) for at, n in self._taken if at > now - _RATE_S]
        return sum(n for _, n in self._taken) / _RATE_S

    def _choose_grid(self) -> Grid:
        if self._asked_ns is not None:
            return Grid.of_window(self._asked_ns)
        transport = self.source.transport
        if transport is None:
            return Grid.of_window(LIVE_WINDOW_NS)
        state = transport.state()
        span = max(state.end_ns - state.start_ns, 1)
        count = int(np.sum(transport.density(120)))
        if count > FIT_ROWS:
            return Grid.of_window(ladder_below(max(span * EXACT_FIT_ROWS // count, 1)))
        return Grid.of_span(state.start_ns, state.end_ns + (span // 2 if state.growing else 0))

    def _follow_growth(self, transport: Transport) -> None:
        """A replayed trace that grows, or has done growing, may need other slots."""
        state = transport.state()
        extent = (state.start_ns, state.end_ns, state.growing)
        if extent == self._fitted:
            return
        self._fitted = extent
        grid = self._grid
        begins, ends = grid.origin, grid.origin + grid.width * grid.count
        if state.growing and begins <= state.start_ns and state.end_ns < ends:
            return
        wanted = self._choose_grid()
        if wanted != grid:
            self._grid = wanted
            self._refit = True
            self._refill()

    def _tell_replay(self, transport: Transport) -> None:
        """A replay refills one window after a jump: tell it how long that is."""
        if self._fit and transport.state().growing:
            return
        self._refit = False
        set_window = getattr(transport, "set_window", None)
        if set_window is not None:
            set_window(self.window_ns)

    def _fail(self, error: BaseException) -> None:
        """Say why, in the mailbox too."""
        text = safe_text(f"{error}" or type(error).__name__, 500)
        last = self.snapshot
        health = last.health if last is not None else SourceHealth(name="source", state="failed")
        self._version += 1
        self.failed = text
        health = replace(health, state="failed", last_error=text)
        if last is not None:
            self._post(replace(last, version=self._version, health=health))
        else:
            self._post(snapshot_of(Window(self._grid, 1 << 20), 0, self._context(health, None)))
