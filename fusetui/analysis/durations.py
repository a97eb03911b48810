"""Queue wait, service time and latency of the rows of a batch, for tables and filters."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from fusetui.analysis.arrays import Ints
from fusetui.analysis.columns import EXECUTION, NULL, REQUEST, Words, plain
from fusetui.telemetry.schema import KINDS, SCHEMA

WAIT: Final = "wait"
SERVICE: Final = "service"
LATENCY: Final = "latency"


def durations(batch: pa.RecordBatch) -> dict[str, Ints]:
    """WAIT, SERVICE and LATENCY of each row, (n,) ns, NULL where not known or no such thing.

    As `analysis.work` defines them: wait = max(0, start - enqueue), of executions that are not later nodes of a
    graph launch and of requests; service = end - start; latency = end - enqueue, end - start without enqueue.
    """
    kind = Words(known=KINDS).ids(_column(batch, "kind"))
    enqueue, start, end = (plain(_column(batch, name), NULL) for name in ("enqueue_ns", "start_ns", "end_ns"))
    work = (kind == EXECUTION) | (kind == REQUEST)
    queued, began, ended = work & (enqueue != NULL), work & (start != NULL), work & (end != NULL)
    waits = queued & began & ((plain(_column(batch, "node"), 0) <= 0) | (kind == REQUEST))
    since = np.where(queued, enqueue, start)
    return {
        WAIT: np.where(waits, np.maximum(start - enqueue, 0), NULL),
        SERVICE: np.where(began & ended, np.maximum(end - start, 0), NULL),
        LATENCY: np.where((queued | began) & ended, np.maximum(end - since, 0), NULL),
    }


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    at = batch.schema.get_field_index(name)
    return batch.column(at) if at >= 0 else pa.nulls(len(batch), SCHEMA.field(name).type)
