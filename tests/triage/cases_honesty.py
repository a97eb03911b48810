"""Cases in which what is told is not so, or not all: gauges, queues left out, time in no row, opposite signs."""

from __future__ import annotations

import numpy as np
from triage_rows import MS, Case, S, Served, counter, poisson, serve, work


def frozen() -> Case:
    """After a mass abort the gauges stay at their last value."""
    arrival = poisson(50, 20, 11)
    at = np.arange(0, 40 * S, 500 * MS)
    running = np.where(at < 20 * S, 3 + (at // S) % 5, 106)
    queued = np.where(at < 20 * S, (at // S) % 3, 15)
    rows = [*work(serve(arrival, np.full(len(arrival), 8 * MS))), counter("running requests", at, running),
            counter("waiting requests", at, queued)]  # fmt: skip
    return Case(11, "gauges frozen after a mass abort", ("",), "honesty/frozen", rows)


def completed_only() -> Case:
    """A queue that grows, of which only completed work is told."""
    arrival = poisson(140, 30, 21)
    served = serve(arrival, np.full(len(arrival), 8 * MS))
    at = np.arange(0, 30 * S, 500 * MS)
    queued = [int(((served.arrival <= t) & (served.start > t)).sum()) for t in at.tolist()]
    done = served.end <= 30 * S
    ended = Served(*(getattr(served, name)[done] for name in ("arrival", "start", "end", "lane")))
    rows = [*work(ended), counter("waiting requests", at, queued)]
    return Case(21, "only completed work is counted", ("queueing", ""), "honesty/completed", rows)


def stale_view() -> Case:
    """A router's view of a queue that is not there."""
    arrival = np.arange(0, 30 * S, 12 * MS)
    at = np.arange(0, 30 * S, 500 * MS)
    rows = [*work(serve(arrival, np.full(len(arrival), 8 * MS))), counter("waiting requests", at, 30 + (at // S) % 7)]
    return Case(25, "router and replica see different queues", ("",), "honesty/queue", rows)


def phantom() -> Case:
    """Most of a request is in no execution: the framework's own."""
    arrival = poisson(20, 40, 26)
    rng = np.random.default_rng(26)
    host = np.where(rng.random(len(arrival)) < 0.1, 180 * MS, 5 * MS)
    served = Served(arrival, arrival, arrival + 20 * MS + host, np.zeros(len(arrival), np.int64))
    runs = Served(arrival, arrival, arrival + 20 * MS, np.arange(len(arrival)) % 8)
    rows = [work(runs)[0], work(served, device=None, core=None)[1]]
    return Case(26, "time in no row: framework or engine", ("host",), "host/phantom", rows)


def queue_left_out() -> Case:
    """Latency from the start on: the queue is not in it."""
    arrival = poisson(100, 30, 28)
    at = np.arange(0, 30 * S, 500 * MS)
    rows = work(serve(arrival, np.full(len(arrival), 8 * MS)), enqueue_ns=None)
    return Case(
        28, "the queue is left out of latency", ("",), "honesty/queue", [*rows, counter("waiting requests", at, 60)]
    )


def opposite() -> Case:
    """With graphs the first token is a quarter slower, the others three times as fast."""

    def trace(prefill_ns: int, decode_ns: int) -> list:
        steps = np.arange(0, 30 * S, 40 * MS)
        first = np.arange(7 * MS, 30 * S, 200 * MS)
        arrival = np.concatenate([steps, first])
        order = np.argsort(arrival, kind="stable")
        decode = order < len(steps)
        service = np.where(decode, decode_ns, prefill_ns)
        lane = np.where(decode, 0, 1)
        return work(serve(arrival[order], service, 2, lane), stream=np.where(decode, "decode", "prefill"),
                    device=None, core=None)  # fmt: skip

    return Case(6, "one way for prefill, the other for decode", ("",), "contradiction/streams",
                trace(50 * MS, 4 * MS), trace(40 * MS, 12 * MS))  # fmt: skip


HONESTY = (frozen, completed_only, stale_view, phantom, queue_left_out, opposite)
