"""A fallback that feeds itself, looked for in each kind of execution by itself.

As the window's own evidence (`mapping_kinds`), but over the time in which requests came: what drains after the last
arrival is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from fusetui.analysis.arrays import Floats, Ints
from fusetui.analysis.mapping_kinds import Kinds
from fusetui.analysis.slots import Grid
from fusetui.analysis.twin.requests import ABSENT, Requests, codes_of, numbers, requests_of
from fusetui.telemetry.schema import MAPPINGS

if TYPE_CHECKING:
    import polars as pl


def silent_fallback(frame: pl.DataFrame) -> Mapping[str, Any] | None:
    """The evidence with the name it is of and when it began, JSON-ready; None where nothing shows it.

    frame  contract rows; queue depth is requests that came and had not begun, the rate is of requests that ended
    """
    import polars as pl

    came = requests_of(frame)
    if len(came) < 2:
        return None
    ran = frame.filter(
        (pl.col("kind").cast(pl.String) == "execution")
        & pl.all_horizontal(pl.col("end_ns", "name", "mapping").is_not_null())
        & (pl.col("batch") >= 1)
    )
    grid = Grid.of_span(int(came.enqueue[0]), int(came.enqueue[-1]))
    kinds = Kinds(grid.count)
    names = _fill(kinds, ran, grid)
    found = kinds.evidence(names, np.arange(grid.count), _depth(came, grid), _rate(came, grid))
    return None if found is None else {**asdict(found), "from_ns": grid.start_of(found.from_slot)}


def _fill(kinds: Kinds, ran: pl.DataFrame, grid: Grid) -> tuple[str, ...]:
    """The names behind the codes of the executions that were taken in."""
    slot = grid.slot_of(numbers(ran["end_ns"]))
    inside = (slot >= 0) & (slot < grid.count)
    name, names = codes_of(ran["name"])
    code, words = codes_of(ran["mapping"])
    mapping = np.array([MAPPINGS.index(word) if word in MAPPINGS else ABSENT for word in words], np.int64)[code]
    kinds.add(name[inside], numbers(ran["batch"])[inside], mapping[inside], slot[inside])
    return names


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
