"""How much waited: queue depth by a sweep of +1 when work is enqueued and -1 when it starts."""

from __future__ import annotations

import numpy as np

from fusetui.analysis.arrays import Floats, Ints
from fusetui.analysis.snapshot import Depth


def sweep(enqueue: Ints, start: Ints, from_ns: int, to_ns: int) -> tuple[Ints, Ints]:
    """Depth as a step function over [from_ns, to_ns].

    enqueue  (n,) when each item was enqueued; start (m,), m <= n, when those that began did
    Returns (depth, length) of the steps: depth[i] items waited for length[i] ns.
    """
    times = np.clip(np.concatenate([enqueue, start]), from_ns, to_ns)
    # The sign of the step rides in the lowest bit, so that plain values are sorted, at one time what comes before
    # what goes: no depth is ever below 0.
    times <<= 1
    times[enqueue.size :] |= 1
    times.sort()
    depth = np.cumsum(1 - ((times & 1) << 1))
    times >>= 1
    length = np.empty_like(times)
    length[:-1] = np.diff(times)
    length[-1:] = to_ns - times[-1:]
    return depth, length


def depth_of(enqueue: Ints, start: Ints, from_ns: int, to_ns: int, now: int | None) -> Depth:
    """Time-weighted mean, p95 and maximum depth over [from_ns, to_ns] (its first event, where that is later)."""
    if enqueue.size == 0:
        return Depth(now=now)
    from_ns = min(max(from_ns, int(enqueue.min())), to_ns)
    depth, length = sweep(enqueue, start, from_ns, to_ns)
    total = int(length.sum())
    if total <= 0:
        return Depth(now=now)
    at_depth = np.bincount(depth, weights=length)
    p95 = np.searchsorted(np.cumsum(at_depth), 0.95 * total * (1.0 - 1e-9))
    # Not np.dot: a long one wakes the BLAS threads, which then spin, waiting for more, until the next tick.
    mean = float((at_depth * np.arange(at_depth.size)).sum()) / total
    return Depth(mean=mean, p95=int(p95), max=int(np.flatnonzero(at_depth)[-1]), now=now)


def depth_from_slots(by_slot: Floats, now: int | None) -> Depth:
    """The same from mean depths per slot [S]: p95 and maximum are those of the slot means, rounded up."""
    known = by_slot[~np.isnan(by_slot)]
    if known.size == 0:
        return Depth(now=now)
    ordered = np.sort(known)
    p95 = ordered[int(np.ceil(0.95 * ordered.size - 1e-9)) - 1]
    return Depth(mean=float(known.mean()), p95=int(np.ceil(p95)), max=int(np.ceil(ordered[-1])), now=now)
