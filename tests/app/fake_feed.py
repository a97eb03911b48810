"""A source and an ingest without threads, for the shell's tests: what a test sets is what the app shows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from fake_snapshot import T0, bare_snapshot, fake_snapshot

from fusetui.analysis.rows import RowQuery
from fusetui.analysis.snapshot import Ints, Snapshot
from fusetui.telemetry.header import Header
from fusetui.telemetry.source import SourceHealth, TransportState
from fusetui.telemetry.text import safe_text

SECOND = 1_000_000_000
START = T0 - 90 * SECOND
END = T0 + 30 * SECOND


class FakeTransport:
    """Replay controls that take effect at once; `calls` records them."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self._state = TransportState(True, 1.0, T0, START, END, False, False, False)

    def state(self) -> TransportState:
        return self._state

    def _set(self, **changes: Any) -> None:
        self._state = replace(self._state, **changes)

    def toggle(self) -> None:
        self.calls.append(("toggle",))
        self._set(playing=not self._state.playing)

    def play(self) -> None:
        self._set(playing=True)

    def pause(self) -> None:
        self._set(playing=False)

    def end(self) -> None:
        self._set(playing=False, at_end=True, position_ns=END)

    def step(self, by_ns: int) -> None:
        self.calls.append(("step", by_ns))
        self._set(position_ns=self._state.position_ns + by_ns)

    def set_speed(self, speed: float) -> None:
        self.calls.append(("speed", speed))
        self._set(speed=speed)

    def seek_ns(self, position_ns: int) -> None:
        self.calls.append(("seek", position_ns))
        self._set(position_ns=position_ns)

    def seek_fraction(self, fraction: float) -> None:
        self.calls.append(("fraction", fraction))
        self._set(position_ns=START + int(fraction * (END - START)))

    def set_loop(self, loop: bool) -> None:
        self.calls.append(("loop", loop))
        self._set(loop=loop)

    def density(self, bins: int) -> Ints:
        x = np.linspace(0, 1, bins)
        return (200 * np.exp(-(((x - 0.7) / 0.1) ** 2)) + 20 * (x < 0.9)).astype(np.int64)


class FakeSource:
    """Only what the app asks of a source."""

    def __init__(self, transport: FakeTransport | None) -> None:
        self.header = Header()
        self.generation = 0
        self.transport = transport

    def poll(self, timeout_s: float) -> Sequence[pa.RecordBatch]:
        return []

    def now_ns(self) -> int | None:
        return T0

    def health(self) -> SourceHealth:
        return SourceHealth("fake", "live")

    def close(self) -> None:
        return


ROWS = pl.DataFrame(
    {
        "kind": ["execution"] * 40,
        "name": [f"gemm_{i}" for i in range(40)],
        "enqueue_ns": [T0 + i * 1000 for i in range(40)],
        "start_ns": [T0 + i * 1000 + 600 for i in range(40)],
        "end_ns": [T0 + i * 1000 + 5600 - i for i in range(40)],
        "launch_ns": [400] * 40,
        "stream": ["prefill"] * 40,
        "device": [0] * 40,
        "core": list(range(40)),
        "request": [7] * 20 + [8] * 20,
        "wait_ns": [600] * 40,
        "service_ns": [5000 - i for i in range(40)],
        "latency_ns": [5600 - i for i in range(40)],
    }
)


class FakeFeed:
    """An ingest that shows `base`, and keeps what it was asked."""

    def __init__(self, base: Snapshot | None = None, *, replay: bool = False, rows: pl.DataFrame = ROWS) -> None:
        self.source = FakeSource(FakeTransport() if replay else None)
        self.base = base
        self.window_ns: int | None = 10 * SECOND
        self.failed: str | None = None
        self.filters: list[str] = []
        self.filter_text = ""
        self.queries: list[RowQuery] = []
        self.frame = rows
        self.batches: Sequence[pa.RecordBatch] = ()

    @property
    def snapshot(self) -> Snapshot | None:
        """Always taken just now, so that no pane is ever stale."""
        if self.base is None:
            return None
        transport = self.source.transport
        health = self.base.health
        if transport is not None and health.state == "live":
            at = transport.state()
            health = replace(health, state="playing" if at.playing else "ended" if at.at_end else "paused")
        return replace(
            self.base,
            taken_s=time.monotonic(),
            transport=transport.state() if transport else None,
            health=health,
            filter_text=self.filter_text,
        )

    def set_window(self, ns: int) -> None:
        self.window_ns = ns

    def set_filter(self, text: str) -> None:
        if text == "bad":
            raise ValueError("unknown name\nbad\n^")
        self.filters.append(text)
        self.filter_text = text

    def rows(self, query: RowQuery) -> pl.DataFrame:
        self.queries.append(query)
        return self.frame

    def raw(self) -> list[pa.RecordBatch]:
        return list(self.batches)


class MovingFeed(FakeFeed):
    """Every look shows other numbers."""

    looks = 0

    def __init__(self) -> None:
        self.frames = [fake_snapshot(tick) for tick in range(20)]
        super().__init__(self.frames[0])

    @property
    def snapshot(self) -> Snapshot | None:
        self.looks += 1
        self.base = self.frames[self.looks % 20]
        return super().snapshot


class CrashingFeed(FakeFeed):
    """Breaks after a few looks, with a secret among its local variables."""

    looks = 0

    @property
    def snapshot(self) -> Snapshot | None:
        token = "TOKEN-1234"
        self.looks += 1
        if self.looks > 3:
            raise RuntimeError("wheel came off" if token else "")
        return super().snapshot


MARKED = "\x1b]0;MK\x07\x1b[5;5HMK\u009b5mMK\u009d0;MK\u202eMK\x1bPMK\x1b\\[/MK][@click=app.quit]MK\x00"


def poisoned(value: Any, text: str) -> Any:
    """`value` with every string in it replaced, however deep, as the edge does it; words of the contract stay."""
    if isinstance(value, str):
        return safe_text(text)
    if isinstance(value, tuple):
        return tuple(poisoned(item, text) for item in value)
    if hasattr(value, "__dataclass_fields__"):
        kept = {"latency_of", "of", "level", "state", "clock"}
        changes = {f.name: poisoned(getattr(value, f.name), text) for f in fields(value) if f.name not in kept}
        return replace(value, **{key: new for key, new in changes.items() if new is not getattr(value, key)})
    return value


def hostile_feed(text: str) -> FakeFeed:
    """A feed whose every string is `text`, as safe as the edge makes it and no safer."""
    snapshot: Snapshot = poisoned(fake_snapshot(1), text)
    clean = safe_text(text)
    rows = ROWS.with_columns(pl.lit(clean).alias(name) for name in ("name", "stream", "kind", "shape", "host"))
    return FakeFeed(snapshot, rows=rows)


def feed_of(state: str) -> FakeFeed:
    """A feed in one of the states every screen is tested in."""
    if state == "no data":
        return FakeFeed(bare_snapshot())
    if state == "hostile":
        return hostile_feed(MARKED)
    if state == "moving":
        return MovingFeed()
    if state == "crash":
        return CrashingFeed(fake_snapshot(1))
    if state == "nothing":
        return FakeFeed(None)
    if state == "one device":
        return FakeFeed(fake_snapshot(1, core_count=1, named=(("only", 3.0, 1),)))
    if state == "64 devices":
        names = tuple((f"stream {i}", 1.0 + i, i) for i in range(64))
        return FakeFeed(fake_snapshot(1, core_count=64 * 16, named=names))
    feed = FakeFeed(fake_snapshot(1), replay=state in ("paused", "ended", "playing"))
    if feed.source.transport is not None:
        if state == "paused":
            feed.source.transport.pause()
        elif state == "ended":
            feed.source.transport.end()
    return feed
