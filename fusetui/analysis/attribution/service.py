"""What an item's time in service was spent on: from its own executions, or from those of the batch it was one of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusetui.analysis.arrays import Bools, Codes, Floats, Ints
from fusetui.analysis.attribution.axis import Tiled, tiled
from fusetui.analysis.attribution.cores import Cores
from fusetui.analysis.attribution.jobs import Excess
from fusetui.analysis.attribution.parts import FALLBACK, IMBALANCE, LAUNCH, PARTS, PLANNED, QUEUE
from fusetui.analysis.columns import NULL, Columns
from fusetui.analysis.mapping_ways import dense


@dataclass(frozen=True, slots=True)
class Spent:
    """[items, PARTS] ns in service; covered (items,): of which executions tell."""

    parts: Ints
    covered: Ints


def launch_in(gap: Ints, reached: Ints, enqueue: Ints, launch: Ints, node: Codes) -> Ints:
    """(m,) ns of each gap before an execution in which its launch was under way.

    All of it between the nodes of a graph; else up to its enqueue time, or as long as its launch call took.
    """
    called = np.maximum(np.where(enqueue == NULL, 0, enqueue - reached), np.where(launch == NULL, 0, launch))
    return np.where(node > 0, gap, np.clip(called, 0, gap))


def own_service(
    begin: Ints, wait: Ints, latency: Ints, ran: Columns, owner: Ints, excess: Excess, place: Ints, cores: Cores
) -> Spent:
    """From executions whose owner is an item (n,): begin, then wait, of a latency in all; place as in `Cores`."""
    n = len(begin)
    mine = np.flatnonzero(owner >= 0)
    of = owner[mine]
    base = np.cumsum(latency + 1) - latency - 1
    first, longest, asked = base[of], latency[of], begin[of]
    a = first + np.clip(ran.start[mine] - asked, 0, longest)
    b = np.maximum(first + np.clip(ran.end[mine] - asked, 0, longest), a)
    tiles = tiled(a, b, first + wait[of])
    rows, of = mine[tiles.order], of[tiles.order]
    offset = (first - asked)[tiles.order]
    enqueue = ran.enqueue[rows]
    enqueue = np.where(enqueue == NULL, NULL, enqueue + offset)
    launched = launch_in(tiles.gap, tiles.reached, enqueue, ran.launch[rows], ran.node[rows])
    stood = _others(cores, place[rows], tiles, offset, tiles.gap - launched)
    result = np.zeros((n, len(PARTS)), np.int64)
    covered = _sum(of, tiles.new, n)
    result[:, PLANNED] = covered
    for part, ns in excess.of(rows, tiles.new):
        result[:, part] = _sum(of, ns, n)
        result[:, PLANNED] -= result[:, part]
    late = excess.late_of(rows, launched)
    result[:, LAUNCH] += _sum(of, launched - late, n)
    result[:, FALLBACK] += _sum(of, late, n)
    result[:, QUEUE] += _sum(of, stood, n)
    _spread(result, ran, mine, owner, place)
    return Spent(result, covered)


def _others(cores: Cores, place: Ints, tiles: Tiled, offset: Ints, left: Ints) -> Ints:
    """(m,) ns of each gap in which others ran on the core, at most what is left of it."""
    stood = np.zeros(len(left), np.int64)
    some = np.flatnonzero(left > 0)
    if some.size:
        reached, begin, core = tiles.reached[some] - offset[some], tiles.begin[some] - offset[some], place[some]
        busy = cores.busy_until(cores.at(core, begin)) - cores.busy_until(cores.at(core, reached))
        stood[some] = np.clip(busy, 0, left[some])
    return stood


def _spread(result: Ints, ran: Columns, mine: Ints, owner: Ints, place: Ints) -> None:
    """Move the stretch of parallel steps, slowest core less mean, from planned to imbalance."""
    of, core = owner[mine], place[mine]
    group = np.broadcast_to(ran.group, len(ran))[mine].astype(np.int64)
    name = np.broadcast_to(ran.name, len(ran))[mine].astype(np.int64)
    low, high = np.full(len(result), np.iinfo(np.int64).max), np.full(len(result), -1)
    np.minimum.at(low, of, core)
    np.maximum.at(high, of, core)
    wide = np.flatnonzero((low < high)[of])
    if not wide.size:
        return
    step = dense(of[wide], np.where(group >= 0, group, (1 << 30) + name)[wide])
    cell = dense(step, core[wide])
    took = np.bincount(cell, (ran.end - ran.start)[mine][wide])
    step_of = np.empty(len(took), np.int64)
    step_of[cell] = step
    slowest = np.zeros(int(step.max()) + 1)
    np.maximum.at(slowest, step_of, took)
    mean = np.bincount(step_of, took) / np.bincount(step_of)
    item = np.empty(len(slowest), np.int64)
    item[step] = of[wide]
    stretch = _sum(item, np.floor(slowest - mean), len(result))
    moved = np.clip(stretch, 0, result[:, PLANNED])
    result[:, IMBALANCE] += moved
    result[:, PLANNED] -= moved


def shared_service(
    start: Ints, end: Ints, core: Ints, ran: Columns, serves: Bools, excess: Excess, cores: Cores
) -> Spent:
    """From the executions that ran on its core from start to end (q,) and serve a batch, for they say they served
    several or nobody in particular. What others ran there meanwhile is queue: it stood behind them."""
    tiles = cores.tiles
    order = tiles.order
    shared = serves[order]
    new = np.where(shared, tiles.new, 0)
    gap = np.where(shared, tiles.gap, 0)
    enqueue = ran.enqueue[order]
    offset = tiles.begin - ran.start[order]
    enqueue = np.where(enqueue == NULL, NULL, enqueue + offset)
    launched = launch_in(gap, tiles.reached, enqueue, ran.launch[order], ran.node[order])
    from_at, to_at = cores.at(core, start), cores.at(core, end)
    result = np.zeros((len(start), len(PARTS)), np.int64)
    covered = _within(tiles, new, from_at, to_at)
    result[:, PLANNED] = covered
    for part, ns in excess.of(order, new):
        result[:, part] = _within(tiles, ns, from_at, to_at)
        result[:, PLANNED] -= result[:, part]
    late = excess.late_of(order, launched)
    result[:, LAUNCH] += _within(tiles, launched - late, from_at, to_at)
    result[:, FALLBACK] += _within(tiles, late, from_at, to_at)
    result[:, QUEUE] += cores.busy_until(to_at) - cores.busy_until(from_at) - covered
    np.maximum(result, 0, out=result)
    return Spent(result, covered)


def _within(tiles: Tiled, amount: Ints, from_at: Ints, to_at: Ints) -> Ints:
    """(q,) the amounts (m,) of what ran between two positions; of what ran across an edge, its part."""
    sums = np.concatenate([[0], np.cumsum(amount)])

    def until(at: Ints) -> Ints:
        piece = np.searchsorted(tiles.begin, at, side="right") - 1
        known = np.maximum(piece, 0)
        since = np.maximum(at - np.maximum(tiles.begin[known], tiles.reached[known]), 0)
        inside = np.minimum(since / np.maximum(tiles.new[known], 1), 1.0)
        reached: Ints = sums[known] + np.rint(amount[known] * inside).astype(np.int64)
        return np.where(piece < 0, 0, reached)

    found: Ints = until(to_at) - until(from_at)
    return found


def _sum(of: Ints, amount: Ints | Floats, n: int) -> Ints:
    """(n,) sums by owner; exact below 2^53 ns, 104 days."""
    return np.rint(np.bincount(of, amount, n)).astype(np.int64)
