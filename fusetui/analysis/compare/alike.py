"""Like for like: latency before and after at the same sizes, so that a mix of sizes does not drown the difference.

A stratum of executions is a name and a shape; of requests the input shape, which is the first operand of the first
execution that began of it. d_s = mean log latency after - before in stratum s; all together d = Σ w_s d_s / Σ w_s with
w_s = n_s m_s / (n_s + m_s), the weight by how well d_s is known where the spread is the same. exp(d) is a ratio of
geometric means, of typical latencies; it tells nothing of the tail.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np

from fusetui.analysis.arrays import Floats
from fusetui.analysis.columns import NULL
from fusetui.analysis.expression.rows import Scope

MIN_ITEMS: Final = 3
"""Of a stratum, on each side."""
_NORMAL: Final = NormalDist()


@dataclass(frozen=True, slots=True)
class Alike:
    """One stratum, or all together (name ""): items on each side, ratio of geometric means, its interval."""

    name: str
    n_before: int
    n_after: int
    ratio: float
    low: float
    high: float

    @property
    def moved(self) -> int:
        """1: slower, -1: faster, 0: the interval holds "no change"."""
        return (self.low > 1.0) - (self.high < 1.0)


def alike_of(before: Scope, after: Scope, *, level: float = 0.95) -> list[Alike]:
    """All together first, then the strata, most items first; [] without two strata on both sides."""
    old, new = _logs(before), _logs(after)
    strata = [(name, old[name], new[name]) for name in old if name in new]
    strata = [row for row in strata if min(row[1].size, row[2].size) >= MIN_ITEMS]
    if len(strata) < 2:
        return []
    moved = np.array([b.mean() - a.mean() for _, a, b in strata])
    error2 = np.array([a.var(ddof=1) / a.size + b.var(ddof=1) / b.size for _, a, b in strata])
    weight = np.array([a.size * b.size / (a.size + b.size) for _, a, b in strata])
    weight /= weight.sum()
    total = _row("", sum(a.size for _, a, _ in strata), sum(b.size for _, _, b in strata),
                 float(weight @ moved), math.sqrt(float(weight**2 @ error2)), level)  # fmt: skip
    strict = 1.0 - (1.0 - level) / len(strata)
    rows = [
        _row(name, a.size, b.size, float(d), math.sqrt(float(e)), strict)
        for (name, a, b), d, e in zip(strata, moved, error2, strict=True)
    ]
    return [total, *sorted(rows, key=lambda row: (-row.n_before - row.n_after, row.name))]


def _row(name: str, n: int, m: int, moved: float, error: float, level: float) -> Alike:
    reach = _NORMAL.inv_cdf((1.0 + level) / 2.0) * error
    return Alike(name, n, m, *(math.exp(x) for x in (moved, moved - reach, moved + reach)))


def _logs(scope: Scope) -> dict[str, Floats]:
    """Log latencies by stratum."""
    items, ran = scope.items, scope.executions
    if not len(items) or not len(ran):
        return {}
    logs = np.log(np.maximum(items.latency, 1).astype(np.float64))
    shapes = scope.reader.shapes.words
    if items is ran:
        key = ran.rows.name.astype(np.int64) * (len(shapes) + 1) + ran.rows.shape
        key[(ran.rows.shape < 0) | (ran.rows.name < 0)] = -1
        names = scope.reader.names.words
        used, where = np.unique(key, return_inverse=True)
        words = [
            "" if k < 0 else f"{names[k // (len(shapes) + 1)]} {shapes[k % (len(shapes) + 1)]}" for k in used.tolist()
        ]
    else:
        words, where = _input_shapes(scope)
    return {word: logs[where == number] for number, word in enumerate(words) if word}


def _input_shapes(scope: Scope) -> tuple[list[str], np.ndarray[tuple[int], np.dtype[np.intp]]]:
    """The input shape of each request: words, and which of them, (requests,)."""
    ran, asked = scope.executions.rows, scope.requests.rows
    known = np.flatnonzero((ran.request != NULL) & (ran.shape >= 0))
    order = known[np.argsort(ran.start[known], kind="stable")]
    request, first = np.unique(ran.request[order], return_index=True)
    shape = ran.shape[order][first]
    words = scope.reader.shapes.words
    found = np.searchsorted(request, asked.request)
    found = np.minimum(found, max(request.size - 1, 0))
    names = [words[code].split(" ")[0] for code in shape.tolist()]
    of_item = [
        names[at] if names and request[at] == own else ""
        for at, own in zip(found.tolist(), asked.request.tolist(), strict=True)
    ]
    distinct, where = np.unique(np.array(of_item, object).astype(str), return_inverse=True)
    return distinct.tolist(), where
