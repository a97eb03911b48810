"""Cases of work that waits: bursts, gates, long work ahead, and what is told of it."""

from __future__ import annotations

import numpy as np
from triage_rows import MS, Case, S, Served, poisson, serve, waiting, work


def _constant(service_ns: int, gap_ns: int, seconds: int) -> list:
    arrival = np.arange(0, seconds * S, gap_ns)
    return work(serve(arrival, np.full(len(arrival), service_ns)))


def bursty() -> Case:
    """The same rate in a burst each few seconds instead of evenly."""
    arrival = np.sort(np.concatenate([poisson(60, 40, 18), *(poisson(260, 0.7, 180 + i, i * 5) for i in range(8))]))
    rows = work(serve(arrival, np.full(len(arrival), 8 * MS)))
    return Case(
        18, "same rate, in bursts: p99 rises", ("queueing",), "queueing/tail", rows, _constant(8 * MS, 11 * MS, 40)
    )


def uneven_rate() -> Case:
    """Uneven rate: p99 up, utilisation down."""
    arrival = np.sort(np.concatenate([poisson(200, 1.2, 190 + i, i * 6) for i in range(7)] + [poisson(12, 42, 19)]))
    rows = work(serve(arrival, np.full(len(arrival), 7 * MS)))
    return Case(19, "uneven rate: p99 up while the device is mostly idle", ("queueing",), "queueing/tail", rows)


def closed_loop() -> Case:
    """Live, requests do not wait for answers; the benchmark's did."""
    arrival = poisson(420, 30, 20)
    live = work(serve(arrival, np.full(len(arrival), 2_150_000)))
    start = np.arange(0, 30 * S, 2_400_000)
    alone = Served(start, start, start + 2_150_000, np.zeros(len(start), np.int64))
    return Case(20, "a queue that the closed-loop benchmark never saw", ("queueing", ""), "contradiction/open-loop",
                live, work(alone))  # fmt: skip


def batch_formation() -> Case:
    """Requests that come together fill a batch; one that comes alone waits for the deadline."""
    alone = np.random.default_rng(22).random(600) < 0.3
    begin = np.arange(600) * 60 * MS
    arrival, start, end, batch = [], [], [], []
    for at, single in zip(begin.tolist(), alone.tolist(), strict=True):
        size, wait = (1, 40 * MS) if single else (8, 1 * MS)
        for _ in range(size):
            arrival.append(at)
            start.append(at + wait)
            end.append(at + wait + 6 * MS)
            batch.append(size)
    told = Served(*(np.array(x, np.int64) for x in (arrival, start, end, np.zeros(len(end)))))
    rows = work(told, requests=True, execution_enqueue_ns=told.start, batch=np.array(batch, np.int32))
    lead = np.append(True, told.arrival[1:] != told.arrival[:-1])
    first = Served(*(getattr(told, name)[lead] for name in ("arrival", "start", "end", "lane")))
    runs = work(first, requests=False, enqueue_ns=first.start, request=np.flatnonzero(lead),
                batch=np.array(batch, np.int32)[lead])  # fmt: skip
    return Case(22, "batches of one wait for the deadline", ("batching",), "batching/gate", [runs[0], rows[1]])


def unfinished() -> Case:
    """251 wait, the oldest for 32.6 s; what finished looks well."""
    arrival = poisson(20, 30, 27)
    done = work(serve(arrival, np.full(len(arrival), 20 * MS)))
    last = int(done[0]["end_ns"].to_numpy().max())
    still = np.linspace(last - 32.6 * S, last - 0.5 * S, 251).astype(np.int64)
    return Case(27, "work still waiting is in no percentile", ("queueing",), "queueing/open", [*done, waiting(still)])


def long_ahead() -> Case:
    """A few 64k prompts stop decode behind them."""
    steps = np.arange(0, 40 * S, 25 * MS)
    long = np.array([11, 19, 28, 36]) * S + 3 * MS
    arrival = np.concatenate([steps, long])
    order = np.argsort(arrival, kind="stable")
    service = np.where(order < len(steps), 5 * MS, 1500 * MS)
    stream = np.where(order < len(steps), "decode", "prefill")
    rows = work(serve(arrival[order], service), stream=stream)
    return Case(33, "a long prefill starves decode", ("queueing",), "queueing/tail", rows)


def mean_fell() -> Case:
    """More short requests bring the mean down while the slowest wait longer."""
    before, after = poisson(40, 40, 29), poisson(300, 40, 290)
    base = work(serve(before, np.full(len(before), 14 * MS)))
    rng = np.random.default_rng(29)
    service = np.where(rng.random(len(after)) < 0.002, 160 * MS, 1 * MS)
    return Case(
        29, "the mean fell as the load rose", ("queueing", ""), "contradiction/mean", work(serve(after, service)), base
    )


QUEUE = (bursty, uneven_rate, closed_loop, batch_formation, unfinished, long_ahead, mean_fell)
