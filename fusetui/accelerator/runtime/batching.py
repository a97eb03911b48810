"""The batching gate: which requests leave together, and when."""

from __future__ import annotations

import numpy as np

from fusetui.accelerator.runtime.config import Batching, Config
from fusetui.accelerator.runtime.load import Load
from fusetui.accelerator.runtime.types import Ints


def gate(load: Load, config: Config) -> tuple[Ints, Ints]:
    """(unit each request runs in, time it leaves the gate). Units are of one stream, numbered from 0 in no order.

    A request that comes exactly when the wait of its batch is over is still taken along.
    """
    unit, leaves = np.arange(len(load)), load.arrival_ns.copy()
    units = 0
    for stream in range(len(load.streams)):
        batching = config.batching_of(stream)
        mine = np.flatnonzero(load.stream == stream)
        if batching.kind == "none" or not len(mine):
            unit[mine] = units + np.arange(len(mine))
            units += len(mine)
            continue
        arrival = load.arrival_ns[mine]
        heads = _heads(arrival, batching)
        sizes = np.diff(np.append(heads, len(mine)))
        closes = arrival[heads + sizes - 1]
        if batching.kind == "deadline":
            closes = np.where(sizes == batching.size, closes, arrival[heads] + batching.wait_ns)
        together = np.repeat(np.arange(len(heads)), sizes) if batching.merge else np.arange(len(mine))
        unit[mine] = units + together
        leaves[mine] = np.repeat(closes, sizes)
        units += int(together[-1]) + 1
    return unit, leaves


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
