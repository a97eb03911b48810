"""What executions and requests say about themselves: queue wait, service time, latency."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusetui.analysis.arrays import Bools, Ints
from fusetui.analysis.columns import EXECUTION, NULL, REQUEST, Columns


@dataclass(slots=True)
class Work:
    """Executions or requests that ended, arrays of shape (n,), ns.

    joined   enqueue time known
    waited   joined, and not a later node of a graph launch: has a queue wait of its own
    raw      start - enqueue where joined, else 0: negative where it started before the launch call returned
    wait     queue wait max(0, raw) where waited, else 0
    service  end - start
    latency  end - enqueue, end - start without enqueue time
    """

    rows: Columns
    joined: Bools
    waited: Bools
    raw: Ints
    wait: Ints
    service: Ints
    latency: Ints

    def __len__(self) -> int:
        return len(self.service)


def executions(rows: Columns) -> Work:
    """The executions among the rows that have begun and ended."""
    return _work(ran(rows), EXECUTION)


def ran(rows: Columns) -> Columns:
    """The rows of executions that have begun and ended."""
    chosen = (rows.kind == EXECUTION) & (rows.end != NULL) & (rows.start != NULL)
    return rows if chosen.all() else rows.take(chosen)


def by_end(rows: Columns) -> Columns:
    """The rows in the order of their ends."""
    if bool((rows.end[1:] >= rows.end[:-1]).all()):
        return rows
    # Completion order with some disorder, or the rows of several producers: long runs in order, fast to merge.
    return rows.take(np.argsort(rows.end, kind="stable"))


def requests(rows: Columns) -> Work:
    """The requests among the rows that have ended and whose begin (enqueue or start) is known."""
    ended = (rows.kind == REQUEST) & (rows.end != NULL) & ((rows.start != NULL) | (rows.enqueue != NULL))
    return _work(rows if ended.all() else rows.take(ended), REQUEST)


def is_open(rows: Columns) -> Bools:
    """Executions and requests without an end."""
    still: Bools = (rows.end == NULL) & (rows.kind <= REQUEST)
    return still


def _work(rows: Columns, kind: int) -> Work:
    enqueue, end = rows.enqueue, rows.end
    joined = enqueue != NULL
    start = rows.start
    if kind == REQUEST:
        start = np.where(start == NULL, enqueue, start)
    waited = joined & (rows.node <= 0)
    service, latency, raw = end - start, end - enqueue, start - enqueue
    np.maximum(service, 0, out=service)
    np.maximum(latency, 0, out=latency)
    if not joined.all():
        raw = np.where(joined, raw, 0)
        latency = np.where(joined, latency, service)
    wait = np.maximum(raw, 0)
    return Work(
        rows=rows,
        joined=joined,
        waited=waited,
        raw=raw,
        wait=wait if waited.all() else np.where(waited, wait, 0),
        service=service,
        latency=latency,
    )
