"""How much waited: queue depth by a sweep of +1 when work is enqueued and -1 when it starts."""

from __future__ import annotations

from typing import Final

import numpy as np

from fusetui.analysis.arrays import Floats, Ints
from fusetui.analysis.snapshot import Depth

_BLOCK: Final = 1 << 16


def _moments(enqueue: Ints, start: Ints, from_ns: int, to_ns: int) -> Ints:
    """When the depth changes, in order: twice the time, and 1 more where it falls. Shape (n + m,)."""
    times = np.concatenate([enqueue, start])
    np.clip(times, from_ns, to_ns, out=times)
    # The sign of the step rides in the lowest bit, so that plain values are sorted, at one time what comes before
    # what goes: no depth is ever below 0.
    times <<= 1
    times[enqueue.size :] |= 1
    times.sort()
    return times


def _time_at_depth(moments: Ints, to_ns: int) -> Floats:
    """How long so many items waited, ns, by their number. A block at a time: the moments are all that is held."""
    time: Floats = np.zeros(1, np.float64)
    now = 0
    for low in range(0, moments.size, _BLOCK):
        part = moments[low : low + _BLOCK]
        after = moments[low + _BLOCK : low + _BLOCK + 1] >> 1
        depth = now + np.cumsum(1 - ((part & 1) << 1))
        now = int(depth[-1])
        length = np.diff(part >> 1, append=after if after.size else to_ns)
        found = np.asarray(np.bincount(depth, weights=length, minlength=time.size), np.float64)
        found[: time.size] += time
        time = found
    return time


def depth_of(enqueue: Ints, start: Ints, from_ns: int, to_ns: int, now: int | None) -> Depth:
    """Time-weighted mean, p95 and maximum depth over [from_ns, to_ns] (its first event, where that is later).

    enqueue  (n,) when each item was enqueued; start (m,), m <= n, when those that began did
    """
    if enqueue.size == 0:
        return Depth(now=now)
    from_ns = min(max(from_ns, int(enqueue.min())), to_ns)
    moments = _moments(enqueue, start, from_ns, to_ns)
    total = to_ns - int(moments[0] >> 1)
    if total <= 0:
        return Depth(now=now)
    at_depth = _time_at_depth(moments, to_ns)
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
