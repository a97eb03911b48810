"""What work of a kind usually takes: medians of groups, and a line through the sizes that ran planned."""

from __future__ import annotations

from typing import Final

import numpy as np

from fusetui.analysis.arrays import Bools, Floats, Ints
from fusetui.analysis.shapesizes import sizes_among
from fusetui.telemetry.schema import MAPPINGS

MIN_LIKE: Final = 5
"""Jobs from which on their median is believed."""
_PLANNED: Final = MAPPINGS.index("planned")


def medians(group: Ints, values: Floats, groups: int, chosen: Bools | None = None) -> Floats:
    """Nearest-rank median of each group (groups,), NaN of fewer than MIN_LIKE. chosen: values that count."""
    if chosen is not None:
        group, values = group[chosen], values[chosen]
    order = np.argsort(values, kind="stable")
    order = order[np.argsort(group[order], kind="stable")]
    n = np.bincount(group, minlength=groups)
    found = np.full(groups, np.nan)
    enough = n >= MIN_LIKE
    middle = (np.cumsum(n) - n + (n + 1) // 2 - 1)[enough]
    found[enough] = values[order[middle]]
    return found


def expected_times(owner: Ints, shape: Ints, kind: Ints, took: Floats, mapping: Ints, shape_words: list[str]) -> Floats:
    """(j,) what each job takes under a plan made for its size, ns; NaN where nothing tells.

    The median of planned jobs of its kind (of one owner and shape); where none ran planned, on the line through the
    sizes of the owner (its stream) that did, going on with the last slope, never down. Jobs without a mapping count as
    planned.
    """
    kinds = int(kind.max()) + 1
    planned = (mapping == _PLANNED) | (mapping < 0)
    typical = medians(kind, took, kinds, planned)
    one = np.empty(kinds, np.int64)
    one[kind] = np.arange(len(kind))
    owned, sized, nothing = owner[one], shape[one] >= 0, np.isnan(typical)
    for who in np.intersect1d(owned[sized & nothing], owned[sized & ~nothing]).tolist():
        mine = (owned == who) & sized
        size = np.full(kinds, np.nan)
        size[mine] = sizes_among([shape_words[at] for at in shape[one][mine].tolist()])
        known = np.flatnonzero(~np.isnan(typical) & ~np.isnan(size))
        wanted = np.flatnonzero(np.isnan(typical) & ~np.isnan(size))
        if known.size < 2 or not wanted.size:
            continue
        order = known[np.argsort(size[known], kind="stable")]
        typical[wanted] = _on_line(size[wanted], size[order], typical[order])
    return typical[kind]


def _on_line(at: Floats, x: Floats, y: Floats) -> Floats:
    left = np.clip(np.searchsorted(x, at, side="right") - 1, 0, len(x) - 2)
    step = x[left + 1] - x[left]
    slope = np.divide(y[left + 1] - y[left], step, out=np.zeros(len(at)), where=step > 0)
    slope = np.where(at > x[-1], np.maximum(slope, 0.0), slope)  # nothing larger takes less
    found: Floats = np.maximum(y[left] + np.maximum(at - x[left], 0.0) * slope, 0.0)
    return found
