"""The operators inside calls that are no operators themselves: compiled regions and nodes of the backward pass.

A capture without device work shows the calls, because they are what a thread waits for. What was computed in them,
with its shapes, are the operators inside; the time between those, in which a compiled region runs loops that leave no
event, stays with the call.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fusetui.importers.kineto_compiles import REGION_NAME
from fusetui.importers.kineto_join import outermost

_CALLS = re.compile(rf"{REGION_NAME}|autograd::engine::evaluate_function: |## Call CompiledFxGraph|\w+Backward\d*$")
_LEAST_NS: Final = 2_000  # shorter pieces between operators are the cost of the profiler and of the call itself

_NO_SHAPE: Final = -1

Table = npt.NDArray[Any]


def inner_work(operators: Table, names: Sequence[str]) -> Table:
    """Operators that lie in calls only, and what is left of the calls around them; no two overlap on a thread.

    operators  with start, end, thread, name and shape
    names      text of each name code
    """
    if not len(operators):
        return operators
    whole = operators[outermost(operators)]
    called = np.array([bool(_CALLS.match(name)) for name in names], np.bool_)
    plain = operators[~called[operators["name"]]]
    inner = plain[outermost(plain)]
    around = whole[called[whole["name"]]]
    parts = [inner]
    for thread in np.unique(around["thread"]):
        mine, inside = around[around["thread"] == thread], inner[inner["thread"] == thread]
        parts.append(_left_of(mine, inside))
    found = np.concatenate(parts)
    return found[np.argsort(found["start"], kind="stable")]


def _left_of(calls: Table, inside: Table) -> Table:
    """Pieces of calls that no operator covers. Both tables are of one thread and have no overlaps."""
    calls, inside = (table[np.argsort(table["start"], kind="stable")] for table in (calls, inside))
    at = np.searchsorted(calls["start"], inside["start"], "right") - 1
    held = at >= 0
    held[held] = inside["end"][held] <= calls["end"][at[held]]
    inside, at = inside[held], at[held]
    # Per call its start, the operators in it, its end: a piece lies between each end and the start that follows.
    owner = np.concatenate([np.arange(len(calls)), at])
    begin = np.concatenate([calls["start"], inside["end"]])
    order = np.lexsort((begin, owner))
    owner, begin = owner[order], begin[order]
    stop = np.sort(np.concatenate([inside["start"], calls["end"]]))
    pieces = calls[owner]
    pieces["start"], pieces["end"] = begin, stop
    pieces["shape"] = np.where(np.isin(owner, at), _NO_SHAPE, pieces["shape"])
    empty = ~np.isin(owner, at)
    kept: Table = pieces[empty | (stop - begin >= _LEAST_NS)]
    return kept
