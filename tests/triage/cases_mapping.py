"""Cases in which no plan fits what came: generic, padded, at a boundary, compiled while requests wait."""

from __future__ import annotations

import numpy as np
from triage_rows import MS, Case, Ints, S, Served, marks, poisson, serve, work


def _mapped(arrival: Ints, planned_ns: Ints, fell: np.ndarray, factor: float, **columns: object) -> list:
    """One core; where `fell`, on the generic path and `factor` times as long."""
    service = np.where(fell, planned_ns * factor, planned_ns).astype(np.int64)
    mapping = np.where(fell, "fallback", "planned")
    return work(serve(arrival, service), mapping=mapping, plan="p", **columns)


def metastable() -> Case:
    """Crossing the largest captured batch: four times the time of a step, four times the requests in progress."""
    arrival = poisson(60, 40, 1)
    takes = np.where(arrival < 20 * S, 1 * S, 4 * S)
    requests = Served(arrival, arrival, arrival + takes, np.zeros(len(arrival), np.int64))
    slow = np.arange(20 * S, 40 * S, 40 * MS)
    start = np.concatenate([np.arange(0, 20 * S, 10 * MS), slow])
    fell = start >= 20 * S
    steps = Served(start, start, start + np.where(fell, 39 * MS, 9 * MS), np.zeros(len(start), np.int64))
    batch = np.where(fell, 240, 60).astype(np.int32)
    rows = work(steps, requests=False, batch=batch, mapping=np.where(fell, "fallback", "planned"), request=None)
    done = requests.end <= 40 * S
    ended = Served(*(getattr(requests, name)[done] for name in ("arrival", "start", "end", "lane")))
    return Case(1, "metastable fallback", ("fallback",), "fallback/metastable", [*rows, work(ended)[1]])


def silent() -> Case:
    """Three in ten fall back all the time; nothing waits, the throughput is as asked."""
    arrival = np.arange(0, 30 * S, 10 * MS)
    fell = np.random.default_rng(2).random(len(arrival)) < 0.3
    rows = _mapped(arrival, np.full(len(arrival), 2 * MS), fell, 2.0)
    return Case(2, "silent fallback: queue 0, throughput normal", ("fallback",), "fallback/silent", rows)


def padded() -> Case:
    """3208 tokens run at 8192, 2.55 times the work."""
    arrival = poisson(120, 30, 3)
    long = (arrival > 15 * S) & (np.random.default_rng(3).random(len(arrival)) < 0.5)
    service = np.where(long, 11 * MS, 4 * MS)
    asked = np.where(long, "tokens=3208", "tokens=2816")
    ran = np.where(long, "tokens=8192", "tokens=2816")
    rows = work(
        serve(arrival, service), mapping=np.where(long, "adapted", "planned"), plan="p", request_shape=asked,
        execution_shape=ran,
    )  # fmt: skip
    return Case(3, "padding to a far bucket is worse than the generic path", ("fallback",), "fallback/padding", rows)


def _boundary(number: int, what: str, shape: str, at: int, seed: int) -> Case:
    """Peaks of the largest size, which has no plan."""
    arrival = poisson(60, 40, seed)
    peak = (arrival // S) % 10 >= 8
    rng = np.random.default_rng(seed)
    size = np.where(peak, at, rng.integers(1, at // 2, len(arrival)))
    service = (4 * MS + size / at * 4 * MS).astype(np.int64)
    shapes = np.array([f"{shape}={n}" for n in size.tolist()])
    rows = _mapped(arrival, service, peak, 3.0, shape=shapes, batch=size.astype(np.int32))
    return Case(number, what, ("fallback",), "fallback/tail", rows)


def largest_batch() -> Case:
    """The largest batch is missing from the captured sizes."""
    return _boundary(4, "fallback at exactly the largest batch", "batch", 160, 4)


def largest_tokens() -> Case:
    """The largest number of tokens was not captured: eager at the peak."""
    return _boundary(5, "eager at the peak: 700 tokens not captured", "tokens", 700, 5)


def cliff() -> Case:
    """A batch of 3 takes six times as long, of 4 it does not."""
    arrival = poisson(60, 30, 7)
    batch = np.random.default_rng(7).choice([1, 2, 3, 4], len(arrival), p=[0.3, 0.3, 0.12, 0.28])
    shapes = np.array([f"batch={n}" for n in batch.tolist()])
    rows = _mapped(arrival, np.full(len(arrival), 3 * MS), batch == 3, 6.0, shape=shapes, batch=batch.astype(np.int32))
    return Case(7, "non-monotone cliff: batch 3 not captured", ("fallback",), "fallback/silent", rows)


def _stalled(arrival: Ints, service_ns: int, stalls: Ints, stall_ns: int) -> list:
    """One core that also compiles: requests wait meanwhile."""
    all_arrivals = np.concatenate([stalls, arrival])
    takes = np.concatenate([np.full(len(stalls), stall_ns), np.full(len(arrival), service_ns)])
    order = np.argsort(all_arrivals, kind="stable")
    served = serve(all_arrivals[order], takes[order])
    ours = order >= len(stalls)
    mine = Served(*(getattr(served, name)[ours] for name in ("arrival", "start", "end", "lane")))
    return [*work(mine, mapping="planned", plan="p"), marks("recompile", stalls, stall_ns / MS, "ms")]


def recompiles() -> Case:
    """A recompile for every new shape."""
    rows = _stalled(poisson(100, 40, 31), 3 * MS, np.arange(3 * S, 39 * S, 3 * S), 300 * MS)
    return Case(31, "recompile spikes", ("fallback",), "fallback/recompile", rows)


def precompiles() -> Case:
    """Buckets compiled one after the other when serving has begun."""
    rows = _stalled(poisson(100, 60, 32), 3 * MS, np.arange(1 * S, 13 * S, 1 * S), 900 * MS)
    return Case(32, "compile cost of many buckets", ("fallback",), "fallback/recompile", rows)


MAPPING = (metastable, silent, padded, largest_batch, largest_tokens, cliff, recompiles, precompiles)
