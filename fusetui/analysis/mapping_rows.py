"""What of the mapping measures needs rows: padding by request and the ways of the same work, summed per bucket."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fusetui.analysis.arrays import Bools, Floats, Ints
from fusetui.analysis.columns import Columns, Reader
from fusetui.analysis.mapping import MAX_BUCKETS
from fusetui.analysis.mapping_buckets import Buckets
from fusetui.analysis.mapping_padding import padding
from fusetui.analysis.mapping_ways import Ways, ways_of
from fusetui.analysis.slots import Grid
from fusetui.analysis.work import ran


@dataclass(frozen=True, slots=True)
class MappingRows:
    """Sums per bucket [B] or slot [S], the last of which is slot `head` of the grid.

    key         [B - 1] dense keys that the buckets stood for
    executions  rows looked at
    tokens, tokens_by_slot  [2, B], [2, S] that ran, that were asked for, where both are known
    joined, padded [B] executions; padded_ns [B]
    accuracy, gain, fallback  [3, B] executions, ns as run (Σ n·t), ns of the way compared with
    """

    key: Ints
    head: int
    executions: int
    tokens: Floats
    tokens_by_slot: Floats
    joined: Ints
    padded: Ints
    padded_ns: Ints
    accuracy: Floats
    gain: Floats
    fallback: Floats


def mapping_rows(
    rows: Columns, buckets: Buckets, reader: Reader, grid: Grid, head: int, plans: Mapping[str, str]
) -> MappingRows | None:
    """From the executions and requests in the window; None without executions. plans: the header's descriptions."""
    work = ran(rows)
    if not len(work):
        return None
    bucket = buckets.look_up(work.plan, work.shape)
    pad = padding(work, rows, reader.shapes.words, [plans.get(name, "") for name in reader.plans.words])
    known, larger = ~np.isnan(pad.asked), pad.larger
    slot = np.clip(grid.slot_of(work.event) - head + grid.count - 1, 0, grid.count - 1)[known]
    tokens = (pad.ran[known], pad.asked[known])
    ways = ways_of(work, pad.shape)
    service = np.maximum(work.end - work.start, 0)
    none = np.zeros((3, MAX_BUCKETS))
    return MappingRows(
        key=buckets.key.copy(),
        head=head,
        executions=len(work),
        tokens=np.stack([np.bincount(bucket[known], t, MAX_BUCKETS) for t in tokens]),
        tokens_by_slot=np.stack([np.bincount(slot, t, grid.count) for t in tokens]),
        joined=np.bincount(bucket[known], minlength=MAX_BUCKETS),
        padded=np.bincount(bucket[larger], minlength=MAX_BUCKETS),
        padded_ns=np.rint(np.bincount(bucket[larger], service[larger], MAX_BUCKETS)).astype(np.int64),
        accuracy=none if ways is None else _sums(ways, ways.planned, ways.best, bucket),
        gain=none if ways is None else _sums(ways, ways.adapted, ways.static, bucket),
        fallback=none if ways is None else _sums(ways, ways.fallback, ways.rival, bucket),
    )


def _sums(ways: Ways, chosen: Bools, other: Floats, bucket: Ints) -> Floats:
    """Per bucket: executions, Σ n·t, Σ n·other of the chosen cells, [3, B]."""
    n, where = ways.n[chosen].astype(np.float64), bucket[ways.row[chosen]]
    weights = (n, n * ways.t[chosen], n * other[chosen])
    return np.stack([np.bincount(where, weight, MAX_BUCKETS) for weight in weights])
