"""Work that has not ended yet: the newest row of each (kind, host, stream, request) while that row is open."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from fusetui.analysis.arrays import Bools, Codes, Ints
from fusetui.analysis.columns import EXECUTION, NULL, REQUEST, Columns
from fusetui.analysis.work import is_open

Hashes = npt.NDArray[np.uint64]

_NONE: Final[Ints] = np.zeros(0, np.int64)
LIMIT: Final = 1 << 16
"""Open items kept; beyond that the oldest rows are forgotten and counted."""


class OpenWork:
    """Open executions and requests; arrays of shape (m,), m <= LIMIT.

    executions_seen  an open execution was ever sent: only then is "nothing waits" a fact and not just unknown

    A later row supersedes only a row of the same kind: an execution of a request does not end the request.
    """

    def __init__(self) -> None:
        self.kind: Codes = np.zeros(0, np.int8)
        self.stream: Codes = np.zeros(0, np.int32)
        self.enqueue: Ints = np.zeros(0, np.int64)
        self.start: Ints = np.zeros(0, np.int64)
        self._hash: Hashes = np.zeros(0, np.uint64)
        self.executions_seen = False
        self.forgotten = 0

    def __len__(self) -> int:
        return len(self.kind)

    def update(self, rows: Columns) -> None:
        """Take in rows in their order."""
        opened = is_open(rows)
        any_open = bool(opened.any())
        if not any_open and len(self) == 0:
            return
        self.executions_seen = self.executions_seen or bool((opened & (rows.kind == EXECUTION)).any())
        hashes = _hashes(rows)
        known = np.concatenate([self._hash, hashes[opened]])
        concerned = np.flatnonzero(opened | (np.isin(hashes, known) & (rows.kind <= REQUEST)))
        if concerned.size == 0:
            return
        every = np.concatenate([self._hash, hashes[concerned]])
        # The last row of each key decides.
        _, from_back = np.unique(every[::-1], return_index=True)
        last = np.sort(every.size - 1 - from_back)
        still = np.concatenate([np.ones(len(self), np.bool_), opened[concerned]])[last]
        keep = last[still]
        if keep.size > LIMIT:
            self.forgotten += keep.size - LIMIT
            keep = keep[-LIMIT:]
        self.kind = np.concatenate([self.kind, rows.kind[concerned]])[keep]
        self.stream = np.concatenate([self.stream, rows.stream[concerned]])[keep]
        self.enqueue = np.concatenate([self.enqueue, rows.enqueue[concerned]])[keep]
        self.start = np.concatenate([self.start, rows.start[concerned]])[keep]
        self._hash = every[keep]

    def ages(self, which: Bools, since: Ints, now_ns: int) -> Ints:
        """Ages at `now_ns` of the items chosen, counted from `since` (self.enqueue or self.start)."""
        if not len(self):
            return _NONE
        chosen = which & (since != NULL)
        ages: Ints = np.maximum(now_ns - since[chosen], 0)
        return ages

    @property
    def waiting(self) -> Bools:
        """Executions that are enqueued and have not begun, (m,)."""
        chosen: Bools = (self.kind == EXECUTION) & (self.start == NULL)
        return chosen

    @property
    def running(self) -> Bools:
        """Executions that have begun, (m,)."""
        chosen: Bools = (self.kind == EXECUTION) & (self.start != NULL)
        return chosen

    @property
    def requests(self) -> Bools:
        """Requests, waiting or being served, (m,)."""
        chosen: Bools = self.kind == REQUEST
        return chosen

    def request_ages(self, now_ns: int) -> Ints:
        """Ages of open requests since they were enqueued (started, where that is all that is known)."""
        since = np.where(self.enqueue != NULL, self.enqueue, self.start)
        return self.ages(self.requests, since, now_ns)

    def execution_ages(self, now_ns: int) -> Ints:
        """The same of open executions."""
        since = np.where(self.enqueue != NULL, self.enqueue, self.start)
        return self.ages(~self.requests, since, now_ns)


def _hashes(rows: Columns) -> Hashes:
    """One 64-bit mix per row of its (kind, host, stream, request); `stream` already stands for (host, stream)."""
    queue = rows.stream.astype(np.int64).astype(np.uint64) * np.uint64(8) + rows.kind.astype(np.uint64)
    mixed = rows.request.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    mixed += queue * np.uint64(0xC2B2AE3D27D4EB4F)
    return mixed ^ (mixed >> np.uint64(32))
