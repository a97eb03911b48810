"""A fallback that feeds itself, looked for in each kind of execution by itself.

The window's evidence takes all executions together, so that work of another kind (the prefill beside the decode steps)
hides it. Here every name with fallback has its own series, over the time in which requests came: what drains after
the last arrival is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from fusetui.analysis.arrays import Floats, Ints
from fusetui.analysis.mapping_metastable import metastable
from fusetui.analysis.slots import Grid
from fusetui.analysis.twin.requests import ABSENT, Requests, codes_of, numbers, requests_of
from fusetui.telemetry.schema import FALLBACK

if TYPE_CHECKING:
    import polars as pl

_MOST_NAMES: Final = 8


def silent_fallback(frame: pl.DataFrame) -> Mapping[str, Any] | None:
    """The evidence with the name it is of and when it began, JSON-ready; None where nothing shows it.

    frame  contract rows; queue depth is requests that came and had not begun, the rate is of requests that ended
    """
    import polars as pl

    came = requests_of(frame)
    if len(came) < 2:
        return None
    kind = pl.col("kind").cast(pl.String)
    ran = frame.filter((kind == "execution") & pl.col("end_ns").is_not_null() & pl.col("mapping").is_not_null())
    fell = ran.filter(pl.col("mapping").cast(pl.String) == FALLBACK)["name"].cast(pl.String)
    grid = Grid.of_span(int(came.enqueue[0]), int(came.enqueue[-1]))
    depth, rate = _depth(came, grid), _rate(came, grid)
    for name in fell.value_counts(sort=True)["name"].to_list()[:_MOST_NAMES]:
        mine = ran.filter(pl.col("name").cast(pl.String) == name)
        share, batch = _series(mine, grid)
        found = metastable(share, batch, depth, rate, of=name)
        if found is not None:
            return {**asdict(found), "from_ns": grid.start_of(found.from_slot)}
    return None


def _series(mine: pl.DataFrame, grid: Grid) -> tuple[Floats, Floats]:
    """(share of fallback, mean batch) of executions by slot, NaN without any."""
    slot = grid.slot_of(numbers(mine["end_ns"]))
    inside = (slot >= 0) & (slot < grid.count)
    code, words = codes_of(mine["mapping"])
    fell = (code == words.index(FALLBACK)).astype(np.float64)
    n = np.bincount(slot[inside], minlength=grid.count).astype(np.float64)
    batch = numbers(mine["batch"]).astype(np.float64)
    told = inside & (batch != ABSENT)
    sums = np.bincount(slot[told], batch[told], grid.count)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.bincount(slot[inside], fell[inside], grid.count) / n
        mean = sums / np.bincount(slot[told], minlength=grid.count)
    return share, mean


def _depth(came: Requests, grid: Grid) -> Floats:
    """Requests that wait, mean over each slot."""
    edges = grid.origin + np.arange(grid.count + 1, dtype=np.int64) * grid.width
    began = np.where(came.start == ABSENT, np.where(came.ended, came.enqueue, edges[-1]), came.start)
    waited: Floats = np.diff(_area(came.enqueue, edges) - _area(np.maximum(began, came.enqueue), edges)) / grid.width
    return waited


def _area(at: Ints, edges: Ints) -> Floats:
    """Time that has passed since each of `at`, summed, at each edge."""
    ordered = np.sort(at)
    n = np.searchsorted(ordered, edges, side="right")
    sums = np.concatenate([[0.0], np.cumsum((ordered - edges[0]).astype(np.float64))])
    area: Floats = n * (edges - edges[0]).astype(np.float64) - sums[n]
    return area


def _rate(came: Requests, grid: Grid) -> Floats:
    slot = grid.slot_of(came.end[came.ended])
    inside = (slot >= 0) & (slot < grid.count)
    rate: Floats = np.bincount(slot[inside], minlength=grid.count) / grid.width * 1e9
    return rate
