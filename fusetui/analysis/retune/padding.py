"""Larger sizes that were measured to run faster: pad to them."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, floor, sqrt
from typing import Final

import numpy as np

from fusetui.accelerator.runtime.config import Config
from fusetui.analysis.arrays import Bools, Ints
from fusetui.analysis.fmt import duration
from fusetui.analysis.mapping_adapt import MARGIN, best_padding
from fusetui.analysis.retune.action import ONLY_THESE, Action, Change, Cost, to_config
from fusetui.analysis.retune.paths import like
from fusetui.analysis.retune.seen import names_of, of_table, slice_of
from fusetui.analysis.twin.jobs import GENERIC
from fusetui.analysis.twin.model import Twin

ENOUGH: Final = 50
"""Runs of a size from which its median is measured history."""
REACH: Final = 2.0
_PROVES_NOT: Final = "that the results are the same when padded: check the mask"


def pad_to_faster(twin: Twin) -> list[Action]:
    """Of sizes that ran alone and planned; both medians must differ by more than the margin and than chance."""
    if twin.config.decode is not None:
        return []
    found = []
    for table in range(len(twin.config.tables)):
        alone = of_table(twin, table) & (twin.came.batch <= 1) & (twin.came.mapping != GENERIC)
        alone &= twin.came.ended & (twin.came.start >= 0)
        times, bounds = _medians(twin, alone)
        known = set(twin.config.tables[table].plan.rows.tolist())
        for proposal in best_padding(times, MARGIN, REACH):
            size, other = proposal.size, proposal.pad_to
            if bounds[other][1] >= bounds[size][0] or not {size, other} <= known:
                continue
            why = (
                f"{size} took {duration(proposal.time).strip()} in the median, {other} only "
                f"{duration(proposal.padded_time).strip()}; the 95 % intervals of the medians are apart"
            )
            stream = names_of(twin, table)
            title = f"{stream + ': ' if stream else ''}pad {size} to {other}"
            found.append(
                Action(
                    knob=f"pad {stream} {size}",
                    title=title,
                    stream=stream,
                    bottleneck="compute",
                    owner="runtime",
                    why=why,
                    slice=slice_of(twin, alone & (twin.load.tokens == size)),
                    cost=Cost(),
                    rollback=f"run {size} at its own size again",
                    does_not_prove=(ONLY_THESE, _PROVES_NOT),
                    change=_padded(table, size, other),
                )
            )
    return found


def _medians(twin: Twin, alone: Bools) -> tuple[dict[int, float], dict[int, tuple[int, int]]]:
    """(median service by size, its 95 % interval by order statistics)."""
    times: dict[int, float] = {}
    bounds: dict[int, tuple[int, int]] = {}
    tokens, service = twin.load.tokens[alone], (twin.came.end - twin.came.start)[alone]
    for size in np.unique(tokens).tolist()[:256]:
        values: Ints = np.sort(service[tokens == size])
        n = len(values)
        if n >= ENOUGH:
            half = 1.96 * sqrt(n) / 2
            times[size] = float(values[(n - 1) // 2])
            bounds[size] = int(values[floor(n / 2 - half)]), int(values[min(ceil(n / 2 + half), n - 1)])
    return times, bounds


def _padded(table: int, size: int, other: int) -> Change:
    def make(config: Config) -> Config:
        tables = list(config.tables)
        tables[table] = replace(tables[table], plan=like(tables[table].plan, size, other), best=None)
        return replace(config, tables=tuple(tables))

    return to_config(make)
