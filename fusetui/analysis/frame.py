"""Snapshots: the window at one moment, put together for panes and reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fusetui.analysis.accumulate import BY_EXECUTION, BY_REQUEST, COUNT
from fusetui.analysis.arrays import Floats, Ints
from fusetui.analysis.columns import NULL, OTHERS, Reader
from fusetui.analysis.fairness import fairness_of
from fusetui.analysis.imbalance import imbalance_of, lambda_by_slot
from fusetui.analysis.loghist import EDGES
from fusetui.analysis.mapping import MappingDetail
from fusetui.analysis.mapping_detail import mapping_detail
from fusetui.analysis.naming import core_label, several_hosts, stream_name
from fusetui.analysis.numbers import Interval, Numbers, counts_joined, depth_per_slot
from fusetui.analysis.rings import HistogramRing
from fusetui.analysis.snapshot import (
    Cores,
    Histogram,
    Launch,
    MappingShares,
    Snapshot,
    StreamRow,
    TailSeries,
)
from fusetui.analysis.window import Window
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import SCHEMA
from fusetui.telemetry.source import SourceHealth, TransportState

Level = Literal["core", "device", "host"]


@dataclass(frozen=True, slots=True)
class Context:
    """What a snapshot says that is not in the window; see `snapshot.Snapshot`."""

    version: int
    taken_s: float
    header: Header
    health: SourceHealth
    transport: TransportState | None
    generation: int
    filter_text: str
    ingest_per_s: float


def snapshot_of(window: Window, now_ns: int, context: Context, *, hasty: bool = False) -> Snapshot:
    """The window as it is at now_ns; hasty: its totals may be slightly older, see `Window.numbers`."""
    window.advance(now_ns)
    window.plans = context.header.plans
    at = window.interval(now_ns)
    level = _level(window)
    numbers = window.numbers(at, across_hosts=level == "host", hasty=hasty)
    acc, open_work = window.acc, window.open_work
    counts = acc.counts.sum(axis=0)
    streams = _streams(window, numbers, at)
    kind = BY_REQUEST if numbers.latency_of == "request" else BY_EXECUTION
    lasted = max(float(at.lasted_ns.sum()), 1.0)
    depth_by_slot = depth_per_slot(acc.wait_ns.sum(axis=0), counts_joined(acc), open_work, at)
    return Snapshot(
        version=context.version,
        taken_s=context.taken_s,
        header=context.header,
        health=context.health,
        transport=context.transport,
        generation=context.generation,
        now_ns=now_ns,
        window_start_ns=at.from_ns,
        slot_ns=window.grid.width,
        slot_start_ns=at.from_ns + np.arange(window.grid.count, dtype=np.int64) * window.grid.width,
        executions=_count(counts, "executions"),
        requests=_count(counts, "requests"),
        counters=_count(counts, "counters"),
        marks_n=_count(counts, "marks"),
        open_waiting=int(open_work.waiting.sum()) if open_work.executions_seen else None,
        open_running=int(open_work.running.sum()) if open_work.executions_seen else None,
        rows_by_slot=acc.counts[at.order, COUNT["rows"]],
        rows_per_s=_count(counts, "rows") / lasted * 1e9,
        ingest_per_s=context.ingest_per_s,
        span_ns=numbers.span_ns,
        busy_ns=numbers.busy_ns,
        latency_of=numbers.latency_of,
        latency=numbers.latency,
        latency_series=_series(acc.latency, kind, at),
        latency_histogram=_histogram(acc.latency.total[kind]),
        queue_wait=numbers.queue_wait,
        wait_series=_series(acc.wait, None, at),
        wait_histogram=_histogram(acc.wait.total.sum(axis=0)),
        service=numbers.service,
        depth=numbers.depth,
        depth_by_slot=depth_by_slot,
        oldest_open_ns=max((row.oldest_open_ns for row in streams if row.oldest_open_ns is not None), default=None),
        launch=_launch(counts, numbers),
        mapping=_mapping(acc.counts[at.order]),
        streams=streams,
        fairness=fairness_of([(row.name, row.served_ns, row.demand_ns, row.waiting) for row in streams]),
        cores=_cores(window, numbers, at, level),
        cohort=numbers.cohort,
        counter_rows=window.counters.rows(window.reader, at.order, at.from_ns),
        marks=window.marks(),
        missing_columns=frozenset(window.missing),
        filter_text=context.filter_text,
        raw_from_ns=window.raw_from_ns,
        raw_rows=window.raw_rows,
        columns_seen=dict(zip(SCHEMA.names, window.seen.sum(axis=0).tolist(), strict=True)),
        late_rows=window.late_rows,
        early_rows=window.early_rows,
        mapping_detail=_mapping_detail(window, at, depth_by_slot, numbers, context.header),
        notes=_notes(window),
        tail_time=window.tail_time(at, context.header.slo_ns, hasty=hasty),
        idle=window.idle,
    )


def _count(counts: Ints, name: str) -> int:
    return int(counts[COUNT[name]])


def _notes(window: Window) -> tuple[str, ...]:
    reader = window.reader
    bounded = (
        (reader.streams.overflowed, f"more than {len(reader.streams.keys)} streams: the rest is {OTHERS}"),
        (reader.places.overflowed, f"more than {len(reader.places.keys)} cores: the rest is {OTHERS}"),
        (reader.names.overflowed, f"more than {len(reader.names.words)} names: the rest is {OTHERS}"),
        (window.counters.overflowed, "more counter series than are kept: the later ones are left out"),
        (window.open_work.forgotten > 0, f"{window.open_work.forgotten} open items were forgotten: too many at once"),
        (window.late_rows > 0, f"{window.late_rows} rows came too late for the window"),
        (window.early_rows > 0, f"{window.early_rows} rows lie in the future or have impossible times"),
    )
    return tuple(text for holds, text in bounded if holds)


def _series(ring: HistogramRing, key: int | None, at: Interval) -> TailSeries:
    p50, p95, p99 = ring.series_of_all() if key is None else ring.series(key)
    n = ring.n.sum(axis=0) if key is None else ring.n[key]
    return TailSeries(n[at.order], p50[at.order], p95[at.order], p99[at.order])


def _histogram(counts: Ints) -> Histogram:
    used = np.flatnonzero(counts)
    if used.size == 0:
        return Histogram(np.zeros(1), np.zeros(0, np.int64))
    low, high = int(used[0]), int(used[-1]) + 1
    return Histogram(EDGES[low : high + 1].copy(), counts[low:high].copy())


def _launch(counts: Ints, numbers: Numbers) -> Launch:
    total, joined = _count(counts, "executions"), _count(counts, "joined")
    names = ("nodes", "clipped", "clock_errors", "short", "runtime_outliers", "delay_outliers")
    return Launch(
        joined=joined,
        total=total,
        orphans=total - joined,
        exposed_ns=numbers.exposed_ns,
        call=numbers.call,
        **{name: _count(counts, name) for name in names},
    )


def _mapping(by_slot: Ints) -> MappingShares:
    shares = by_slot[:, [COUNT["planned"], COUNT["adapted"], COUNT["fallback"]]]
    known = int(shares.sum())
    if known == 0:
        return MappingShares()
    planned, adapted, fallback = (shares.sum(axis=0) / known).tolist()
    in_slot = shares.sum(axis=1)
    planned_by_slot = np.where(in_slot > 0, shares[:, 0] / np.maximum(in_slot, 1), np.nan)
    return MappingShares(known, planned, adapted, fallback, planned_by_slot)


def _mapping_detail(window: Window, at: Interval, depth: Floats, numbers: Numbers, header: Header) -> MappingDetail:
    done = window.acc.counts[at.order, COUNT["requests" if numbers.latency_of == "request" else "executions"]]
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = np.where(at.lasted_ns > 0, done / at.lasted_ns * 1e9, np.nan)
    head = window.head if window.head is not None else 0
    return mapping_detail(
        window.mapping, window.mapping_rows, window.reader, at.order, head, (depth, rate), header.plans
    )


def _streams(window: Window, numbers: Numbers, at: Interval) -> tuple[StreamRow, ...]:
    acc, open_work = window.acc, window.open_work
    rows = []
    for key, of_stream in numbers.streams.items():
        mine = open_work.stream == key
        waiting, running = open_work.waiting & mine, open_work.running & mine
        executions = int(acc.service.n[key].sum())
        if executions == 0 and not (waiting | running).any():
            continue
        waits = open_work.ages(waiting, open_work.enqueue, at.now_ns)
        serving = open_work.ages(running, open_work.start, at.now_ns)
        since = np.where(open_work.enqueue == NULL, open_work.start, open_work.enqueue)
        in_system = open_work.ages(waiting | running, since, at.now_ns)
        served = round(float(acc.service.sum_ns[key].sum()))
        waited = round(float(acc.wait.sum_ns[key].sum()))
        rows.append(
            StreamRow(
                name=stream_name(window.reader, key, several_hosts(window.reader)),
                executions=executions,
                busy_ns=of_stream.busy_ns,
                wait=of_stream.wait,
                service=of_stream.service,
                depth=of_stream.depth,
                heat_ns=acc.wait.heat(key)[at.order],
                depth_by_slot=depth_per_slot(acc.wait_ns[key], acc.wait.n[key] > 0, open_work, at),
                waiting=int(waiting.sum()),
                oldest_open_ns=int(waits.max()) if waits.size else None,
                served_ns=served + int(serving.sum()),
                demand_ns=served + waited + int(in_system.sum()),
            )
        )
    return tuple(sorted(rows, key=lambda row: row.name))


def _level(window: Window) -> Level:
    keys = [window.reader.places.keys[i] for i in _active_places(window) if i < len(window.reader.places.keys)]
    if any(core >= 0 for _, _, core in keys):
        return "core"
    return "device" if any(device >= 0 for _, device, _ in keys) else "host"


def _active_places(window: Window) -> list[int]:
    """Places with executions in the window."""
    used = window.acc.places_used
    busy = window.acc.place_busy_ns[:used]
    active: list[int] = np.flatnonzero(window.acc.place_n[:used].any(axis=1) | (busy > 0).any(axis=1)).tolist()
    return active


def _by_name(reader: Reader, place: int) -> tuple[bool, str, int, int]:
    """Sorts places by host, device and core, the rest last."""
    if place >= len(reader.places.keys):
        return True, "", 0, 0
    host, device, core = reader.places.keys[place]
    return False, reader.hosts.words[host] if host >= 0 else "", device, core


def _cores(window: Window, numbers: Numbers, at: Interval, level: Level) -> Cores:
    acc, keys = window.acc, window.reader.places.keys
    places = sorted(_active_places(window), key=lambda place: _by_name(window.reader, place))
    at_level = np.array([i < len(keys) and _names(keys[i], level) for i in places], np.bool_)
    busy = acc.place_busy_ns[places][:, at.order] if places else np.zeros((0, window.grid.count))
    any_rows = (acc.counts[at.order, COUNT["rows"]] > 0) | (busy > 0).any(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(any_rows & (at.lasted_ns > 0), np.minimum(busy / at.lasted_ns, 1.0), np.nan)
    total = numbers.place_busy_ns[places] if places else np.zeros(0, np.int64)
    return Cores(
        level=level,
        labels=tuple(core_label(window.reader, i, several_hosts(window.reader)) for i in places),
        busy_ns=total,
        executions=acc.place_n[places].sum(axis=1) if places else np.zeros(0, np.int64),
        busy_share=share,
        lambda_by_slot=lambda_by_slot(busy[at_level]),
        imbalance=imbalance_of(total[at_level], numbers.stretch_ns, numbers.stretch_why),
    )


def _names(key: tuple[int, ...], level: Level) -> bool:
    """Whether a place names what the level asks for."""
    _, device, core = key
    return core >= 0 if level == "core" else device >= 0 if level == "device" else True
