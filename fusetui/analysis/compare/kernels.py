"""Kernels (or streams) before and after: how often they were launched, and how long they took."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from fusetui.analysis.arrays import Floats, Ints
from fusetui.analysis.columns import NULL
from fusetui.analysis.expression.rows import Scope
from fusetui.analysis.intervals import Ratio, dependence_of_mean, mean_ratio

MIN_REQUESTS: Final = 5


@dataclass(frozen=True, slots=True)
class KernelMove:
    """One kernel name. per: what the first two ratios are per, "request" or "trace" (then they have no interval).

    launches  launches per `per`; time: ns per `per`; each: ns per launch
    moved     of time where it has an interval, else of each; at a level that holds for all kernels together
    """

    name: str
    per: str
    launches: Ratio
    time: Ratio
    each: Ratio
    moved: int

    @property
    def shift_ns(self) -> float:
        """Time after - before per `per`; a side without the kernel counts 0."""
        return (self.time.after or 0.0) - (self.time.before or 0.0)


@dataclass(frozen=True, slots=True)
class _Sums:
    """Per name: launches and time, in all, and as sums of squares over requests and over launches."""

    launches: Floats
    time: Floats
    launches2: Floats
    time2: Floats
    each2: Floats
    requests: int
    worth: float


def kernels_of(before: Scope, after: Scope, *, level: float = 0.95) -> list[KernelMove]:
    """Every kernel name, the one whose time moved most first."""
    names = sorted(_names(before) | _names(after))
    if not names:
        return []
    ids = {name: i for i, name in enumerate(names)}
    sides = [_sums(scope, ids) for scope in (before, after)]
    requests = (sides[0].requests, sides[1].requests)
    by_request = min(requests) >= MIN_REQUESTS
    strict = 1.0 - (1.0 - level) / len(names)
    found = [_move(name, i, sides, requests if by_request else None, level, strict) for name, i in ids.items()]
    return sorted(found, key=lambda row: (-abs(row.shift_ns), row.name))


def _move(
    name: str, i: int, sides: list[_Sums], requests: tuple[int, int] | None, level: float, strict: float
) -> KernelMove:
    old, new = sides
    count = (int(old.launches[i]), int(new.launches[i]))
    time = (float(old.time[i]), float(new.time[i]))
    each2 = (float(old.each2[i]), float(new.each2[i]))
    worth = (old.worth, new.worth)
    each = mean_ratio(count, time, each2, level=level, worth=worth)
    if requests is None:
        launches, total = _plain(float(count[0]), float(count[1])), _plain(*time)
        moved = mean_ratio(count, time, each2, level=strict, worth=worth).moved
        return KernelMove(name, "trace", launches, total, each, moved)
    launches = mean_ratio(
        requests, (float(count[0]), float(count[1])), (float(old.launches2[i]), float(new.launches2[i])), level=level
    )
    squares = (float(old.time2[i]), float(new.time2[i]))
    total = mean_ratio(requests, time, squares, level=level, worth=worth)
    moved = mean_ratio(requests, time, squares, level=strict, worth=worth).moved
    return KernelMove(name, "request", launches, total, each, moved)


def _plain(before: float, after: float) -> Ratio:
    return Ratio(1, 1, before, after, after / before if before > 0.0 else None, why="of one trace each: no interval")


def _names(scope: Scope) -> set[str]:
    words, used = scope.reader.names.words if len(scope.executions) else [], np.unique(scope.executions.rows.name)
    return {words[code] if code >= 0 else "(no name)" for code in used.tolist()} if len(words) else set()


def _sums(scope: Scope, ids: dict[str, int]) -> _Sums:
    ran, k = scope.executions, len(ids)
    words = scope.reader.names.words
    lookup = np.array([*(ids.get(word, -1) for word in words), ids.get("(no name)", -1)], np.int64)
    name = lookup[ran.rows.name] if len(ran) else np.zeros(0, np.int64)
    service = ran.service.astype(np.float64)
    launches, time = np.bincount(name, minlength=k), np.bincount(name, service, k)
    each2 = np.bincount(name, service * service, k).astype(np.float64)
    request = ran.rows.request
    known = request != NULL
    asked = scope.requests.rows.request
    n = max(len(scope.requests), int(np.unique(asked[asked != NULL]).size))
    if len(scope.requests) and known.all():
        launches2, time2 = _squares(name, request, service, k)
    else:
        n, launches2, time2 = 0, np.zeros(k), np.zeros(k)
    counted = (launches.astype(np.float64), time.astype(np.float64), launches2, time2, each2)
    return _Sums(*counted, requests=n, worth=_worth(name, service, counted[1] / np.maximum(counted[0], 1.0)))


def _worth(name: Ints, service: Floats, mean: Floats) -> float:
    """How many launches an independent one is worth, of all kernels together: each beside the mean of its name."""
    return dependence_of_mean(service / np.maximum(mean, 1.0)[name]) if service.size else 1.0


def _squares(name: Ints, request: Ints, service: Floats, k: int) -> tuple[Floats, Floats]:
    """Per name, the sums over requests of (launches)² and (time)²."""
    order = np.lexsort((request, name))
    by_name, by_request = name[order], request[order]
    fresh = np.ones(order.size, np.bool_)
    fresh[1:] = (by_name[1:] != by_name[:-1]) | (by_request[1:] != by_request[:-1])
    first = np.flatnonzero(fresh)
    count = np.diff(np.append(first, order.size)).astype(np.float64)
    time = np.add.reduceat(service[order], first) if first.size else np.zeros(0)
    of = by_name[first]
    sums = np.bincount(of, count * count, k), np.bincount(of, time * time, k)
    return sums[0].astype(np.float64), sums[1].astype(np.float64)
