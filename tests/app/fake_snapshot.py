"""Plausible snapshots made from random numbers, for looking at panes and for testing them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fusetui.analysis.attribution.parts import Cohort, StageBudget, TailTime
from fusetui.analysis.mapping import Drift, Evidence, MappingDetail, MappingTotals
from fusetui.analysis.snapshot import (
    Cores,
    CounterRow,
    Depth,
    Fairness,
    Histogram,
    Imbalance,
    Launch,
    MappingShares,
    Mark,
    Snapshot,
    StreamRow,
    Tail,
    TailCohort,
    TailSeries,
)
from fusetui.telemetry.header import Header
from fusetui.telemetry.source import ProducerHealth, SourceHealth

T0 = 1_700_017_841_200_000_000
MS = 1_000_000


def tail_of(ns: np.ndarray) -> Tail:
    """Exact quantiles, nearest rank."""
    n = len(ns)
    if n == 0:
        return Tail(why="no samples")
    x = np.sort(ns)

    def at(q: float) -> int:
        return int(x[int(np.ceil(q * n - 1e-9)) - 1])

    return Tail(n, at(0.5), at(0.95), at(0.99) if n >= 100 else None, None, int(x[-1]), float(x.mean()))


def series_of(rng: np.random.Generator, slots: int, base_ms: float, phase: float) -> TailSeries:
    t = np.arange(slots)
    bump = 1 + 2.5 * np.exp(-(((t - slots * (0.55 + 0.1 * np.sin(phase))) / (slots / 9)) ** 2))
    p99 = base_ms * MS * bump * rng.normal(1, 0.05, slots)
    gap = (t > slots * 0.2) & (t < slots * 0.24)
    p99[gap] = np.nan
    return TailSeries(np.full(slots, 200), p99 * 0.22, p99 * 0.55, p99)


def histogram_of(ns: np.ndarray) -> Histogram:
    edges = 2.0 ** (np.arange(0, 40 * 8 + 1) / 8)
    counts, _ = np.histogram(ns, edges)
    return Histogram(edges, counts.astype(np.int64))


def stream_of(rng: np.random.Generator, name: str, slots: int, wait_ms: float, waiting: int) -> StreamRow:
    wait = rng.lognormal(np.log(wait_ms * MS / 6), 0.9, 3_000)
    heat = series_of(rng, slots, wait_ms, rng.random()).p99_ns
    return StreamRow(
        name=name,
        executions=int(rng.integers(800, 9_000)),
        busy_ns=int(rng.integers(1, 8) * 1e9),
        wait=tail_of(wait),
        service=tail_of(rng.lognormal(np.log(2e6), 0.6, 3_000)),
        depth=Depth(waiting / 2, waiting, waiting + 3, waiting),
        heat_ns=heat,
        depth_by_slot=np.abs(rng.normal(waiting, 2, slots)),
        waiting=waiting,
        oldest_open_ns=int(22.4e9) if waiting > 20 else (int(3e6) if waiting else None),
        served_ns=int(rng.integers(50, 100)),
        demand_ns=100,
    )


def cores_of(rng: np.random.Generator, count: int, slots: int) -> Cores:
    per_core = np.clip(rng.normal(0.7, 0.15, count), 0.05, 1)
    per_core[: count // 4] *= 0.5
    share = np.clip(per_core[:, None] * rng.normal(1, 0.15, (count, slots)), 0, 1)
    share[:, int(slots * 0.2) : int(slots * 0.24)] = np.nan
    busy = np.nansum(share, axis=1)
    return Cores(
        level="core",
        labels=tuple(f"0/{i}" for i in range(count)),
        busy_ns=(busy * 1e8).astype(np.int64),
        executions=np.full(count, 900),
        busy_share=share,
        lambda_by_slot=np.abs(rng.normal(0.31, 0.08, slots)),
        imbalance=Imbalance(0.31, 0.87, int(1.1e6), int(2.4e6), int(9e6), 412),
    )


def tail_time_of(now_ns: int) -> TailTime:
    """The slowest waited: queue 31.2 of 75 ms, beside a median of 12 ms; the queue left its budget first."""
    #      queue gate launch planned imbalance padding fallback contention rest, ms
    parts = (31.2, 2.0, 0.8, 22.0, 11.0, 0.0, 6.0, 2.0, 0.0)
    tail, median = (28.0, 2.0, 0.8, 15.0, 8.0, 0.0, 3.0, 1.0, 0.0), (1.1, 0.4, 0.5, 9.0, 0.5, 0.0, 0.0, 0.5, 0.0)
    stages = (
        StageBudget(1e6, 3e6, None),
        StageBudget(4e6, 3e7, now_ns - 4_000 * MS),
        StageBudget(3e6, 9e6, now_ns - 2_000 * MS),
        StageBudget(2e7, 1e7, None),
    )

    def cohort(n: int, ms: tuple[float, ...]) -> Cohort:
        return Cohort(n, 20 * MS, 99 * MS, tuple(part * MS for part in ms))

    return TailTime(
        "request", 12_400, 12_000, cohort(620, tail), cohort(124, parts), cohort(1_240, median), stages, 1, "slo",
        ("2 requests without executions",),
    )  # fmt: skip


def mapping_of(slots: int, *, stuck: bool = False) -> MappingDetail:
    """Steps of growing batches of one plan: small ones planned, middle ones adapted, large ones fall back at last."""
    sizes = (8, 16, 32, 64, 96, 128, 160)
    counts = np.zeros((len(sizes) + 1, slots, 4), np.int64)
    late = int(slots * 0.7)
    counts[:3, :late, 0] = 40
    counts[3:5, :late, 1] = 30
    counts[5:7, late:, 2] = 20
    counts[2, late:, 0] = 5
    counts[7, ::3, 3] = 2
    time_ns = counts * 1e5 * np.array([1, 1.2, 2.5, 1.0])
    compiles = np.zeros(slots, np.int64)
    compiles[[slots // 4, slots // 2]] = 1
    ways = counts.sum(axis=1)
    told = ways[:, :3].sum(axis=1)
    nan = np.full(len(ways), np.nan)
    padding, accuracy, gain, cost = nan.copy(), nan.copy(), nan.copy(), nan.copy()
    padding[3:5], accuracy[:2], gain[3], cost[5:7] = (1.5, 1.33), (0.98, 0.71), 0.123, (3.1e8, -2e7)
    drift = Drift(
        "envelope", "requests", 0.31, 0.02, "major", 0, 5_000, ("batch=8", "batch=96", "batch=160"),
        np.array([0.6, 0.3, 0.1]), np.array([0.4, 0.25, 0.35]),
    )  # fmt: skip
    found = Evidence(late, slots - late, 96, 61.0, 151.0, 0.97, 1.2, 1.4, 812.0, 798.0, ("that A", "that B"))
    return MappingDetail(
        plans=(*["p17"] * len(sizes), "(others)"),
        shapes=(*[f"batch={size}" for size in sizes], "(others)"),
        counts=ways,
        time_ns=time_ns.sum(axis=1),
        hit_share=np.divide(ways[:, 0], told, out=nan.copy(), where=told > 0),
        padding=padding,
        padding_n=np.where(np.isnan(padding), 0, 900),
        padded=np.where(np.isnan(padding), 0, 700),
        padded_ns=np.zeros(len(ways), np.int64),
        compiles=np.array([0, 0, 0, 2, 0, 0, 0, 0]),
        stall_ns=np.array([0, 0, 0, 3.1e8, 0, 0, 0, 0]),
        accuracy=accuracy,
        gain=gain,
        fallback_ns=cost,
        counts_by_slot=counts,
        time_by_slot=time_ns,
        padding_by_slot=np.full(slots, 1.2),
        compiles_by_slot=compiles,
        stall_by_slot=compiles * 1.55e8,
        batch_by_slot=np.where(np.arange(slots) < late, 48.0, 144.0),
        largest_planned=96,
        totals=MappingTotals(1.42, 1_800, 1_400, 0, 2, 310_000_000, 0.85, 2_400, 0.123, 900, 0, 290_000_000, 600),
        drift=drift,
        metastable=found if stuck else None,
        notes=("more than 63 plans and shapes: the rest is (others)",),
    )


def fake_snapshot(
    tick: int = 0, *, slots: int = 60, core_count: int = 64, named: Any = None, **changes: Any
) -> Snapshot:
    """A snapshot of a busy accelerator; `changes` replace fields."""
    rng = np.random.default_rng(tick)
    latency = rng.lognormal(np.log(12.2e6), 0.65, 12_400)
    slot_ns = 10_000 * MS // slots
    now = T0 + tick * 500 * MS
    streams = tuple(
        stream_of(rng, name, slots, wait, waiting)
        for name, wait, waiting in named or (("prefill", 41.0, 37), ("decode", 6.1, 4), ("embed", 0.9, 0))
    )
    wait = rng.lognormal(np.log(0.81e6), 1.3, 12_000)
    snapshot = Snapshot(
        version=tick,
        taken_s=tick * 0.5,
        header=Header(source="simulated", slo_ns=50 * MS),
        health=SourceHealth(
            "bert-burst.arrows",
            "live",
            rows=1_204_233,
            batches=812,
            bytes_in=98_231_000,
            lag_ns=100 * MS,
            missing=("gpu counters: NVML not found, install the NVIDIA driver",),
            producers=(
                ProducerHealth("rank 0", "live", 602_000),
                ProducerHealth("rank 1", "lost", 602_233, "since 3s"),
            ),
        ),
        transport=None,
        generation=0,
        now_ns=now,
        window_start_ns=now - 10_000 * MS,
        slot_ns=slot_ns,
        slot_start_ns=now - 10_000 * MS + np.arange(slots, dtype=np.int64) * slot_ns,
        executions=12_400,
        requests=1_240,
        counters=200,
        marks_n=1,
        open_waiting=sum(row.waiting for row in streams),
        open_running=4,
        rows_by_slot=rng.integers(100, 300, slots),
        rows_per_s=118_000.0,
        ingest_per_s=121_000.0,
        span_ns=10_000 * MS,
        busy_ns=6_200 * MS,
        latency_of="request",
        latency=tail_of(latency),
        latency_series=series_of(rng, slots, 32, tick / 4),
        latency_histogram=histogram_of(latency),
        queue_wait=tail_of(wait),
        wait_series=series_of(rng, slots, 12, tick / 4),
        wait_histogram=histogram_of(wait),
        service=tail_of(rng.lognormal(np.log(2e6), 0.6, 3_000)),
        depth=Depth(18.2, 35, 51, 41),
        depth_by_slot=np.abs(rng.normal(18, 6, slots)),
        oldest_open_ns=int(22.4e9),
        launch=Launch(
            11_870, 12_400, 530, 2_110, 48, 3, 640, 12, 230, 1_240 * MS, tail_of(rng.lognormal(np.log(6e3), 0.5, 9_000))
        ),
        mapping=MappingShares(12_000, 0.972, 0.021, 0.007, np.clip(rng.normal(0.97, 0.02, slots), 0, 1)),
        streams=streams,
        fairness=Fairness(0.87, "embed", 0.61, 3),
        cores=cores_of(rng, core_count, slots),
        cohort=TailCohort("request", 620, 31.2 * MS, 18.4 * MS, 1.1 * MS, 10.9 * MS),
        counter_rows=tuple(
            CounterRow(name, device, unit, value, value * 1.4, np.abs(rng.normal(value, value / 6, slots)))
            for name, device, unit, value in (
                ("memory used", "gpu0", "B", 61.2e9),
                ("power", "gpu0", "W", 611.0),
                ("utilisation", "gpu0", "%", 83.0),
                ("psi cpu some", "", "%", 3.2),
                ("net received", "eth0", "B/s", 14.2e6),
            )
        ),
        marks=(Mark(now - 3_000 * MS, "deploy"),),
        missing_columns=frozenset({"sram_bytes"}),
        filter_text="",
        raw_from_ns=now - 60_000 * MS,
        raw_rows=100_000,
        columns_seen={},
        mapping_detail=mapping_of(slots) if slots >= 8 else MappingDetail(),
        tail_time=tail_time_of(now),
    )
    return replace(snapshot, **changes)


def bare_snapshot() -> Snapshot:
    """A snapshot in which nothing has happened yet: no slots, no streams, no cores, every measure absent."""
    empty = np.empty(0)
    whole = np.empty(0, np.int64)
    return fake_snapshot(
        slot_start_ns=whole,
        executions=0,
        requests=0,
        counters=0,
        open_waiting=0,
        open_running=0,
        rows_by_slot=whole,
        rows_per_s=0.0,
        ingest_per_s=0.0,
        span_ns=None,
        busy_ns=None,
        latency=Tail(),
        latency_series=TailSeries(whole, empty, empty, empty),
        latency_histogram=Histogram(empty, whole),
        queue_wait=Tail(),
        wait_series=TailSeries(whole, empty, empty, empty),
        wait_histogram=Histogram(empty, whole),
        service=Tail(),
        depth=Depth(),
        depth_by_slot=empty,
        oldest_open_ns=None,
        launch=Launch(),
        mapping=MappingShares(),
        streams=(),
        fairness=Fairness(why="fewer than two streams"),
        cores=Cores("core", (), whole, whole, np.empty((0, 0)), empty, Imbalance(why="no cores")),
        cohort=None,
        counter_rows=(),
        marks=(),
        raw_from_ns=None,
        raw_rows=0,
        mapping_detail=MappingDetail(),
        tail_time=None,
    )
