"""A queue of batches bounded by bytes, between many reader threads and one poll."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Final, NamedTuple

import pyarrow as pa

from fusetui.sources.spec import Overflow

MERGE_ROWS: Final = 10_000
"""Rows worth taking at once; with fewer, `take` lingers for more."""


class Arrived(NamedTuple):
    """A batch, what it holds in memory, and what it is from: the host its rows belong to when they name none."""

    batch: pa.RecordBatch
    bytes: int
    origin: str


class BatchQueue:
    """Blocks or drops when `limit_bytes` are held; an empty queue takes any one batch.

    rows, batches  taken in; dropped_rows, dropped_batches: not taken in (policy "drop" only)
    """

    def __init__(self, limit_bytes: int, overflow: Overflow) -> None:
        self._limit = limit_bytes
        self._overflow = overflow
        self._items: deque[Arrived] = deque()
        self._bytes = 0
        self._rows = 0
        self._blocked = 0
        self._closed = False
        self._lock = threading.Lock()
        self._filled = threading.Condition(self._lock)
        self._drained = threading.Condition(self._lock)
        self.rows = self.batches = self.dropped_rows = self.dropped_batches = 0

    def put(self, item: Arrived) -> bool:
        """Hand over a batch, waiting for room under "block". False: the queue is closed, stop reading."""
        with self._lock:
            if self._full(item):
                if self._overflow == "drop":
                    self.dropped_batches += 1
                    self.dropped_rows += item.batch.num_rows
                    return not self._closed
                self._blocked += 1
                self._filled.notify()
                self._drained.wait_for(lambda: self._closed or not self._full(item))
                self._blocked -= 1
            if self._closed:
                return False
            # One wake-up per take, not per batch: a million small batches must not mean a million of them.
            before = self._rows
            self._items.append(item)
            self._bytes += item.bytes
            self._rows += item.batch.num_rows
            self.rows += item.batch.num_rows
            self.batches += 1
            if len(self._items) == 1 or before < MERGE_ROWS <= self._rows:
                self._filled.notify()
            return True

    def take(self, timeout_s: float, linger_s: float, max_rows: int) -> list[Arrived]:
        """Up to about `max_rows` rows: waits `timeout_s` for the first and then `linger_s` for MERGE_ROWS."""
        deadline = time.monotonic() + timeout_s
        taken: list[Arrived] = []
        with self._lock:
            self._filled.wait_for(lambda: self._items or self._closed, timeout_s)
            if self._items and self._rows < MERGE_ROWS:
                rest_s = max(0.0, min(linger_s, deadline - time.monotonic()))
                self._filled.wait_for(lambda: self._rows >= MERGE_ROWS or self._blocked or self._closed, rest_s)
            rows = 0
            while self._items and (not taken or rows + self._items[0].batch.num_rows <= max_rows):
                item = self._items.popleft()
                taken.append(item)
                rows += item.batch.num_rows
                self._bytes -= item.bytes
            self._rows -= rows
            self._drained.notify_all()
        return taken

    def close(self) -> None:
        """Wake everyone; what is queued can still be taken."""
        with self._lock:
            self._closed = True
            self._filled.notify_all()
            self._drained.notify_all()

    def __len__(self) -> int:
        return len(self._items)

    def _full(self, item: Arrived) -> bool:
        return bool(self._items) and self._bytes + item.bytes > self._limit
