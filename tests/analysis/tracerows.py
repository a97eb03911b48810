"""Hand-made batches for the tests of the measures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import SCHEMA, build_batch
from fusetui.telemetry.source import BatchIndex, SourceHealth, TransportState

MS = 1_000_000
S = 1_000_000_000


def batch_of(rows: Sequence[dict[str, Any]]) -> pa.RecordBatch:
    """A canonical batch from rows given as column -> value; kind and name default to an execution of k."""
    columns: dict[str, Any] = {}
    for field in SCHEMA:
        default = {"kind": "execution", "name": "k"}.get(field.name)
        values = [row.get(field.name, default) for row in rows]
        if any(value is not None for value in values):
            base = pa.utf8() if isinstance(field.type, pa.DictionaryType) else field.type
            columns[field.name] = pa.array(values, base)
    return build_batch(columns, rows=len(rows))


def random_batch(rng: np.random.Generator, n: int, span_ns: int, **options: Any) -> pa.RecordBatch:
    """Executions in completion order within [0, span_ns), with overlaps, nulls and clipped waits."""
    end = np.sort(rng.integers(0, span_ns, n))
    start = end - rng.integers(0, max(span_ns // 20, 1), n)
    enqueue = start - rng.integers(-5, max(span_ns // 10, 1), n)
    unknown = rng.random(n) < options.get("orphans", 0.1)
    words = np.array(["a", "b", "c"])
    return build_batch(
        {
            "kind": "execution",
            "name": pa.array(words[rng.integers(0, 3, n)]),
            "enqueue_ns": pa.array(enqueue, mask=unknown),
            "launch_ns": pa.array(rng.integers(0, 50, n), mask=unknown),
            "start_ns": start,
            "end_ns": end,
            "node": pa.array(rng.integers(0, 3, n).astype(np.int32), mask=rng.random(n) < 0.7),
            "device": np.zeros(n, np.int32),
            "core": rng.integers(0, options.get("cores", 4), n).astype(np.int32),
            "stream": pa.array(np.char.add("s", rng.integers(0, options.get("streams", 3), n).astype(str))),
            "request": pa.array(rng.integers(0, 10, n)),
            "mapping": pa.array(np.array(["planned", "adapted", "fallback"])[rng.integers(0, 3, n)]),
        }
    )


class ListTrace:
    """A Trace over batches in a list."""

    def __init__(self, batches: Sequence[pa.RecordBatch]) -> None:
        self.header = Header(source="test", clock="trace")
        self.notes: Sequence[str] = ()
        self.complete = True
        self._batches = list(batches)

    def index(self) -> BatchIndex:
        ends = [batch.column("end_ns").to_numpy(zero_copy_only=False) for batch in self._batches]
        first = [int(np.nanmin(end)) for end in ends]
        last = [int(np.nanmax(end)) for end in ends]
        rows = [len(batch) for batch in self._batches]
        return BatchIndex(*(np.array(values, np.int64) for values in (first, last, rows)))

    def read(self, number: int) -> pa.RecordBatch:
        return self._batches[number]

    def refresh(self) -> bool:
        return False

    def close(self) -> None:
        pass


class FakeTransport:
    """A transport that stands at the end of a trace."""

    def __init__(self, start_ns: int, end_ns: int, rows: int) -> None:
        self.start_ns, self.end_ns, self.rows = start_ns, end_ns, rows
        self.growing = False
        self.windows: list[int] = []

    def state(self) -> TransportState:
        return TransportState(False, 1.0, self.end_ns, self.start_ns, self.end_ns, False, True, self.growing)

    def density(self, bins: int) -> np.ndarray:
        each, rest = divmod(self.rows, bins)
        return np.array([each + (i < rest) for i in range(bins)], np.int64)

    def set_window(self, window_ns: int) -> None:
        self.windows.append(window_ns)


class ListSource:
    """A Source that hands out what `give` was given, and then what is left of time."""

    def __init__(self, transport: FakeTransport | None = None) -> None:
        self.header = Header(source="test", clock="trace")
        self.generation = 0
        self.transport = transport
        self.present: int | None = None
        self.queue: list[Any] = []
        self.polls = 0

    def give(self, *batches: Any) -> None:
        self.queue.extend(batches)

    def poll(self, timeout_s: float) -> Sequence[pa.RecordBatch]:
        import time

        self.polls += 1
        taken, self.queue = self.queue, []
        for item in taken:
            if isinstance(item, BaseException):
                raise item
        if not taken:
            time.sleep(min(timeout_s, 0.01))
        return taken

    def now_ns(self) -> int | None:
        return self.present

    def health(self) -> SourceHealth:
        return SourceHealth(name="test", state="live")

    def close(self) -> None:
        pass
