"""What the measures hand to panes, reports and exit codes: immutable, times in integer ns, absent is None or NaN.

S is the number of time slots in the window, C the number of cores, shapes are in brackets. Slot i covers
[slot_start_ns[i], slot_start_ns[i] + slot_ns). In slot arrays NaN means "no data here": draw a gap, never a bridge.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from fusetui.analysis.attribution.idle import Idle
from fusetui.analysis.attribution.parts import TailTime
from fusetui.analysis.mapping import MappingDetail
from fusetui.telemetry.header import Header
from fusetui.telemetry.source import SourceHealth, TransportState

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

LatencyOf = Literal["request", "execution"]


@dataclass(frozen=True, slots=True)
class Tail:
    """Quantiles of one duration over the window, nearest rank, ns.

    n        samples, open work included
    open_n   of them still open: they count as right-censored ages (Kaplan-Meier)
    at_least quantile names ("p95", …) whose value is a lower bound: print it as `≥`
    exact    from the raw rows; otherwise from log histograms (≤ 1.1 % error)
    why      why a quantile is None, e.g. "p99 needs n ≥ 100, have 37"; "" when all are there
    """

    n: int = 0
    p50_ns: int | None = None
    p95_ns: int | None = None
    p99_ns: int | None = None
    p999_ns: int | None = None
    max_ns: int | None = None
    mean_ns: float | None = None
    open_n: int = 0
    at_least: frozenset[str] = frozenset()
    exact: bool = True
    why: str = ""


@dataclass(frozen=True, slots=True)
class TailSeries:
    """Quantiles per time slot, ns. n [S] int64; p50_ns, p95_ns, p99_ns [S] float64, NaN: none.

    Nearest rank: in a slot of fewer than 100 samples p99 is the maximum, of fewer than 20 p95 is it too.
    """

    n: Ints
    p50_ns: Floats
    p95_ns: Floats
    p99_ns: Floats


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of one duration on a log grid. edges_ns [B+1] float64, counts [B] int64."""

    edges_ns: Floats
    counts: Ints


@dataclass(frozen=True, slots=True)
class Depth:
    """How much waited in a queue: time-weighted mean, time-weighted p95, maximum, and now (None: not known)."""

    mean: float | None = None
    p95: int | None = None
    max: int | None = None
    now: int | None = None


@dataclass(frozen=True, slots=True)
class StreamRow:
    """One stream in the window.

    wait        queue wait; service: end - start
    heat_ns     [S] p99 of queue wait per slot (the maximum where a slot has fewer than 100 samples)
    oldest_open_ns  age of the oldest work still waiting, None when nothing waits or it is not known
    demand_ns   service time asked for (done and open); served_ns: service time received in the window
    """

    name: str
    executions: int
    busy_ns: int
    wait: Tail
    service: Tail
    depth: Depth
    heat_ns: Floats
    depth_by_slot: Floats
    waiting: int
    oldest_open_ns: int | None
    served_ns: int
    demand_ns: int


@dataclass(frozen=True, slots=True)
class Imbalance:
    """Core imbalance λ = max/mean - 1 of busy time; Jain's index; None when undefined (all idle, one core).

    stretch_p50_ns, stretch_p95_ns  slowest core - mean core per parallel step, over the window
    why                             why a value is None
    """

    lambda_: float | None = None
    jain: float | None = None
    stretch_p50_ns: int | None = None
    stretch_p95_ns: int | None = None
    stretch_max_ns: int | None = None
    steps: int = 0
    why: str = ""


@dataclass(frozen=True, slots=True)
class Cores:
    """Every core in the window, ordered by (host, device, core).

    A row is a core where rows name one, else the device, else the host (`level` says which).
    labels [C]; busy_ns [C]; executions [C]; busy_share [C, S] in 0..1 (union of busy time, NaN: no data)
    lambda_by_slot [S]
    """

    level: Literal["core", "device", "host"]
    labels: tuple[str, ...]
    busy_ns: Ints
    executions: Ints
    busy_share: Floats
    lambda_by_slot: Floats
    imbalance: Imbalance


@dataclass(frozen=True, slots=True)
class Fairness:
    """Jain's index of service over demand among backlogged streams; None when fewer than two are backlogged."""

    jain: float | None = None
    worst_stream: str | None = None
    worst_ratio: float | None = None
    backlogged: int = 0
    why: str = ""


@dataclass(frozen=True, slots=True)
class Launch:
    """How work reached the queue. joined + orphans = total (executions in the window).

    joined           executions whose launch (or enqueue) time is known
    orphans          the others: in busy and idle time, out of queue wait
    nodes            joined executions that only followed another node of their graph launch (no wait of their own)
    clipped          raw wait below 0 (started before the launch call returned), counted as 0
    clock_errors     started before the launch call even began, counted as 0 too
    short            execution shorter than its own launch call
    runtime_outliers launch call over 50 µs; delay_outliers: queue wait over 100 µs
    exposed_ns       Σ over streams of the time a stream stood idle while its next launch was under way, None: unknown
    call             duration of the launch call
    """

    joined: int = 0
    total: int = 0
    orphans: int = 0
    nodes: int = 0
    clipped: int = 0
    clock_errors: int = 0
    short: int = 0
    runtime_outliers: int = 0
    delay_outliers: int = 0
    exposed_ns: int | None = None
    call: Tail = Tail()


@dataclass(frozen=True, slots=True)
class MappingShares:
    """Shares of executions by mapping among those that carry one (`known`); None when none does."""

    known: int = 0
    planned: float | None = None
    adapted: float | None = None
    fallback: float | None = None
    planned_by_slot: Floats | None = None


@dataclass(frozen=True, slots=True)
class TailCohort:
    """Where the time of the slowest work went: additive means over items at or above p95, next to the median cohort.

    of        what an item is; n items in the tail cohort
    queue_ns, service_ns  mean wait and mean service of the tail cohort; median_*: of the items up to the median
    """

    of: LatencyOf
    n: int
    queue_ns: float
    service_ns: float
    median_queue_ns: float
    median_service_ns: float


@dataclass(frozen=True, slots=True)
class Mark:
    """A point in time worth showing on the scrubber."""

    at_ns: int
    name: str


@dataclass(frozen=True, slots=True)
class CounterRow:
    """One counter series: latest and largest value in the window; by_slot [S] mean per slot, NaN: none.

    stale  it has ended, see `counters_stale`
    """

    name: str
    device: str
    unit: str
    last: float
    max: float
    by_slot: Floats
    stale: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything the panes show, computed once per tick off the UI loop.

    version         grows with every snapshot
    columns_seen    column name -> non-null cells in the window: a pane whose column is absent can say which
    missing_columns columns of the contract without any value since the source was opened
    taken_s         monotonic seconds when it was computed: a pane's age
    now_ns          the right edge of the window on the trace clock
    slot_start_ns   [S]
    rows_per_s      events per second of trace time over the window
    ingest_per_s    events per second of wall time taken in lately
    open_waiting, open_running  executions that wait or run now; None when the source never tells of open ones
    raw_from_ns     the raw rows behind the numbers reach back to here (drill-down), None: none kept
    late_rows       rows older than the window when they came; early_rows: in the future or with impossible times
    mapping_detail  by plan and shape, and over time: `analysis.mapping`
    notes           what the numbers leave out or put together, one line each
    tail_time       where the time of the slowest went, part by part, and the stage that left its budget first; None
                    with too few items; while time runs it may be some seconds older than the rest
    idle            of the busiest device, as old as tail_time; None where no execution tells of its launch call
    """

    version: int
    taken_s: float
    header: Header
    health: SourceHealth
    transport: TransportState | None
    generation: int
    now_ns: int
    window_start_ns: int
    slot_ns: int
    slot_start_ns: Ints
    executions: int
    requests: int
    counters: int
    marks_n: int
    open_waiting: int | None
    open_running: int | None
    rows_by_slot: Ints
    rows_per_s: float
    ingest_per_s: float
    span_ns: int | None
    busy_ns: int | None
    latency_of: LatencyOf
    latency: Tail
    latency_series: TailSeries
    latency_histogram: Histogram
    queue_wait: Tail
    wait_series: TailSeries
    wait_histogram: Histogram
    service: Tail
    depth: Depth
    depth_by_slot: Floats
    oldest_open_ns: int | None
    launch: Launch
    mapping: MappingShares
    streams: tuple[StreamRow, ...]
    fairness: Fairness
    cores: Cores
    cohort: TailCohort | None
    counter_rows: tuple[CounterRow, ...]
    marks: tuple[Mark, ...]
    missing_columns: frozenset[str]
    filter_text: str
    raw_from_ns: int | None
    raw_rows: int
    columns_seen: Mapping[str, int]
    late_rows: int = 0
    early_rows: int = 0
    mapping_detail: MappingDetail = field(default_factory=MappingDetail)
    notes: tuple[str, ...] = ()
    tail_time: TailTime | None = None
    idle: Idle | None = None
