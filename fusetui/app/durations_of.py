"""Latencies and queue waits of a batch with their ends, and its marks: what is watched over time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from fusetui.analysis.arrays import Bools, Ints
from fusetui.analysis.columns import EXECUTION, MARK, NULL, REQUEST, Words, plain
from fusetui.analysis.durations import LATENCY, WAIT, durations
from fusetui.analysis.snapshot import LatencyOf
from fusetui.telemetry.eventtime import event_time_ns
from fusetui.telemetry.schema import KINDS
from fusetui.telemetry.text import safe_text


@dataclass(frozen=True, slots=True)
class Durations:
    """ns. *_ends (n,) and the durations that ended then (n,), in the order of the batch."""

    request_ends: Ints
    request_latency: Ints
    execution_ends: Ints
    execution_latency: Ints
    wait_ends: Ints
    wait: Ints

    def __len__(self) -> int:
        return len(self.request_ends) + len(self.execution_ends)

    def latency(self, of: LatencyOf) -> tuple[Ints, Ints]:
        """(ends, latencies) of requests or of executions."""
        if of == "request":
            return self.request_ends, self.request_latency
        return self.execution_ends, self.execution_latency

    def waits(self) -> tuple[Ints, Ints]:
        """(ends, queue waits) of executions."""
        return self.wait_ends, self.wait


def durations_of(batch: pa.RecordBatch) -> Durations:
    """What a canonical batch says of work that ended."""
    kind = Words(known=KINDS).ids(batch.column("kind"))
    end, found = plain(batch.column("end_ns"), NULL), durations(batch)

    def chosen(of: int, what: str) -> tuple[Ints, Ints]:
        known: Bools = (kind == of) & (found[what] != NULL) & (end != NULL)
        return end[known], found[what][known]

    return Durations(*chosen(REQUEST, LATENCY), *chosen(EXECUTION, LATENCY), *chosen(EXECUTION, WAIT))


def marks_of(batch: pa.RecordBatch) -> list[tuple[int, str]]:
    """(time, name) of the marks in a batch."""
    kind = Words(known=KINDS).ids(batch.column("kind"))
    rows = np.flatnonzero(kind == MARK)
    if not rows.size:
        return []
    names = batch.column("name").take(pa.array(rows)).to_pylist()
    at = event_time_ns(batch)[rows].tolist()
    return [(ns, safe_text(name or "mark", 200)) for ns, name in zip(at, names, strict=True) if ns]
