"""The batching gate: which requests leave together, and when."""

from __future__ import annotations

import numpy as np

from fusetui.accelerator.runtime.config import Batching
from fusetui.accelerator.runtime.load import Load
from fusetui.accelerator.runtime.types import Ints


def gate(load: Load, batching: Batching) -> tuple[Ints, Ints]:
    """(batch of each request, time it leaves the gate). Batches are of one stream, numbered from 0 in no order.

    A request that comes exactly when the wait of its batch is over is still taken along.
    """
    if batching.kind in ("none", "continuous") or not len(load):
        return np.arange(len(load)), load.arrival_ns.copy()
    batch, leaves = np.zeros(len(load), np.int64), np.zeros(len(load), np.int64)
    batches = 0
    for stream in range(len(load.streams)):
        mine = np.flatnonzero(load.stream == stream)
        if not len(mine):
            continue
        arrival = load.arrival_ns[mine]
        heads = _heads(arrival, batching)
        sizes = np.diff(np.append(heads, len(mine)))
        closes = arrival[heads + sizes - 1]
        if batching.kind == "deadline":
            closes = np.where(sizes == batching.size, closes, arrival[heads] + batching.wait_ns)
        batch[mine] = np.repeat(batches + np.arange(len(heads)), sizes)
        leaves[mine] = np.repeat(closes, sizes)
        batches += len(heads)
    return batch, leaves


def _heads(arrival: Ints, batching: Batching) -> Ints:
    """Index of the first request of each batch."""
    n = len(arrival)
    if batching.kind == "size":
        return np.arange(0, n, batching.size)
    in_time = np.searchsorted(arrival, arrival + batching.wait_ns, side="right")
    following = np.minimum(in_time, np.arange(n) + batching.size).tolist()
    heads, i = [], 0
    while i < n:
        heads.append(i)
        i = following[i]
    return np.array(heads, np.int64)
