"""Device work joined with the launch calls that enqueued it, on correlation ids and never on names."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


def launch_of(device: npt.NDArray[Any], launches: npt.NDArray[Any]) -> Ints:
    """Row in `launches` that enqueued each row of `device`, -1 for none. Shapes (rows,).

    An id that several calls carry (merged processes, wrapped counters) goes to the last of them that began before
    the work did, else to the first.
    """
    found = np.full(len(device), -1, np.int64)
    if not len(launches) or not len(device):
        return found
    order = np.lexsort((launches["start"], launches["correlation"]))
    ids = launches["correlation"][order]
    wanted = np.ascontiguousarray(device["correlation"])
    first = np.searchsorted(ids, wanted, "left")
    hit = (wanted != 0) & (first < len(ids))
    hit[hit] = ids[first[hit]] == wanted[hit]
    at = first
    if len(ids) > 1 and (ids[1:] == ids[:-1]).any():
        at = _latest_before(launches["start"][order], first, np.searchsorted(ids, wanted, "right"), device["start"])
    found[hit] = order[at[hit]]
    return found


def _latest_before(starts: Ints, low: Ints, high: Ints, limit: Ints) -> Ints:
    """Per row the last position in [low, high) whose start is <= limit, or low. Binary search on all rows at once."""
    low, high, first = low.copy(), high.copy(), low
    while (open_rows := high > low).any():
        middle = (low + high) // 2
        early = open_rows & (starts[np.minimum(middle, len(starts) - 1)] <= limit)
        low = np.where(early, middle + 1, low)
        high = np.where(open_rows & ~early, middle, high)
    return np.maximum(low - 1, first)


def graph_nodes(device: npt.NDArray[Any], launch: Ints) -> Ints:
    """Position of each row in its graph launch on its stream, -1 for work launched alone. Shape (rows,).

    Rows of one launch call (or, when the call is not in the capture, of one correlation id) are a graph launch when
    there are several of them; 0 is the first to start on each (launch, device, stream).
    """
    nodes = np.full(len(device), -1, np.int64)
    rows = np.flatnonzero(device["correlation"] != 0)
    if not len(rows):
        return nodes
    owner = np.where(launch[rows] >= 0, launch[rows], -2 - device["correlation"][rows])
    _, inverse, counts = np.unique(owner, return_inverse=True, return_counts=True)
    several = counts[inverse] > 1
    rows, inverse = rows[several], inverse[several]
    if not len(rows):
        return nodes
    stream, number, start, end = (device[name][rows] for name in ("stream", "device", "start", "end"))
    order = np.lexsort((end, start, stream, number, inverse))
    same = np.ones(len(order), np.bool_)
    same[0] = False
    for key in (inverse, number, stream):
        same[1:] &= key[order][1:] == key[order][:-1]
    position = np.arange(len(order))
    nodes[rows[order]] = position - np.maximum.accumulate(np.where(same, 0, position))
    return nodes


def overlaps(device: npt.NDArray[Any]) -> int:
    """How many rows start before an earlier one on the same device and stream ended."""
    if len(device) < 2:
        return 0
    order = np.lexsort((device["end"], device["start"], device["stream"], device["device"]))
    stream, number, start, end = (device[name][order] for name in ("stream", "device", "start", "end"))
    same = (stream[1:] == stream[:-1]) & (number[1:] == number[:-1])
    return int((same & (start[1:] < end[:-1])).sum())


def step_of(times: Ints, steps: npt.NDArray[Any]) -> Ints:
    """Number of the step that each time lies in, -1 for none. Shape (len(times),)."""
    found = np.full(len(times), -1, np.int64)
    if not len(steps):
        return found
    steps = steps[np.argsort(steps["start"], kind="stable")]
    at = np.searchsorted(steps["start"], times, "right") - 1
    inside = (at >= 0) & (times < steps["end"][np.maximum(at, 0)])
    found[inside] = steps["number"][at[inside]]
    return found


def outermost(operators: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which host operators lie in no other operator of their thread. Shape (rows,)."""
    order = np.lexsort((-operators["end"], operators["start"], operators["thread"]))
    rows = operators[order]
    keep = np.ones(len(rows), np.bool_)
    if len(rows):
        bounds = np.flatnonzero(np.diff(rows["thread"])) + 1
        for part in np.split(np.arange(len(rows)), bounds):
            reach = np.maximum.accumulate(rows["end"][part])
            keep[part[1:]] = rows["start"][part[1:]] >= reach[:-1]
    result = np.empty(len(rows), np.bool_)
    result[order] = keep
    return result
