"""Every measure once, as plain data for scripts, reports and exit codes. Absent is None; nothing is NaN."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fusetui.analysis.allocator import give_back, keep_freed_blocks
from fusetui.analysis.arrays import Ints
from fusetui.analysis.attribution.summary import tail_time_summary
from fusetui.analysis.busy import IntervalUnion
from fusetui.analysis.columns import EXECUTION, NULL, Words, plain
from fusetui.analysis.coverage import Coverage
from fusetui.analysis.filter import Filter, parse_filter
from fusetui.analysis.frame import Context, snapshot_of
from fusetui.analysis.mapping_summary import mapping_summary
from fusetui.analysis.slots import Grid
from fusetui.analysis.snapshot import Snapshot, Tail
from fusetui.analysis.window import Window
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.schema import KINDS
from fusetui.telemetry.source import SourceHealth, Trace

EXACT_ROWS: Final = 2_000_000
"""Most rows of a trace that are summarised from the raw rows (about 0.4 kB each while it lasts); beyond, quantiles
come from log histograms and say `"exact": false`. Counts and busy time are exact for any number of rows."""
NEWEST_ROWS: Final = 250_000
"""Of a trace of more rows so many of the newest tell what no histogram can: where the tail's time went, parallel steps,
the slowest against the median. A note says so."""
_QUANTILES: Final = (("p50", "p50_ns"), ("p95", "p95_ns"), ("p99", "p99_ns"), ("p999", "p999_ns"), ("max", "max_ns"))


def summarise_trace(
    trace: Trace, *, window_ns: int | None = None, filter: str | None = None, causes: bool = False
) -> dict[str, Any]:
    """Every measure over all rows of a trace, in bounded memory; see `summarise_snapshot`, and `coverage` on top.

    window_ns  only the rows of the last window_ns of the trace
    filter     only the rows that pass; raises FilterError
    causes     also what caused the tail, by simulation: takes seconds
    An unreadable batch is left out and named in the notes.
    """
    give_back()  # what importing took
    keep_freed_blocks()
    only = parse_filter(filter or "")
    index = trace.index()
    if not len(index.rows):
        window, now_ns, first_ns = Window(Grid.of_span(0, 0)), 0, 0
    else:
        now_ns = int(index.last_ns.max())
        first_ns = int(index.first_ns.min()) if window_ns is None else now_ns - window_ns + 1
        window = Window(Grid.of_span(first_ns, now_ns), exact_rows=EXACT_ROWS, newest_rows=NEWEST_ROWS)
    busy, coverage = IntervalUnion(), Coverage()
    notes = list(trace.notes)
    rows = 0
    for batch in _batches(trace, index.last_ns >= first_ns, only, notes):
        rows += len(batch)
        window.add(batch, now_ns)
        coverage.add(batch)
        if window_ns is None:
            busy.add(*_intervals(batch))
    window.settle()
    give_back()
    if not window.whole:
        notes.append(
            f"more than {EXACT_ROWS:,} rows: quantiles are those of histograms; "
            f"where the tail's time went, parallel steps and cohorts are of the newest {window.kept_rows:,}"
        )
    health = SourceHealth(name="trace", state="ended", rows=rows, batches=len(index.rows), missing=tuple(trace.notes))
    context = Context(1, time.monotonic(), trace.header, health, None, 0, only.text if only else "", 0.0)
    snapshot = snapshot_of(window, now_ns, context)
    if window_ns is None and snapshot.busy_ns is not None and busy.exact:
        snapshot = replace(snapshot, busy_ns=busy.total_ns())
    summary = summarise_snapshot(snapshot)
    if causes:
        # The simulation takes longer to import than most traces to summarise.
        from fusetui.analysis.attribution.both import with_causes
        from fusetui.analysis.attribution.trace import causes_of_trace

        found = causes_of_trace(trace, window_ns=window_ns, filter=filter)
        summary["attribution"] = _json(with_causes(snapshot.tail_time, found))
    summary["coverage"] = coverage.summary(trace.header.source, snapshot.launch, notes)
    summary["notes"] = notes + [note for note in summary["notes"] if note not in notes]
    return summary


def summarise_snapshot(snapshot: Snapshot) -> dict[str, Any]:
    """The numbers of a snapshot as JSON-ready data: str, int, float, bool, None, list, dict; times in ns."""
    span = snapshot.span_ns
    idle = None if span is None or snapshot.busy_ns is None else span - snapshot.busy_ns
    done = snapshot.requests if snapshot.latency_of == "request" else snapshot.executions
    plain = {
        "now_ns": snapshot.now_ns,
        "window_ns": snapshot.now_ns - snapshot.window_start_ns,
        "slot_ns": snapshot.slot_ns,
        "filter": snapshot.filter_text,
        "executions": snapshot.executions,
        "requests": snapshot.requests,
        "counters": snapshot.counters,
        "marks": snapshot.marks_n,
        "open_waiting": snapshot.open_waiting,
        "open_running": snapshot.open_running,
        "oldest_open_ns": snapshot.oldest_open_ns,
        "span_ns": span,
        "busy_ns": snapshot.busy_ns,
        "idle_ns": idle,
        "throughput_per_s": done / span * 1e9 if span else None,
        "rows_per_s": snapshot.rows_per_s,
        "latency_ns": {"of": snapshot.latency_of, **_tail(snapshot.latency)},
        "queue_wait_ns": _tail(snapshot.queue_wait),
        "service_ns": _tail(snapshot.service),
        "depth": asdict(snapshot.depth),
        "launch": _without(asdict(replace(snapshot.launch, call=Tail())), "call")
        | {"call_ns": _tail(snapshot.launch.call)},
        "imbalance": _imbalance(snapshot),
        "fairness": asdict(snapshot.fairness),
        "mapping": _without(asdict(snapshot.mapping), "planned_by_slot") | mapping_summary(snapshot.mapping_detail),
        "cohort": None if snapshot.cohort is None else asdict(snapshot.cohort),
        "attribution": tail_time_summary(snapshot.tail_time),
        "streams": _streams(snapshot),
        "cores": _cores(snapshot),
        "counters_by_name": _counters(snapshot),
        "marks_by_time": [asdict(mark) for mark in snapshot.marks],
        "missing_columns": sorted(snapshot.missing_columns),
        "source_health": asdict(snapshot.health),
        "header": asdict(snapshot.header),
        "late_rows": snapshot.late_rows,
        "early_rows": snapshot.early_rows,
        "notes": [*snapshot.health.missing, *snapshot.notes],
    }
    result: dict[str, Any] = _json(plain)
    return result


def _intervals(batch: pa.RecordBatch) -> tuple[Ints, Ints]:
    """Start and end of the executions in a batch that have both, (n,) ns each."""
    kind = Words(known=KINDS).ids(batch.column("kind"))
    start, end = plain(batch.column("start_ns"), NULL), plain(batch.column("end_ns"), NULL)
    ran = (kind == EXECUTION) & (start != NULL) & (end != NULL)
    return start[ran], np.maximum(end[ran], start[ran])


def _batches(trace: Trace, wanted: Any, only: Filter | None, notes: list[str]) -> Iterator[pa.RecordBatch]:
    for number in np.flatnonzero(wanted).tolist():
        try:
            batch = trace.read(number)
        except TelemetryError as error:
            notes.append(str(error))
            continue
        yield batch if only is None else only.apply(batch)


def _tail(tail: Tail) -> dict[str, Any]:
    return {
        "n": tail.n,
        **{name: getattr(tail, field) for name, field in _QUANTILES},
        "mean": tail.mean_ns,
        "open_n": tail.open_n,
        "at_least": sorted(tail.at_least),
        "exact": tail.exact,
        "why": tail.why,
    }


def _imbalance(snapshot: Snapshot) -> dict[str, Any]:
    imbalance = asdict(snapshot.cores.imbalance)
    imbalance["lambda"] = imbalance.pop("lambda_")
    return {"level": snapshot.cores.level, **imbalance}


def _streams(snapshot: Snapshot) -> list[dict[str, Any]]:
    return [
        {
            "name": row.name,
            "executions": row.executions,
            "busy_ns": row.busy_ns,
            "wait": _tail(row.wait),
            "service": _tail(row.service),
            "depth": asdict(row.depth),
            "waiting": row.waiting,
            "oldest_open_ns": row.oldest_open_ns,
            "served_ns": row.served_ns,
            "demand_ns": row.demand_ns,
        }
        for row in snapshot.streams
    ]


def _cores(snapshot: Snapshot) -> list[dict[str, Any]]:
    cores = snapshot.cores
    return [
        {"label": label, "busy_ns": busy, "executions": executions}
        for label, busy, executions in zip(cores.labels, cores.busy_ns, cores.executions, strict=True)
    ]


def _counters(snapshot: Snapshot) -> list[dict[str, Any]]:
    return [
        {
            "name": row.name,
            "device": row.device,
            "unit": row.unit,
            "last": row.last,
            "max": row.max,
            "age_ns": _age_ns(row.by_slot, snapshot.slot_ns),
        }
        for row in snapshot.counter_rows
    ]


def _age_ns(by_slot: npt.NDArray[np.float64], slot_ns: int) -> int | None:
    """How long before the end of the window the last reading came, to a slot."""
    filled = np.flatnonzero(np.isfinite(by_slot))
    return int(len(by_slot) - 1 - filled[-1]) * slot_ns if filled.size else None


def _without(fields: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key != name}


def _json(value: Any) -> Any:
    """The same with plain types only; a number that is not finite is absent."""
    if isinstance(value, Mapping):
        return {str(key): _json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_json(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
