"""What ran against what was asked for: padding, from the shapes of executions and of their requests.

A shape key is words with spaces between them: `name=size` is a named dimension, `8x128` or `768` an operand's sizes by
position, anything else (a data type, a name) must be equal for two keys to be of the same work. Two keys of the same
work are compared when no size shrank:

- named: tokens = product of the dimensions; n and k, the weight's own sides of a matrix product, must be equal;
- by position: all sizes that changed must have grown by one and the same ratio, for a dimension that several operands
  share appears several times; tokens = the first size, times that ratio for what ran.

Where the header's description of a plan begins with the sizes it was made for (`decoder, batch=32: …`), what ran in it,
other than as a fallback, ran at those sizes: then the execution's shape is what came.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from fusetui.analysis.arrays import Codes, Floats, Ints
from fusetui.analysis.columns import REQUEST, Columns
from fusetui.analysis.mapping_ways import dense, first_of
from fusetui.telemetry.schema import FALLBACK, MAPPINGS

_NAMED = re.compile(r"([A-Za-z_][\w.]*)=(\d{1,15})\Z")
_SIZES = re.compile(r"(\d{1,15}(?:x\d{1,15})*)(:\w+)?\Z")
_PLAN_SIZE = re.compile(r"(?<![\w.])([A-Za-z_][\w.]*)=(\d{1,15})(?![\w.])")
_WEIGHT_SIDES: Final = frozenset({"n", "k"})
_FALLBACK: Final = MAPPINGS.index(FALLBACK)
_MAX_PAIRS: Final = 4096
"""Different pairs of shapes that are compared; rows of any others count as unknown."""


@dataclass(frozen=True, slots=True)
class _Shape:
    work: tuple[str, ...]
    sizes: tuple[int, ...]
    named: bool
    tokens: int


@lru_cache(maxsize=8192)
def _parsed(key: str) -> _Shape:
    work: list[str] = []
    sizes: list[int] = []
    tokens, named = 1, False
    for word in key.split():
        found = _NAMED.match(word)
        if found and found.group(1).lower() not in _WEIGHT_SIDES:
            work.append(found.group(1) + "=")
            sizes.append(int(found.group(2)))
            named = True
            tokens *= sizes[-1]
        elif found := _SIZES.match(word):
            own = [int(size) for size in found.group(1).split("x")]
            work.append(f"{len(own)}{found.group(2) or ''}")
            sizes += own
        else:
            work.append(word)
    return _Shape(tuple(work), tuple(sizes), named, tokens if named else sizes[0] if sizes else 0)


def padding_of(ran: str, asked: str) -> tuple[float, float] | None:
    """(tokens that ran, tokens asked for) of two shape keys; None where they cannot be compared."""
    a, b = _parsed(asked), _parsed(ran)
    if a.work != b.work or a.named != b.named or a.tokens <= 0 or _shrank(a, b):
        return None
    if a.named:
        return float(b.tokens), float(a.tokens)
    ratios = {y / x if x else math.inf for x, y in zip(a.sizes, b.sizes, strict=True) if y != x}
    if len(ratios) > 1 or math.inf in ratios:
        return None
    return a.tokens * (ratios.pop() if ratios else 1.0), float(a.tokens)


def planned_padding(description: str, shape: str) -> tuple[float, float] | None:
    """(tokens that a plan runs, tokens of a shape it runs for); None unless the plan tells every size of the shape."""
    sizes = dict(_PLAN_SIZE.findall(description.split(":", 1)[0]))
    words = [word.split("=")[0] if _NAMED.match(word) else None for word in shape.split()]
    if not any(words) or any(word is not None and word not in sizes for word in words):
        return None
    ran = " ".join(f"{w}={sizes[w]}" if w else text for w, text in zip(words, shape.split(), strict=True))
    return padding_of(ran, shape)


def _shrank(asked: _Shape, ran: _Shape) -> bool:
    return any(y < x for x, y in zip(asked.sizes, ran.sizes, strict=True))


@dataclass(frozen=True, slots=True)
class Padding:
    """Per execution (n,): tokens that ran and were asked for, NaN unknown; shape asked for (that which ran: unknown).

    larger  whether more ran than was asked for
    """

    ran: Floats
    asked: Floats
    shape: Codes

    @property
    def larger(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        return self.ran > self.asked


def padding(executions: Columns, rows: Columns, words: list[str], described: list[str]) -> Padding:
    """Join executions with the requests among rows.

    words      text of each shape id
    described  the header's description of each plan id, "" without one
    """
    n = len(executions)
    shape = _asked_shape(executions, rows, np.flatnonzero((rows.kind == REQUEST) & (rows.shape >= 0)))
    both = (shape >= 0) & (executions.shape >= 0)
    ran, asked = np.full(n, np.nan), np.full(n, np.nan)
    if both.any():
        ran[both], asked[both] = _per_pair(
            executions.shape[both], shape[both], lambda own, wanted: padding_of(words[own], words[wanted])
        )
    shape = np.where(np.isnan(asked), executions.shape, shape)
    for_plan = (executions.plan >= 0) & (executions.shape >= 0) & (executions.mapping != _FALLBACK)
    if any(described) and for_plan.any():
        plan, own = executions.plan[for_plan], executions.shape[for_plan]
        tokens = _per_pair(plan, own, lambda p, s: planned_padding(described[p], words[s]))
        known = ~np.isnan(tokens[0])
        at = np.flatnonzero(for_plan)[known]
        ran[at] = tokens[0][known]
        asked[at] = np.where(np.isnan(asked[at]), tokens[1][known], asked[at])
    return Padding(ran, asked, shape)


def _per_pair(left: Codes, right: Codes, compare: Callable[[int, int], tuple[float, float] | None]) -> Floats:
    """Tokens that ran and were asked for per row [2, n], of pairs of ids compared once each."""
    pair = dense(left, right)
    first = first_of(pair)
    tokens = np.full((len(first), 2), np.nan)
    for at, row in enumerate(first[:_MAX_PAIRS].tolist()):
        tokens[at] = compare(int(left[row]), int(right[row])) or np.nan
    return np.asarray(tokens[pair].T)


def _asked_shape(executions: Columns, rows: Columns, requests: Ints) -> Ints:
    """Shape id that the request of each execution asked for (n,), -1: not known. requests: where in rows."""
    found = np.full(len(executions), -1, np.int64)
    if not len(requests) or not len(executions):
        return found
    request, host = rows.request[requests], rows.host[requests]
    ids = np.unique(request)
    at = np.minimum(np.searchsorted(ids, executions.request), len(ids) - 1)
    hosts = int(max(executions.host.max(), host.max())) + 2
    cell = at * hosts + executions.host + 1
    own = np.searchsorted(ids, request) * hosts + host + 1
    order = np.argsort(own, kind="stable")
    own = own[order]
    # The newest row of an id counts: ids may come again.
    last = np.searchsorted(own, cell, side="right") - 1
    row = requests[order[np.maximum(last, 0)]]
    hit = (last >= 0) & (own[np.maximum(last, 0)] == cell) & (ids[at] == executions.request)
    together, mine = rows.batch[row], executions.batch
    hit &= (mine == together) | ((mine <= 1) & (together <= 1))
    found[hit] = rows.shape[row][hit]
    return found
