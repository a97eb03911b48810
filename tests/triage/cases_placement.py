"""Cases of cores that get, or can do, unequal work."""

from __future__ import annotations

import numpy as np
from triage_rows import MS, Case, S, Served, poisson, serve, work


def ranks() -> Case:
    """Everything goes to ranks 0 and 1; six others are idle."""
    arrival = poisson(190, 30, 13)
    lane = np.arange(len(arrival)) % 2
    spare = np.arange(0, 30 * S, 500 * MS)
    idle = Served(spare, spare, spare + MS // 2, 2 + np.arange(len(spare)) % 6)
    rows = [*work(serve(arrival, np.full(len(arrival), 10 * MS), 8, lane)), *work(idle, offset=len(arrival))]
    return Case(13, "ranks 0 and 1 hold the queue, the others are idle", ("imbalance",), "imbalance/uneven", rows)


def drift() -> Case:
    """Long requests pile up on one device, slowly."""
    arrival = poisson(160, 60, 14)
    rng = np.random.default_rng(14)
    lane = rng.integers(0, 4, len(arrival))
    drawn = rng.random(len(arrival)) < 0.45 * arrival / (60 * S)
    lane = np.where(drawn, 2, lane)
    rows = work(serve(arrival, np.full(len(arrival), 12 * MS), 4, lane))
    return Case(14, "long requests pile up on one core after a while", ("imbalance",), "imbalance/tail", rows)


def tie_break() -> Case:
    """Ties go to the first core: 6 to 4, small and always the same."""
    arrival = np.arange(0, 40 * S, 20 * MS)
    lane = (np.arange(len(arrival)) % 10 >= 6).astype(np.int64)
    rows = work(serve(arrival, np.full(len(arrival), 10 * MS), 2, lane))
    return Case(15, "tie-break bias 6 to 4", ("imbalance", ""), "imbalance/systematic", rows)


def by_count() -> Case:
    """As many requests for each core, ten times the tokens for one of them."""
    arrival = poisson(80, 30, 16)
    lane = np.arange(len(arrival)) % 4
    service = np.where(lane == 0, 44 * MS, 9 * MS)
    rows = work(serve(arrival, service, 4, lane))
    return Case(16, "balanced by requests, not by tokens", ("imbalance",), "imbalance/uneven", rows)


def synchronised() -> Case:
    """Steps on eight ranks that end with the busiest one."""
    rng = np.random.default_rng(17)
    n = 600
    begin = np.arange(n) * 50 * MS
    took = (20 * MS + 2 * MS * rng.random((n, 8))).astype(np.int64)
    took[np.arange(n), rng.integers(0, 8, n)] += (12 * MS * rng.random(n)).astype(np.int64)
    step = np.repeat(np.arange(n), 8)
    parts = Served(np.repeat(begin, 8), np.repeat(begin, 8), (begin[:, None] + took).ravel(), np.tile(np.arange(8), n))
    rows = work(parts, requests=False, request=step, group=np.zeros(8 * n, np.int32))
    whole = Served(begin, begin, begin + took.max(axis=1), np.zeros(n, np.int64))
    return Case(17, "all ranks wait for the busiest", ("imbalance",), "imbalance/stretch", [*rows, work(whole)[1]])


def slow_replica() -> Case:
    """One of twelve replicas takes six times as long."""
    arrival = poisson(240, 30, 23)
    lane = np.arange(len(arrival)) % 12
    service = np.where(lane == 7, 47 * MS, 8 * MS)
    rows = work(serve(arrival, service, 12, lane))
    return Case(23, "one slow replica of twelve", ("imbalance",), "imbalance/uneven", rows)


PLACEMENT = (ranks, drift, tie_break, by_count, synchronised, slow_replica)
