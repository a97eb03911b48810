"""What work of a kind usually takes: medians of groups, and a line through the sizes that ran planned."""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from fusetui.analysis.arrays import Bools, Floats, Ints
from fusetui.telemetry.schema import MAPPINGS

MIN_LIKE: Final = 5
"""Jobs from which on their median is believed."""
_PLANNED: Final = MAPPINGS.index("planned")
_SIZE: Final = re.compile(r"=(\d{1,15})(?![\w.])")


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


def sizes_of(words: list[str]) -> Floats:
    """The size of each shape key that names one dimension, as `tokens=128`; NaN of others."""
    found = [_SIZE.findall(word) for word in words]
    return np.array([float(sizes[0]) if len(sizes) == 1 else np.nan for sizes in found] or [np.nan])


def expected_times(
    stream: Ints, shape: Ints, kind: Ints, took: Floats, mapping: Ints, shape_words: list[str]
) -> Floats:
    """(j,) what each job takes under a plan made for its size, ns; NaN where nothing tells.

    The median of planned jobs of its stream and shape; where none ran planned, on the line through the sizes of the
    stream that did, going on with the last slope. Jobs without a mapping count as planned.
    """
    kinds = int(kind.max()) + 1
    planned = (mapping == _PLANNED) | (mapping < 0)
    typical = medians(kind, took, kinds, planned)
    one = np.empty(kinds, np.int64)
    one[kind] = np.arange(len(kind))
    size = sizes_of(shape_words)[shape[one]]
    size = np.where(shape[one] < 0, np.nan, size)
    for owner in np.unique(stream).tolist():
        mine = stream[one] == owner
        known = np.flatnonzero(mine & ~np.isnan(typical) & ~np.isnan(size))
        wanted = np.flatnonzero(mine & np.isnan(typical) & ~np.isnan(size))
        if known.size < 2 or not wanted.size:
            continue
        order = known[np.argsort(size[known], kind="stable")]
        typical[wanted] = _on_line(size[wanted], size[order], typical[order])
    return typical[kind]


def _on_line(at: Floats, x: Floats, y: Floats) -> Floats:
    left = np.clip(np.searchsorted(x, at, side="right") - 1, 0, len(x) - 2)
    step = x[left + 1] - x[left]
    slope = np.divide(y[left + 1] - y[left], step, out=np.zeros(len(at)), where=step > 0)
    found: Floats = np.maximum(y[left] + np.maximum(at - x[left], 0.0) * slope, 0.0)
    return found
