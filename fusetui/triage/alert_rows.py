"""The rows that alerts look at: the newest of a stretch of time, and a store of them for who has no window."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from fusetui.analysis.coalesce import coalesced
from fusetui.telemetry.eventtime import event_time_ns
from fusetui.telemetry.header import Header
from fusetui.triage.alert_scope import AlertRows

MAX_ROWS: Final = 100_000
"""Most rows a look takes, the newest."""
SNAPSHOT_ROWS: Final = 20_000
"""The same for rules with a measure that costs a snapshot."""

OLDER: Final = 32
"""Batches in a row that are too old, from which on all before them are taken to be."""


def newest_rows(
    batches: Sequence[pa.RecordBatch], header: Header, now_ns: int, over_ns: int, most: int = MAX_ROWS
) -> AlertRows:
    """The rows with an event time in (now_ns - over_ns, now_ns], the newest `most` of them.

    Rows without any time (open work) are taken as they come. batches are oldest first.
    """
    kept: list[pa.RecordBatch] = []
    room, older = most, 0
    for batch in reversed(batches):
        if room <= 0 or older >= OLDER:
            break
        event = event_time_ns(batch)
        older = older + 1 if len(event) and int(event.max()) <= now_ns - over_ns else 0
        inside = ((event > now_ns - over_ns) & (event <= now_ns)) | (event == 0)
        taken = batch if inside.all() else batch.filter(pa.array(inside))
        if len(taken) > room:
            taken = taken.slice(len(taken) - room)
        if len(taken):
            kept.append(taken)
            room -= len(taken)
    return AlertRows(coalesced(kept[::-1], most), header, cut=room <= 0)


class RecentBatches:
    """The batches of the last `over_ns`, bounded in rows: what a headless command keeps for its alerts."""

    def __init__(self, over_ns: int) -> None:
        self._over_ns = over_ns
        self._kept: deque[tuple[int, pa.RecordBatch]] = deque()
        self._rows = 0
        self.newest_ns: int | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Take in a canonical batch."""
        if not len(batch):
            return
        last = int(event_time_ns(batch).max())
        if last:
            self.newest_ns = last if self.newest_ns is None else max(self.newest_ns, last)
        self._kept.append((last, batch))
        self._rows += len(batch)
        floor = (self.newest_ns or 0) - self._over_ns
        while len(self._kept) > 1 and (self._kept[0][0] <= floor or self._rows - len(self._kept[0][1]) >= MAX_ROWS):
            self._rows -= len(self._kept.popleft()[1])

    @property
    def batches(self) -> list[pa.RecordBatch]:
        """Oldest first."""
        return [batch for _, batch in self._kept]
