"""Like for like: latency before and after at the same sizes, so that a mix of sizes does not drown the difference.

A stratum of executions is a name and a shape (a name, where shapes are not told); of requests the input shape, which is
the first operand of the first execution that began of it. d_s = mean log latency after - before in stratum s; all
together d = Σ w_s d_s / Σ w_s with w_s = n_s m_s / (n_s + m_s), the weight by how well d_s is known where the spread is
the same, and the error of d as a whole, from batches of time. exp(d) is a ratio of
geometric means, of typical latencies; it tells nothing of the tail.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from fusetui.analysis.arrays import Floats, Ints
from fusetui.analysis.columns import NULL
from fusetui.analysis.expression.rows import Scope
from fusetui.analysis.intervals import dependence_of_mean
from fusetui.analysis.intervals.student import t_reach

BATCHES: Final = 10
"""Of time, of which the error is: long enough that what is alike falls into the same one."""
SAME_MIX: Final = 0.1
"""Share of the requests that would have to have another shape for two mixes to be equal."""
MIN_ITEMS: Final = 2
"""Of a stratum, on each side."""
ROW_ITEMS: Final = 5
"""The same, to be told of by itself."""


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


@dataclass(frozen=True, slots=True)
class _Strata:
    """Log latencies of items in the order of time (n,), and the stratum of each: an index in `words`, "" for none."""

    logs: Floats
    words: list[str]
    where: Ints

    def of(self, word: str) -> Floats:
        found: Floats = self.logs[self.where == self.words.index(word)]
        return found


def alike_of(before: Scope, after: Scope, *, level: float = 0.95) -> list[Alike]:
    """All together first, then strata of enough items, most items first; [] without two strata on both sides."""
    sides = [_strata(before), _strata(after)]
    names = set(sides[0].words) & set(sides[1].words) - {""}
    every = [(name, sides[0].of(name), sides[1].of(name)) for name in sorted(names)]
    strata = [row for row in every if min(row[1].size, row[2].size) >= MIN_ITEMS]
    if len(strata) < 2:
        return []
    moved = np.array([b.mean() - a.mean() for _, a, b in strata])
    weight = np.array([a.size * b.size / (a.size + b.size) for _, a, b in strata])
    weight /= weight.sum()
    used = [name for name, _, _ in strata]
    errors = [_error(side, used, weight) for side in sides]
    total = _row("", sum(a.size for _, a, _ in strata), sum(b.size for _, _, b in strata),
                 float(weight @ moved), math.hypot(*(error for error, _ in errors)),
                 t_reach(level, min(free for _, free in errors)))  # fmt: skip
    strict = 1.0 - (1.0 - level) / len(strata)
    worth = [max(_worth(side), 1.0) for side in sides]
    rows = []
    for (name, a, b), shift in zip(strata, moved.tolist(), strict=True):
        if min(a.size, b.size) < ROW_ITEMS:
            continue
        error = math.hypot(*(s.std(ddof=1) / math.sqrt(s.size / w) for s, w in zip((a, b), worth, strict=True)))
        rows.append(_row(name, a.size, b.size, shift, error, t_reach(strict, min(a.size, b.size) - 1)))
    return [total, *sorted(rows, key=lambda row: (-row.n_before - row.n_after, row.name))]


def same_inputs(before: Scope, after: Scope) -> bool:
    """Whether both sides served requests of the same input shapes, in about the same shares."""
    if before.latency_of != "request" or after.latency_of != "request":
        return False
    shares = []
    for side in (_strata(before), _strata(after)):
        counts = np.bincount(side.where, minlength=len(side.words)) if side.words else np.zeros(0)
        shares.append(dict(zip(side.words, (counts / max(counts.sum(), 1)).tolist(), strict=True)))
    old, new = shares
    words = (old.keys() | new.keys()) - {""}
    return bool(words) and sum(abs(old.get(word, 0.0) - new.get(word, 0.0)) for word in words) / 2.0 < SAME_MIX


def _row(name: str, n: int, m: int, moved: float, error: float, times: float) -> Alike:
    reach = min(times * error, 700.0)
    return Alike(name, n, m, *(math.exp(x) for x in (moved, moved - reach, moved + reach)))


def _error(side: _Strata, names: list[str], weight: Floats) -> tuple[float, float]:
    """(error of the weighted mean of the strata of one side, degrees of freedom).

    Of what each item adds to it, its weight times what is left of it beside its stratum: summed in batches of time, so
    that neighbours that are alike count, whatever their strata; by item where that says more.
    """
    place = np.array([names.index(word) if word in names else -1 for word in side.words], np.int64)
    of = place[side.where]
    known = of >= 0
    of, logs = of[known], side.logs[known]
    n = np.bincount(of, minlength=len(names)).astype(np.float64)
    left = logs - (np.bincount(of, logs, len(names)) / n)[of]
    adds = weight[of] / n[of] * left * np.sqrt(n / (n - 1.0))[of]
    alone = float(adds @ adds)
    free = max(float(of.size - len(names)), 1.0)
    if of.size < 4 * BATCHES:
        return math.sqrt(alone), free
    edges = np.arange(BATCHES) * of.size // BATCHES
    sums = np.add.reduceat(adds, edges)
    batched = float(sums @ sums) * BATCHES / (BATCHES - 1.0)
    return (math.sqrt(batched), BATCHES - 1.0) if batched > alone else (math.sqrt(alone), free)


def _worth(strata: _Strata) -> float:
    """How many items an independent one is worth: what is left of each beside the mean of its stratum."""
    if not strata.words:
        return 1.0
    sums = np.bincount(strata.where, strata.logs, len(strata.words))
    means = sums / np.maximum(np.bincount(strata.where, minlength=len(strata.words)), 1)
    return dependence_of_mean(strata.logs - means[strata.where])


def _strata(scope: Scope) -> _Strata:
    items, ran = scope.items, scope.executions
    if not len(items) or not len(ran):
        return _Strata(np.zeros(0), [], np.zeros(0, np.int64))
    logs = np.log(np.maximum(items.latency, 1).astype(np.float64))
    if items is not ran:
        return _Strata(logs, *_input_shapes(scope))
    shapes, names = scope.reader.shapes.words, scope.reader.names.words
    # One place more than there are shapes: that of a name whose shape is not told.
    key = np.where(ran.rows.name < 0, -1, ran.rows.name.astype(np.int64) * (len(shapes) + 1) + ran.rows.shape + 1)
    used, where = np.unique(key, return_inverse=True)
    told = [divmod(k, len(shapes) + 1) for k in used.tolist()]
    words = [
        "" if k < 0 else f"{names[name]} {shapes[shape - 1]}" if shape else names[name]
        for k, (name, shape) in zip(used.tolist(), told, strict=True)
    ]
    return _Strata(logs, words, where)


def _input_shapes(scope: Scope) -> tuple[list[str], Ints]:
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
