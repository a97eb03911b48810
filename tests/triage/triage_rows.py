"""Small traces whose fault is known by construction: rows of work served in order, with counters and marks beside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from fusetui.analysis.frame import Context, snapshot_of
from fusetui.analysis.slots import Grid
from fusetui.analysis.snapshot import Snapshot
from fusetui.analysis.window import Window
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import build_batch
from fusetui.telemetry.source import SourceHealth

MS = 1_000_000
S = 1_000_000_000
Ints = np.ndarray[Any, np.dtype[np.int64]]


@dataclass
class Served:
    """Items in order of arrival, ns; lane: core that served; every array (n,)."""

    arrival: Ints
    start: Ints
    end: Ints
    lane: Ints


def poisson(per_s: float, seconds: float, seed: int, from_s: float = 0.0) -> Ints:
    """Arrival times of a Poisson process, ns."""
    rng = np.random.default_rng(seed)
    gaps = rng.exponential(1e9 / per_s, round(per_s * seconds * 1.2) + 20)
    at = np.cumsum(gaps)
    return (at[at < seconds * 1e9] + from_s * 1e9).astype(np.int64)


def serve(arrival: Ints, service: Ints, lanes: int = 1, lane: Ints | None = None) -> Served:
    """First come, first served: by the lane given, else by the one that is free first."""
    free = np.zeros(lanes, np.int64)
    start, chosen = np.empty_like(arrival), np.empty_like(arrival)
    for i in range(len(arrival)):
        at = int(np.argmin(free)) if lane is None else int(lane[i])
        start[i] = max(int(arrival[i]), int(free[at]))
        free[at] = start[i] + service[i]
        chosen[i] = at
    return Served(arrival, start, start + service, chosen)


def work(served: Served, *, requests: bool = True, offset: int = 0, **columns: Any) -> list[pa.RecordBatch]:
    """Each item as a request and an execution that serves it; columns: of both, or `execution_…`/`request_…` of one."""
    n = len(served.arrival)
    base: dict[str, Any] = {
        "enqueue_ns": served.arrival, "start_ns": served.start, "end_ns": served.end, "device": np.zeros(n, np.int32),
        "core": served.lane.astype(np.int32), "stream": "main", "request": np.arange(offset, offset + n),
    }  # fmt: skip
    found = []
    for kind in ("execution", "request")[: 2 if requests else 1]:
        own = {key.removeprefix(f"{kind}_"): value for key, value in columns.items() if key.startswith(f"{kind}_")}
        both = {key: v for key, v in columns.items() if not key.startswith(("execution_", "request_"))}
        order = np.argsort(served.end, kind="stable")
        values = {**base, "kind": kind, "name": "k" if kind == "execution" else "serve", **both, **own}
        sorted_ = {key: _taken(value, order) for key, value in values.items() if value is not None}
        found.append(build_batch(sorted_, n))
    return found


def _taken(value: Any, order: Ints) -> Any:
    if isinstance(value, np.ndarray):
        return pa.array(value[order]) if value.dtype.kind == "U" else value[order]
    if isinstance(value, pa.Array):
        return value.take(pa.array(order))
    return value


def counter(name: str, at_ns: Ints, value: Any, unit: str = "", device: int | None = None) -> pa.RecordBatch:
    """Readings of one counter."""
    n = len(at_ns)
    columns: dict[str, Any] = {
        "kind": "counter", "name": name, "start_ns": at_ns, "end_ns": at_ns,
        "value": np.broadcast_to(np.asarray(value, np.float64), (n,)).copy(), "unit": unit,
    }  # fmt: skip
    if device is not None:
        columns["device"] = np.full(n, device, np.int32)
    return build_batch(columns, n)


def marks(name: str, at_ns: Ints, value: Any = None, unit: str | None = None) -> pa.RecordBatch:
    """Marks, with a value where they tell one."""
    n = len(at_ns)
    columns: dict[str, Any] = {"kind": "mark", "name": name, "start_ns": at_ns, "end_ns": at_ns}
    if value is not None:
        columns |= {"value": np.broadcast_to(np.asarray(value, np.float64), (n,)).copy(), "unit": unit or ""}
    return build_batch(columns, n)


def waiting(arrival: Ints) -> pa.RecordBatch:
    """Requests that still wait."""
    n = len(arrival)
    return build_batch(
        {
            "kind": "request", "name": "serve", "enqueue_ns": arrival, "start_ns": pa.nulls(n, pa.int64()),
            "end_ns": pa.nulls(n, pa.int64()), "stream": "main", "request": np.arange(1_000_000, 1_000_000 + n),
        },
        n,
    )  # fmt: skip


def snapshot(batches: Sequence[pa.RecordBatch], header: Header | None = None, **health: Any) -> Snapshot:
    """Of a whole trace."""
    last = max(
        int(np.nanmax(b["end_ns"].to_numpy(zero_copy_only=False))) for b in batches if b["end_ns"].null_count < len(b)
    )
    window = Window(Grid.of_span(0, last), exact_rows=2_000_000)
    for batch in batches:
        window.add(batch, last)
    told = SourceHealth(name="trace", state="ended", **health)
    return snapshot_of(window, last, Context(1, 0.0, header or Header(clock="trace"), told, None, 0, "", 0.0))


@dataclass(frozen=True)
class Case:
    """A trace with the finding it must lead to.

    number  in the list of issues; what: in a line
    right   the class that must come first, "" where no bottleneck is to be named
    rule    id that must be among the findings
    """

    number: int
    what: str
    right: str
    rule: str
    batches: list[pa.RecordBatch]
    baseline: list[pa.RecordBatch] | None = None
    header: Header = field(default_factory=lambda: Header(clock="trace"))
    health: Mapping[str, Any] = field(default_factory=dict)
